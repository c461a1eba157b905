"""What errors say, and that they say the same in another process."""

from __future__ import annotations

import copy

import pytest

from headway.errors import (
    ActivationError,
    ChangedMeanwhile,
    CircularDependencyError,
    CreatedMeanwhile,
    DatabaseLost,
    DatabaseOutage,
    DatabaseUnavailable,
    DefinitionError,
    DependentBusyError,
    EntryNotFound,
    ExecutionNotFound,
    GroupNotFound,
    HeadwayError,
    IllegalTransition,
    InputError,
    KeyReused,
    ManifestNotApplied,
    ManifestNotFound,
    MissingExtra,
    NoParentRunError,
    NotDormantError,
    NotYourDependentError,
    OwnedByAnother,
    ParentNotFound,
    QueueFull,
    RemovalRefused,
    SchemaError,
    SchemaForeign,
    SchemaMissing,
    SchemaOutdated,
    SchemaTooNew,
    SettingsError,
    StepFailed,
    TokenNotFound,
    TooLate,
    UnknownWorkflow,
)

LOST = "while this process had it open; nothing is started, queued or recorded any more"
WORDS: list[tuple[HeadwayError, type[Exception], str]] = [
    (
        OwnedByAnother("load", "billing"),
        DefinitionError,
        "external_id = 'load': belongs to the application 'billing'; choose another, "
        "for example 'load-2'",
    ),
    (
        ParentNotFound("load", "extract"),
        DefinitionError,
        "load: depends on 'extract', but no manifest has that external id; declare it, or "
        "correct the name",
    ),
    (
        UnknownWorkflow("load"),
        LookupError,
        "workflow 'load' is not registered here; decorate its function with @hw.workflow",
    ),
    (ManifestNotFound("load"), LookupError, "no manifest has the external id 'load'"),
    (
        ManifestNotApplied("load"),
        ManifestNotFound,
        "manifest 'load' is declared in the code but is not in the database: it was never "
        "applied, or was removed; run: headway apply MODULE:APP",
    ),
    (
        ExecutionNotFound(41),
        LookupError,
        "execution = 41: no execution has this id whose manifest still exists; for example the "
        "number after # in the log",
    ),
    (
        EntryNotFound(7),
        LookupError,
        "entry = 7: no entry has this id; for example the number that enqueue returned",
    ),
    (
        TokenNotFound("ada"),
        LookupError,
        "no token is called 'ada', or it is revoked already",
    ),
    (StepFailed("read"), HeadwayError, "step 'read' failed"),
    (GroupNotFound("users"), LookupError, "no group is called 'users'"),
    (
        NoParentRunError(),
        ActivationError,
        "this run belongs to no manifest, so it has no dormant dependents",
    ),
    (
        NotDormantError("load", "cron"),
        ActivationError,
        "'load' is not a dormant dependent but of kind 'cron'; declare it with dormant=True",
    ),
    (
        NotYourDependentError("load", "extract"),
        ActivationError,
        "'load' does not depend on 'extract', the manifest running",
    ),
    (DependentBusyError("load"), ActivationError, "'load' is queued or running already"),
    (
        TooLate("report", 3, 5),
        HeadwayError,
        "'report' was written by a later run (5); this one (3) comes too late",
    ),
    (
        IllegalTransition("failed", "pending"),
        HeadwayError,
        "an execution that is failed cannot become pending",
    ),
    (
        CreatedMeanwhile(),
        HeadwayError,
        "nothing was written: somebody else has created one of these manifests at the same "
        "moment; try again",
    ),
    (
        ChangedMeanwhile("group 'users'", "64f1"),
        HeadwayError,
        "group 'users' was changed by somebody else meanwhile; look at it again, then repeat "
        "the change",
    ),
    (
        DatabaseLost("/srv/a.db", "/srv/a.db", "deleted"),
        DatabaseUnavailable,
        f"database file /srv/a.db was deleted {LOST}; put the file back if it is needed, then "
        "start this process again",
    ),
    (
        DatabaseLost("/srv/a.db", "/srv/a.db", "replaced by another file"),
        DatabaseUnavailable,
        f"database file /srv/a.db was replaced by another file {LOST}; start this process again "
        "to use the file that is there now",
    ),
    (
        DatabaseLost("/srv/a.db-wal", "/srv/a.db", "deleted"),
        DatabaseUnavailable,
        f"database file /srv/a.db-wal was deleted {LOST}; stop every process that uses "
        "/srv/a.db, then start them again",
    ),
    (DatabaseOutage("away"), DatabaseUnavailable, "away"),
    (
        MissingExtra("holidays", "exclude.holidays"),
        ImportError,
        "exclude.holidays needs an extra: pip install 'headway-scheduler[holidays]'",
    ),
    (
        KeyReused("abc"),
        HeadwayError,
        "idempotency key 'abc' was used for another request; make up a new one for each",
    ),
    (
        QueueFull(9, "in group 'users'"),
        HeadwayError,
        "9 entries wait already in group 'users'; come back when fewer do (max_queued_per_group)",
    ),
    (
        RemovalRefused("warehouse", 1),
        HeadwayError,
        "nothing was applied: 1 manifest of 'warehouse' would be removed, more than half; if "
        "that is meant, add --allow-removal",
    ),
    (
        RemovalRefused("warehouse", 2),
        HeadwayError,
        "nothing was applied: 2 manifests of 'warehouse' would be removed, more than half; if "
        "that is meant, add --allow-removal",
    ),
    (
        SchemaMissing(),
        SchemaError,
        "the database has no headway tables yet; run: headway db migrate",
    ),
    (
        SchemaOutdated(3, 5),
        SchemaError,
        "the database is at schema version 3, this headway needs 5; run: headway db migrate",
    ),
    (
        SchemaForeign(4, "theirs", "ours"),
        SchemaError,
        "migration 4 of the database is called 'theirs', in this headway 'ours': another line of "
        "development has migrated it; use the headway that did, or a new database",
    ),
    (
        SchemaTooNew(7, 5),
        SchemaError,
        "the database is newer (schema version 7) than this headway knows (5); upgrade headway "
        "on this machine",
    ),
    (InputError("load: bad", [(("rows", 1), "is missing")]), ValueError, "load: bad"),
    (SettingsError("bad"), ValueError, "bad"),
    (
        CircularDependencyError("manifests", ["b", "a"]),
        DefinitionError,
        "Circular dependency detected among manifests: [a, b]. Manifests must form a directed "
        "acyclic graph (DAG).",
    ),
]


