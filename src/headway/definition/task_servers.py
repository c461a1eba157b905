"""Where work is sent: ``hw.task_servers`` of an application."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from headway.definition.registry import Reference, Registry
from headway.domain.manifest import Group
from headway.domain.names import checked_name
from headway.domain.routing import LOCAL, RelayedServer, Routing, Share, TaskServer, workflows_of
from headway.domain.text import shown
from headway.domain.work_queue import WorkQueueEntry
from headway.errors import DefinitionError


class TaskServers:
    """The task servers of an application beside headway's own workers, and what goes to which.

    >>> from headway import Headway
    >>> class Print:
    ...     def submit(self, execution_ids): print(*execution_ids)
    >>> hw = Headway()
    >>> hw.task_servers.add("print", Print(), groups=["reports"])
    >>> hw.task_servers.routing.server_of("render", "reports")
    'print'
    """

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._servers: dict[str, TaskServer] = {}
        self._relayed: dict[str, RelayedServer] = {}
        self._away: frozenset[str] = frozenset()
        self._routing = Routing()
        # Asked for with every start, and seldom another.
        self._local: tuple[tuple[Routing, tuple[str, ...]], frozenset[str]] | None = None

    @property
    def routing(self) -> Routing:
        """What goes where, as said so far."""
        return self._routing

    def __getitem__(self, name: str) -> TaskServer:
        """The task server that was added under this name and is handed work after the commit."""
        return self._servers[name]

    @property
    def relayed(self) -> Mapping[str, RelayedServer]:
        """Those that are told through the outbox."""
        return self._relayed

    @property
    def away(self) -> frozenset[str]:
        """Those of them that did not answer when they were last asked."""
        return self._away

    def note_away(self, name: str, away: bool) -> None:
        """Send nothing more to the server of this name, or do so again.

        >>> from headway import Headway
        >>> hw = Headway()
        >>> hw.task_servers.note_away("celery", True)
        >>> hw.task_servers.away
        frozenset({'celery'})
        """
        self._away = self._away | {name} if away else self._away - {name}

    def add(
        self,
        name: str,
        server: TaskServer | RelayedServer,
        *,
        workflows: Iterable[Reference] = (),
        groups: Iterable[str | Group] = (),
        default: bool = False,
    ) -> None:
        """Send work to *server*: these workflows, these groups, or all that nothing is said about.

        What is said about a workflow wins over what is said about its group.

        >>> from headway import Headway
        >>> hw = Headway()
        >>> hw.task_servers.add("print", print)
        Traceback (most recent call last):
        headway.errors.DefinitionError: task server 'print': server = <built-in function print>: \
must have submit(execution_ids); for example class Mine: def submit(self, execution_ids): ...
        """
        name = checked_name("task server", name)
        self._check(name, server)
        routing = self._extended(name, workflows, groups)
        if default:
            if routing.default != LOCAL:
                raise _twice(name, "what nothing is said about", routing.default)
            routing = replace(routing, default=name)
        self._routing = routing
        if isinstance(server, RelayedServer):
            self._relayed[name] = server
        else:
            self._servers[name] = server

    def keep_local(
        self, *, workflows: Iterable[Reference] = (), groups: Iterable[str | Group] = ()
    ) -> None:
        """Leave these workflows and groups to headway's own workers, whatever else is said.

        >>> from headway import Headway
        >>> hw = Headway()
        >>> hw.task_servers.keep_local(groups=["small"])
        >>> hw.task_servers.routing.by_group
        {'small': 'local'}
        """
        self._routing = self._extended(LOCAL, workflows, groups)

    def routed(self, entries: Iterable[WorkQueueEntry]) -> list[WorkQueueEntry]:
        """Each of *entries* with its task server.

        What this application does not know is not its to send anywhere: the own workers take it,
        if one of them says that it does.
        """
        if not self._any():
            return list(entries)
        known = frozenset(self.registry.names())
        return [
            one._replace(task_server=self._routing.server_of(one.workflow, one.group_name))
            if one.workflow in known
            else one
            for one in entries
        ]

    def elsewhere(self) -> tuple[Share, ...]:
        """What of this application's work goes to other servers than headway's own workers."""
        return self._routing.elsewhere(self.registry.names()) if self._any() else ()

    def reachable(self, absent: Collection[str] = ()) -> tuple[Share, ...]:
        """The same without what would go to a server that does not answer.

        *absent* are those that did not answer another process.
        """
        away = self._away.union(absent)
        return self._routing.elsewhere(self.registry.names(), away) if self._any() else ()

    def _any(self) -> bool:
        return bool(self._servers or self._relayed)

    def local_workflows(self) -> frozenset[str]:
        """The workflows that headway's own workers take, at least in some group.

        >>> from headway import Headway
        >>> hw = Headway()
        >>> hw.workflow("load")(lambda: None) and hw.task_servers.local_workflows()
        frozenset({'load'})
        """
        asked = (self._routing, self.registry.names())
        if self._local is None or self._local[0] != asked:
            self._local = (asked, workflows_of(self._routing.local(asked[1])))
        return self._local[1]

    def all_handed_to(self, server: TaskServer) -> "TaskServers":
        """The same names and routes, but *server* behind each of them.

        >>> TaskServers(Registry()).all_handed_to(server=None).routing
        Routing(default='local', by_workflow={}, by_group={})
        """
        other = TaskServers(self.registry)
        other._routing = self._routing
        other._servers = dict.fromkeys([*self._servers, *self._relayed], server)
        return other

    def _check(self, name: str, server: TaskServer | RelayedServer) -> None:
        if name == LOCAL or name in self._servers or name in self._relayed:
            whose = "headway's own workers" if name == LOCAL else "another task server"
            raise DefinitionError(
                f"task server {name!r}: is the name of {whose}; choose another, for example "
                f"'{name}-2'"
            )
        told = isinstance(server, RelayedServer) or callable(getattr(server, "submit", None))
        if isinstance(server, type) or not told:
            raise DefinitionError(
                f"task server {name!r}: server = {shown(server)}: must have submit(execution_ids); "
                "for example class Mine: def submit(self, execution_ids): ..."
            )

    def _extended(
        self, name: str, workflows: Iterable[Reference], groups: Iterable[str | Group]
    ) -> Routing:
        before = self._routing
        named = [self.registry.find(one).name for one in _listed(name, "workflows", workflows)]
        grouped = [_group_name(one) for one in _listed(name, "groups", groups)]
        return Routing(
            before.default,
            _with(before.by_workflow, named, name, "workflow"),
            _with(before.by_group, grouped, name, "group"),
        )


def _group_name(one: str | Group) -> str:
    return checked_name("group", one.name if isinstance(one, Group) else one)


def _listed(name: str, field: str, values: Any) -> Iterable[Any]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable) or callable(values):
        raise DefinitionError(
            f"task server {name!r}: {field} = {shown(values)}: must be a list; for example "
            f"{field}=['nightly']"
        )
    return values


def _with(
    before: Mapping[str, str], names: Iterable[str], server: str, kind: str
) -> dict[str, str]:
    after = dict(before)
    for one in names:
        if after.get(one, server) != server:
            raise _twice(server, f"{kind} {one!r}", after[one])
        after[one] = server
    return after


def _twice(server: str, what: str, other: str) -> DefinitionError:
    return DefinitionError(
        f"task server {server!r}: {what} already goes to {other!r}; leave it out of one of them"
    )
