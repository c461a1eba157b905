"""Headway: what a user writes workflows and manifests with."""

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar, Unpack

from headway.config import Settings, unknown_variables
from headway.definition.azolla import Azolla
from headway.definition.builder import Chain
from headway.definition.cancelling import Cancelled
from headway.definition.collection import Collection
from headway.definition.explaining import Explaining
from headway.definition.interventions import DeadLetters
from headway.definition.making import Item, Maker
from headway.definition.operators import Operators
from headway.definition.options import ScheduleOptions
from headway.definition.queueing import Queueing
from headway.definition.registry import Reference
from headway.definition.replacing import Replacement, SandboxedAlready, open_of_a_sandbox
from headway.definition.runtime import NOT_GIVEN, Runtime
from headway.definition.task_servers import TaskServers
from headway.definition.workflows import excluded_by_name
from headway.domain.declaration import Declaration
from headway.domain.names import checked_name
from headway.domain.schedule import Once, Schedule
from headway.observe import Observer
from headway.store.engine import Clock, Store
from headway.store.urls import DEFAULT_DATABASE_URL as DEFAULT_DATABASE_URL
from headway.store.urls import anchored
from headway.store.within import Redirectable

logger = logging.getLogger("headway")

F = TypeVar("F", bound=Callable[..., Any])


