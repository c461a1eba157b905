"""Every exception headway raises on purpose.

::

    HeadwayError
    ├── DefinitionError (ValueError)    something declared in code is wrong
    │   ├── OwnedByAnother              another application owns this external id
    │   ├── ParentNotFound              a dependent names a parent that does not exist
    │   ├── CircularDependencyError     manifests, or their groups, wait for one another
    │   ├── InputError                  the input does not fit the workflow's declared type
    │   └── ScheduleError               a schedule that could never mean anything
    ├── SettingsError (ValueError)      a setting is unknown or out of range
    ├── AppNotFound (LookupError)       "module:app" names nothing that can be run
    ├── UnknownWorkflow (LookupError)   no registered workflow has this name
    ├── ManifestNotFound (LookupError)  no manifest has this external id
    │   └── ManifestNotApplied          the code declares it, but the database does not have it
    ├── GroupNotFound (LookupError)     no group has this name
    ├── ExecutionNotFound (LookupError) no execution has this id
    ├── EntryNotFound (LookupError)     no queue entry has this id
    ├── TokenNotFound (LookupError)     no valid token has this name
    ├── StepFailed                      a step of a workflow raised; the cause is what it raised
    ├── ActivationError                 a dormant dependent cannot be activated
    │   ├── NoParentRunError            the run belongs to no manifest
    │   ├── NotDormantError             the manifest named is not a dormant dependent
    │   ├── NotYourDependentError       it depends on another manifest
    │   └── DependentBusyError          it is queued or running, and rejects activations then
    ├── TooLate                         a later run has written already
    ├── IllegalTransition               an execution cannot move between these states
    ├── CreatedMeanwhile                somebody else created the same manifest at the same moment
    ├── ChangedMeanwhile                somebody else changed what was to be changed
    ├── KeyReused                       an idempotency key was used for another request
    ├── QueueFull                       so much waits already that no more is queued beside it
    ├── RemovalRefused                  applying would remove most of what an application declared
    ├── SchemaError                     the database's schema does not fit this version
    │   ├── SchemaMissing
    │   ├── SchemaOutdated
    │   ├── SchemaForeign
    │   └── SchemaTooNew
    ├── DatabaseUnavailable             the database is away, restarting, locked or read-only
    │   ├── DatabaseOutage              the same, of what passes by waiting
    │   └── DatabaseLost                the SQLite file in use was deleted or replaced
    ├── MissingExtra (ImportError)      an optional part is used but not installed
    └── JobCancelled                    raised inside a run whose cancellation was requested
"""

from collections.abc import Iterable

from headway.errors.base import HeadwayError as HeadwayError
from headway.errors.refusals import KeyReused as KeyReused
from headway.errors.refusals import QueueFull as QueueFull
from headway.errors.refusals import RemovalRefused as RemovalRefused
from headway.errors.schema import SchemaError as SchemaError
from headway.errors.schema import SchemaForeign as SchemaForeign
from headway.errors.schema import SchemaMissing as SchemaMissing
from headway.errors.schema import SchemaOutdated as SchemaOutdated
from headway.errors.schema import SchemaTooNew as SchemaTooNew

_NAMED_MEMBERS = 20


class DefinitionError(HeadwayError, ValueError):
    """A workflow or manifest is declared wrongly; raised at the declaring call."""


class CircularDependencyError(DefinitionError):
    """Manifests or manifest groups depend on one another in a circle; *members* are those on it.

    >>> print(CircularDependencyError("manifests", ["load", "extract"]))
    Circular dependency detected among manifests: [extract, load]. Manifests must form a directed \
acyclic graph (DAG).
    """

    def __init__(self, kind: str, members: Iterable[str]) -> None:
        self.kind = kind
        self.members = tuple(sorted(members))
        named = list(self.members[:_NAMED_MEMBERS])
        if unnamed := len(self.members) - len(named):
            named.append(f"… and {unnamed} more")
        super().__init__(
            f"Circular dependency detected among {kind}: [{', '.join(named)}]. "
            f"{kind.capitalize()} must form a directed acyclic graph (DAG)."
        )


