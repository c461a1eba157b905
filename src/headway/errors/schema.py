"""What is wrong with the schema of a database."""

from headway.errors.base import HeadwayError


class SchemaError(HeadwayError):
    """The database's schema does not fit this version of headway."""


class SchemaMissing(SchemaError):
    """The database holds no headway tables yet."""

    def __init__(self) -> None:
        super().__init__("the database has no headway tables yet; run: headway db migrate")


class SchemaOutdated(SchemaError):
    """The database is older than this version of headway."""

    def __init__(self, found: int, needed: int) -> None:
        super().__init__(
            f"the database is at schema version {found}, this headway needs {needed}; "
            "run: headway db migrate"
        )


class SchemaForeign(SchemaError):
    """The database was migrated by another line of development, with other steps."""

    def __init__(self, version: int, found: str, known: str) -> None:
        super().__init__(
            f"migration {version} of the database is called {found!r}, in this headway {known!r}: "
            "another line of development has migrated it; use the headway that did, or a new "
            "database"
        )


class SchemaTooNew(SchemaError):
    """The database was migrated by a newer headway; this one must not touch it."""

    def __init__(self, found: int, known: int) -> None:
        super().__init__(
            f"the database is newer (schema version {found}) than this headway knows ({known}); "
            "upgrade headway on this machine"
        )
