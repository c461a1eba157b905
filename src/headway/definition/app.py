"""Headway: what a user writes workflows and manifests with."""

import logging
import os
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, TypeVar, overload

from headway.config import Settings, unknown_variables
from headway.definition.registry import Reference, Registry
from headway.domain.declaration import Declaration
from headway.domain.manifest import Group, Manifest
from headway.domain.names import checked_name
from headway.domain.schedule import Cron, Every, Never, Once, Schedule
from headway.errors import DefinitionError
from headway.observe import Observer
from headway.run import Run
from headway.steps import function_name
from headway.store.engine import Clock, Store
from headway.workflow import Workflow

logger = logging.getLogger("headway")

DEFAULT_DATABASE_URL = "sqlite:///headway.db"

F = TypeVar("F", bound=Callable[..., Any])


class Headway:
    """An application: its workflows, its manifests, its settings and its database.

    Declaring writes nothing; ``headway run module:hw`` applies what was declared and runs it.

    >>> from headway import every
    >>> hw = Headway("warehouse", database_url="sqlite:///warehouse.db", max_active_jobs=4)
    >>> @hw.workflow
    ... def extract(table: str) -> None: ...
    >>> hw.schedule(extract, "extract-users", "users", every(hours=1), group="users").external_id
    'extract-users'
    """

    def __init__(
        self, name: str = "headway", *, database_url: str | None = None, **settings: Any
    ) -> None:
        self.name = checked_name("application name", name)
        self.database_url = (
            database_url or os.environ.get("HEADWAY_DATABASE_URL") or DEFAULT_DATABASE_URL
        )
        self.settings = Settings.from_sources(os.environ, **_by_name(settings))
        self.registry = Registry()
        self.observer = Observer()
        self._groups: dict[str, Group] = {}
        self._manifests: dict[str, Manifest] = {}
        for sentence in unknown_variables(os.environ):
            logger.warning(sentence)

    @overload
    def workflow(self, name_or_function: F, /) -> F: ...

    @overload
    def workflow(self, name_or_function: str, /) -> Callable[[F], F]: ...

    @overload
    def workflow(
        self, name_or_function: str, /, *, steps: Iterable[Callable[..., Any]]
    ) -> Workflow[Run]: ...

    def workflow(
        self, name_or_function: Any, /, *, steps: Iterable[Callable[..., Any]] | None = None
    ) -> Any:
        """Register a workflow: a decorated function, or a name with a chain of steps.

        A step takes the previous step's value and, if a parameter is annotated :class:`Run`, the
        run it belongs to. Sync and async steps mix freely.

        >>> hw = Headway()
        >>> def extract(table: str) -> list[int]: ...
        >>> async def load(rows: list[int], run: Run) -> None: ...
        >>> hw.workflow("import", steps=(extract, load)).name
        'import'
        """
        if steps is not None:
            return self.registry.register(name_or_function, steps, Run).workflow
        if isinstance(name_or_function, str):
            return lambda function: self._register(name_or_function, function)
        return self._register(None, name_or_function)

    def _register(self, name: str | None, function: F) -> F:
        self.registry.register(name, (function,), Run)
        return function

    def schedule(
        self,
        workflow: Reference,
        external_id: str,
        input: Any = None,
        schedule: Schedule = Never(),  # noqa: B008  a frozen value without state
        *,
        group: str | Group | None = None,
        priority: int = 0,
        max_retries: int | None = None,
        timeout: timedelta | None = None,
        enabled: bool = True,
    ) -> Manifest:
        """Declare a manifest: what runs, under which id, with which input, and when.

        Without a schedule it only runs when somebody asks for it. The group is the external id
        itself unless one is named.

        >>> from headway import cron
        >>> hw = Headway()
        >>> @hw.workflow
        ... def report(day: int) -> None: ...
        >>> hw.schedule(report, "monthly-report", 1, cron("0 6 1 * *")).group.name
        'monthly-report'
        """
        registered = self.registry.find(workflow)
        subject = checked_name("external_id", external_id)
        if not isinstance(schedule, Every | Cron | Once | Never):
            raise DefinitionError(
                f"{subject}: schedule = {schedule!r}: must be every(...), cron(...) or once(...); "
                "for example every(hours=1)"
            )
        manifest = Manifest(
            external_id=subject,
            workflow=registered.name,
            input=registered.input_type.encode(input, subject),
            input_type=registered.input_type.name,
            schedule=schedule,
            group=self._group(group, subject, priority),
            priority=priority,
            max_retries=max_retries,
            timeout=timeout,
            enabled=enabled,
        )
        return self._declare(manifest)

    def _group(self, group: str | Group | None, subject: str, priority: int) -> Group:
        if not isinstance(group, Group):
            name = checked_name("group", subject if group is None else group)
            return self._groups.get(name) or Group(name, priority=priority)
        known = self._groups.setdefault(group.name, group)
        if known != group:
            raise DefinitionError(
                f"{subject}: group {group.name!r} is declared twice with different values "
                f"({known} and {group}); declare it once and name it elsewhere: "
                f"group={group.name!r}"
            )
        return group

    def _declare(self, manifest: Manifest) -> Manifest:
        if manifest.external_id in self._manifests:
            raise DefinitionError(
                f"external_id = {manifest.external_id!r}: is already declared; give each manifest "
                f"an id of its own, for example '{manifest.external_id}-2'"
            )
        self._manifests[manifest.external_id] = manifest
        return manifest

    def declaration(self) -> Declaration:
        """Everything declared so far, as one value.

        >>> len(Headway().declaration().manifests)
        0
        """
        return Declaration(self.name, dict(self._groups), tuple(self._manifests.values()))

    def open_store(self, *, clock: Clock | None = None) -> Store:
        """Open this application's database; the caller closes it.

        >>> Headway(database_url="sqlite:///app.db").open_store().close()  # doctest: +SKIP
        """
        return Store(self.database_url, clock=clock)


def _by_name(settings: dict[str, Any]) -> dict[str, Any]:
    """Workflows in ``exclude_from_max_active_jobs`` may be given as functions or by name."""
    excluded = settings.get("exclude_from_max_active_jobs")
    if not isinstance(excluded, list | tuple | set | frozenset):
        return settings
    names = [_workflow_name(one) for one in excluded]
    return settings | {"exclude_from_max_active_jobs": tuple(names)}


def _workflow_name(one: Any) -> Any:
    if isinstance(one, Workflow):
        return one.name
    return function_name(one) if callable(one) else one