class InputError(DefinitionError):
    """An input does not fit the type its workflow declares; *places* says where, and what is wrong
    there.

    >>> InputError("load: input field 'rows' is missing", [(("rows",), "is missing")]).places
    ((('rows',), 'is missing'),)
    """

    def __init__(
        self, message: str, places: Iterable[tuple[tuple[str | int, ...], str]] = ()
    ) -> None:
        super().__init__(message)
        self.places = tuple(places)


class OwnedByAnother(DefinitionError):
    """Another application on the same database owns this external id."""

    def __init__(self, external_id: str, owner: str) -> None:
        super().__init__(
            f"external_id = {external_id!r}: belongs to the application {owner!r}; choose another, "
            f"for example '{external_id}-2'"
        )


class ParentNotFound(DefinitionError):
    """A dependent names a parent that does not exist."""

    def __init__(self, child: str, parent: str) -> None:
        super().__init__(
            f"{child}: depends on {parent!r}, but no manifest has that external id; declare it, or "
            "correct the name"
        )


class ScheduleError(DefinitionError):
    """A schedule is malformed or can never fire."""


class SettingsError(HeadwayError, ValueError):
    """A setting is unknown or out of range; the message lists every problem found."""


class AppNotFound(HeadwayError, LookupError):
    """``module:app`` does not lead to a :class:`headway.Headway`."""


class UnknownWorkflow(HeadwayError, LookupError):
    """No workflow is registered under this name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"workflow {name!r} is not registered here; decorate its function with @hw.workflow"
        )
        self.name = name


class ManifestNotFound(HeadwayError, LookupError):
    """No manifest has this external id."""

    def __init__(self, external_id: str) -> None:
        super().__init__(f"no manifest has the external id {external_id!r}")
        self.external_id = external_id


class ManifestNotApplied(ManifestNotFound):
    """The code declares a manifest of this external id, but the database does not have it.

    >>> print(ManifestNotApplied("load-users"))
    manifest 'load-users' is declared in the code but is not in the database: it was never \
applied, or was removed; run: headway apply MODULE:APP
    """

    def __init__(self, external_id: str) -> None:
        super().__init__(external_id)
        self.args = (
            f"manifest {external_id!r} is declared in the code but is not in the database: it was "
            "never applied, or was removed; run: headway apply MODULE:APP",
        )


class ExecutionNotFound(HeadwayError, LookupError):
    """No execution has this id, or the manifest it ran for was removed."""

    def __init__(self, execution_id: object) -> None:
        super().__init__(
            f"execution = {execution_id!r}: no execution has this id whose manifest still exists; "
            "for example the number after # in the log"
        )


class EntryNotFound(HeadwayError, LookupError):
    """No queue entry has this id, and none ever dispatched had it."""

    def __init__(self, entry_id: int) -> None:
        super().__init__(
            f"entry = {entry_id!r}: no entry has this id; for example the number that enqueue "
            "returned"
        )


class TokenNotFound(HeadwayError, LookupError):
    """No token that is not revoked has this name."""

    def __init__(self, name: object) -> None:
        super().__init__(f"no token is called {name!r}, or it is revoked already")


class StepFailed(HeadwayError):
    """A step of a workflow raised an exception, which is this one's ``__cause__``."""

    def __init__(self, step: str) -> None:
        super().__init__(f"step {step!r} failed")
        self.step = step