@pytest.mark.parametrize(
    ("error", "kind", "words"), WORDS, ids=lambda one: type(one).__name__ if one else None
)
def test_an_error_says_what_is_wrong_and_says_it_again_elsewhere(
    error: HeadwayError, kind: type[Exception], words: str
) -> None:
    assert isinstance(error, HeadwayError) and isinstance(error, kind)
    assert str(error) == words
    again = copy.copy(error)  # as another process gets it
    assert (type(again), str(again), vars(again)) == (type(error), words, vars(error))


def test_errors_carry_what_they_are_about() -> None:
    assert UnknownWorkflow("load").name == "load"
    assert ManifestNotApplied("load").external_id == "load"
    assert GroupNotFound("users").name == "users"
    assert StepFailed("read").step == "read"
    assert ChangedMeanwhile("group 'users'", "64f1").version == "64f1"
    assert MissingExtra("holidays", "this").extra == "holidays"
    assert InputError("bad", [(("rows", 1), "is missing")]).places == ((("rows", 1), "is missing"),)
    assert InputError("bad").places == ()


def test_a_lost_database_is_raised_again_as_an_error_of_its_own() -> None:
    first = DatabaseLost("/srv/a.db-wal", "/srv/a.db", "deleted")
    again = first.again()
    assert again is not first
    assert (type(again), str(again), vars(again)) == (DatabaseLost, str(first), vars(first))