class Headway(Operators, Queueing):
    """An application: its workflows, its manifests, its settings and its database.

    Declaring writes nothing; ``headway run module:hw`` applies what was declared and runs it.

    >>> from headway import every
    >>> hw = Headway("warehouse", database_url="sqlite:///warehouse.db", max_active_jobs=4)
    >>> @hw.workflow
    ... def extract(table: str) -> None: ...
    >>> hw.schedule(extract, "extract-users", "users", every(hours=1), group="users").root
    'extract-users'
    """

    def __init__(
        self, name: str = "headway", *, database_url: str | None = None, **settings: Any
    ) -> None:
        self.name = checked_name("application name", name)
        self.database_url: str = anchored(
            database_url or os.environ.get("HEADWAY_DATABASE_URL") or DEFAULT_DATABASE_URL
        )
        self.settings = Settings.from_sources(os.environ, **excluded_by_name(settings))
        super().__init__()
        self.observer = Observer()
        self.task_servers = TaskServers(self.registry)
        self._collection = Collection()
        self.registry.declared = self._collection
        self._database: Redirectable | None = None
        self._runtime: Runtime | None = None
        self._opened_by: int | None = None
        self._opening = threading.Lock()
        self._replacement: Replacement | None = None
        for sentence in unknown_variables(os.environ):
            logger.warning(sentence)

    def schedule(
        self,
        workflow: Reference,
        external_id: str,
        input: Any = None,
        schedule: Schedule | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> Chain:
        """Declare a manifest: what runs, under which id, with which input, and when.

        Without a schedule it only runs when somebody asks for it. The group is the external id
        itself unless one is named. Dependents follow: ``hw.schedule(...).then_include(...)``.

        >>> from headway import cron
        >>> hw = Headway()
        >>> @hw.workflow
        ... def report(day: int) -> None: ...
        >>> hw.schedule(report, "monthly-report", 1, cron("0 6 1 * *")).root
        'monthly-report'
        """
        return self._chain().schedule(workflow, external_id, input, schedule, **options)

    def schedule_once(
        self,
        workflow: Reference,
        external_id: str,
        input: Any,
        at: Once,
        **options: Unpack[ScheduleOptions],
    ) -> Chain:
        """Declare a manifest that runs a single time and is then switched off.

        >>> from datetime import UTC, datetime
        >>> from headway import once
        >>> hw = Headway()
        >>> @hw.workflow
        ... def migrate(table: str) -> None: ...
        >>> at = once(datetime(2030, 1, 1, tzinfo=UTC))
        >>> hw.schedule_once(migrate, "migrate-users", "users", at).cursor is None
        True
        """
        return self._chain().schedule_once(workflow, external_id, input, at, **options)

    def schedule_many(
        self,
        workflow: Reference,
        name: str,
        items: Iterable[Item],
        schedule: Schedule,
        **options: Unpack[ScheduleOptions],
    ) -> Chain:
        """Declare a batch: one manifest ``name-id`` per item, all in the group *name*.

        >>> from headway import Item, every
        >>> hw = Headway()
        >>> @hw.workflow
        ... def extract(table: str) -> None: ...
        >>> tables = [Item(table, table) for table in ("users", "orders")]
        >>> _ = hw.schedule_many(extract, "extract", tables, every(minutes=30))
        >>> [manifest.external_id for manifest in hw.declaration().manifests]
        ['extract-users', 'extract-orders']
        """
        return self._chain().schedule_many(workflow, name, items, schedule, **options)

    def _chain(self) -> Chain:
        return Chain(Maker(self.registry), self._collection.add)

    def declaration(self) -> Declaration:
        """Everything declared so far, as one value.

        >>> len(Headway().declaration().manifests)
        0
        """
        return self._collection.declaration(self.name)

    @property
    def runtime(self) -> Runtime:
        """Changing manifests while everything runs: the scheduling calls, effective at once.

        >>> hw = Headway()
        >>> hw.runtime.owner  # doctest: +SKIP
        'headway:runtime'
        """
        if (replacement := self._replacement) is not None:
            return replacement.runtime
        with self._opening:
            if self._runtime is None or self._opened_by != os.getpid():
                # Connections do not survive a fork: two processes would talk on one.
                most = self.settings.max_queued_per_group
                self._database = Redirectable(self.open_store())
                self._runtime = Runtime(self.name, self.registry, self._database, most_queued=most)
                self._opened_by = os.getpid()
        return self._runtime

    @property
    def dead_letters(self) -> DeadLetters:
        """Manifests that failed too often: to be looked at, requeued or acknowledged.

        >>> hw = Headway()
        >>> hw.dead_letters.acknowledge_all("known and mended")  # doctest: +SKIP
        Resolutions(count=2, message='2 acknowledged')
        """
        return self.runtime.dead_letters

    @property
    def azolla(self) -> Azolla:
        """What people note about this deployment: captures, objectives, and why work rests.

        >>> hw.azolla.capture("orders of Monday look too low")  # doctest: +SKIP
        """
        return self.runtime.azolla

    def cancel(
        self,
        external_id: str | None = None,
        *,
        group: str | None = None,
        execution: int | None = None,
        entry: int | None = None,
        reason: str | None = None,
    ) -> Cancelled:
        """Cancel queued, pending and running work of a manifest, a group, an execution or an entry.

        What has not started never will; what runs is asked to stop, on any server, and ends as
        cancelled unless it completes first. The answer says what was reached.

        >>> hw.cancel("extract-users", reason="wrong day")  # doctest: +SKIP
        Cancelled(cancelled=1, requested=0, finished=None)
        """
        return self.runtime.cancelling.cancel(external_id, group, execution, entry, reason)

    def enable(
        self, external_id: str, *, expected: str | None = None, connection: Any = None
    ) -> None:
        """Switch a manifest on; with *expected*, only if it still has that version.

        >>> hw.enable("extract-users")  # doctest: +SKIP
        """
        self.runtime.enable(external_id, expected=expected, connection=connection)

    def disable(
        self, external_id: str, *, expected: str | None = None, connection: Any = None
    ) -> None:
        """Switch a manifest off until somebody enables it, across redeployments.

        >>> hw.disable("extract-users")  # doctest: +SKIP
        """
        self.runtime.disable(external_id, expected=expected, connection=connection)

    def set_group(
        self,
        group: str,
        *,
        max_active_jobs: int | None = NOT_GIVEN,
        priority: int = NOT_GIVEN,
        enabled: bool = NOT_GIVEN,
        expected: str | None = None,
        connection: Any = None,
    ) -> None:
        """Change a group's cap, priority or switch, across redeployments.

        With *expected*, a version read before, only if nobody has changed the group since then.

        >>> hw.set_group("nightly", max_active_jobs=2, enabled=True)  # doctest: +SKIP
        """
        self.runtime.set_group(
            group,
            max_active_jobs=max_active_jobs,
            priority=priority,
            enabled=enabled,
            expected=expected,
            connection=connection,
        )

    def unschedule(self, external_id: str, *, connection: Any = None) -> None:
        """Remove a manifest softly: its history stays, its id is free again.

        >>> hw.unschedule("extract-users")  # doctest: +SKIP
        """
        self.runtime.unschedule(external_id, connection=connection)

    def open_store(self, *, clock: Clock | None = None) -> Store:
        """Open this application's database; the caller closes it.

        >>> Headway(database_url="sqlite:///app.db").open_store().close()  # doctest: +SKIP
        """
        if clock is None and (replacement := self._replacement) is not None:
            return replacement.open_store()
        if clock is None and (store := open_of_a_sandbox(self.name)) is not None:
            return store
        return Store(self.database_url, clock=clock)

    @property
    def _explaining(self) -> Explaining:
        replacement = self._replacement
        return super()._explaining if replacement is None else replacement.explaining


def refuse_replaced(app: Headway) -> None:
    """Raise :class:`SandboxedAlready` if *app* acts on the database of a sandbox.

    >>> refuse_replaced(Headway())
    """
    if app._replacement is not None:
        raise SandboxedAlready(app.name)


@contextmanager
def replaced(app: Headway, replacement: Replacement) -> Iterator[None]:
    """Have *app* act on the *replacement* while the block lasts, in every thread.

    >>> with replaced(hw, replacement):  # doctest: +SKIP
    ...     hw.trigger("extract-users")
    """
    with ExitStack() as closing:
        with app._opening:
            refuse_replaced(app)
            app._replacement = replacement
            closing.callback(setattr, app, "_replacement", None)
            if app._database is not None:  # what was taken from the application before follows
                closing.enter_context(app._database.redirected(replacement.runtime.store))
        yield