class GroupNotFound(HeadwayError, LookupError):
    """No group has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no group is called {name!r}")
        self.name = name


class ActivationError(HeadwayError):
    """A dormant dependent cannot be activated."""


class NoParentRunError(ActivationError):
    """Only the run of a manifest can activate its dormant dependents."""

    def __init__(self) -> None:
        super().__init__("this run belongs to no manifest, so it has no dormant dependents")


class NotDormantError(ActivationError):
    """The manifest named is not a dormant dependent."""

    def __init__(self, external_id: str, kind: str) -> None:
        super().__init__(
            f"{external_id!r} is not a dormant dependent but of kind {kind!r}; declare it with "
            "dormant=True"
        )


class NotYourDependentError(ActivationError):
    """The dormant dependent depends on another manifest than the one that is running."""

    def __init__(self, external_id: str, running: str) -> None:
        super().__init__(f"{external_id!r} does not depend on {running!r}, the manifest running")


class DependentBusyError(ActivationError):
    """The dormant dependent is queued or running, and was declared to reject activations then."""

    def __init__(self, external_id: str) -> None:
        super().__init__(f"{external_id!r} is queued or running already")


class TooLate(HeadwayError):
    """A later run of the same work has written already; what this one has made is refused."""

    def __init__(self, name: str, token: int, held: int) -> None:
        late = f"this one ({token}) comes too late"
        super().__init__(f"{name!r} was written by a later run ({held}); {late}")


class IllegalTransition(HeadwayError):
    """An execution was asked to move between two states that are not connected."""

    def __init__(self, current: str, wanted: str) -> None:
        super().__init__(f"an execution that is {current} cannot become {wanted}")
        self.current, self.wanted = current, wanted


class CreatedMeanwhile(HeadwayError):
    """Somebody else created the same manifest at the same moment; the next attempt finds it."""

    def __init__(self) -> None:
        super().__init__(
            "nothing was written: somebody else has created one of these manifests at the same "
            "moment; try again"
        )


class ChangedMeanwhile(HeadwayError):
    """Somebody else changed it after the version named was read; *version* is the one it has now.

    >>> print(ChangedMeanwhile("group 'nightly'", "64f1"))
    group 'nightly' was changed by somebody else meanwhile; look at it again, then repeat the change
    """

    def __init__(self, subject: str, version: str) -> None:
        super().__init__(
            f"{subject} was changed by somebody else meanwhile; look at it again, then repeat the "
            "change"
        )
        self.version = version


class DatabaseUnavailable(HeadwayError):
    """The database cannot be opened or reached, or is locked or read-only.

    ``__cause__`` is the driver's error.
    """


class DatabaseOutage(DatabaseUnavailable):
    """The database is away, restarting or locked, or has ended the session: try again later."""


class DatabaseLost(DatabaseUnavailable):
    """The SQLite file that this process has open was deleted or replaced by another one.

    >>> print(DatabaseLost("/srv/headway.db", "/srv/headway.db", "replaced by another file"))
    database file /srv/headway.db was replaced by another file while this process had it open; \
nothing is started, queued or recorded any more; start this process again to use the file that is \
there now
    """

    def __init__(self, path: str, database: str, what: str) -> None:
        self.path, self.database, self.what = path, database, what
        super().__init__(
            f"database file {path} was {what} while this process had it open; nothing is started, "
            f"queued or recorded any more; {self._advice}"
        )

    @property
    def _advice(self) -> str:
        if self.path != self.database:
            return f"stop every process that uses {self.database}, then start them again"
        if "replaced" in self.what:
            return "start this process again to use the file that is there now"
        return "put the file back if it is needed, then start this process again"

    def again(self) -> "DatabaseLost":
        """The same error, to be raised once more."""
        return DatabaseLost(self.path, self.database, self.what)


class MissingExtra(HeadwayError, ImportError):
    """An optional part of headway is used but its packages are not installed."""

    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs an extra: pip install 'headway-scheduler[{extra}]'")
        self.extra = extra


class JobCancelled(HeadwayError):
    """Raised inside a run whose cancellation was requested; a step need not catch it.

    >>> raise JobCancelled("this run was asked to stop")
    Traceback (most recent call last):
    headway.errors.JobCancelled: this run was asked to stop
    """
