"""Which task server an execution is sent to: by its workflow, else by its group, else by default.

Pure: no database. What is sent where is also said in *shares*, which a query can ask for.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

LOCAL = "local"
"""The name of headway's own workers."""


class TaskServer(Protocol):
    """Takes executions that were just dispatched and sees that somebody runs them.

    ``submit`` is called after their transaction has committed, and should return soon. One that
    raises has taken none of them: their entries are queued again, a little later. What was taken
    and then lost is found after ``stale_pending_timeout``.

    >>> class Printed:
    ...     def submit(self, execution_ids):
    ...         print(*execution_ids)
    >>> server: TaskServer = Printed()
    >>> server.submit([7, 8])
    7 8
    """

    def submit(self, execution_ids: Sequence[int]) -> None:
        """Take these pending executions."""


@runtime_checkable
class RelayedServer(Protocol):
    """Is told of executions through the outbox, which is written with them: none is forgotten.

    A thread of its own calls it, again and again for what nobody has claimed. Nothing is charged
    to a job while it does not answer.

    >>> class Printed:
    ...     def publish(self, execution_id):
    ...         print(execution_id)
    ...     def reach(self): ...
    >>> server: RelayedServer = Printed()
    >>> server.publish(7)
    7
    """

    def publish(self, execution_id: int) -> None:
        """Tell of this execution; returns once that is in safe hands, and raises otherwise."""

    def reach(self) -> None:
        """Raise if it does not answer."""


@dataclass(frozen=True)
class Share:
    """Work of these workflows in all groups but *groups*; with *only*, in none but those.

    >>> Share(frozenset({"load"}), frozenset({"nightly"})).holds("load", None)
    True
    """

    workflows: frozenset[str]
    groups: frozenset[str] = frozenset()
    only: bool = False

    def holds(self, workflow: str, group: str | None) -> bool:
        """Whether a run of *workflow* in *group* belongs to it."""
        return workflow in self.workflows and (group in self.groups) is self.only


def merged(shares: Iterable[Share]) -> tuple[Share, ...]:
    """The same work in as few shares as there are different conditions on groups.

    >>> merged([Share(frozenset({"a"})), Share(frozenset({"b"})), Share(frozenset())])
    (Share(workflows=frozenset({...}), groups=frozenset(), only=False),)
    """
    by_groups: dict[tuple[frozenset[str], bool], frozenset[str]] = {}
    for one in shares:
        if one.workflows and (one.groups or not one.only):
            key = (one.groups, one.only)
            by_groups[key] = by_groups.get(key, frozenset()) | one.workflows
    return tuple(Share(names, groups, only) for (groups, only), names in by_groups.items())


def workflows_of(shares: Iterable[Share]) -> frozenset[str]:
    """The workflows of *shares*, in whatever groups.

    >>> workflows_of([Share(frozenset({"load"}), frozenset({"nightly"}), only=True)])
    frozenset({'load'})
    """
    return frozenset[str]().union(*(one.workflows for one in shares))


@dataclass(frozen=True)
class Routing:
    """Names of task servers: what is said about a workflow wins over what is said about a group.

    >>> routing = Routing(by_workflow={"train": "gpu"}, by_group={"nightly": "batch"})
    >>> routing.server_of("train", "nightly"), routing.server_of("load", None)
    ('gpu', 'local')
    """

    default: str = LOCAL
    by_workflow: Mapping[str, str] = field(default_factory=dict)
    by_group: Mapping[str, str] = field(default_factory=dict)

    def server_of(self, workflow: str, group: str | None) -> str:
        """Return the name of the task server for this workflow in this group.

        >>> Routing(default="celery").server_of("load", "users")
        'celery'
        """
        by_group = self.by_group.get(group, self.default) if group is not None else self.default
        return self.by_workflow.get(workflow, by_group)

    def local(self, workflows: Collection[str]) -> tuple[Share, ...]:
        """What of *workflows* goes to headway's own workers.

        >>> Routing(by_group={"nightly": "batch"}).local(["load"])
        (Share(workflows=frozenset({'load'}), groups=frozenset({'nightly'}), only=False),)
        """
        return self._share(workflows, lambda server: server == LOCAL)

    def elsewhere(self, workflows: Collection[str], but: Collection[str] = ()) -> tuple[Share, ...]:
        """What of *workflows* goes to other task servers, *but* for those.

        >>> Routing(by_group={"nightly": "batch"}).elsewhere(["load"])
        (Share(workflows=frozenset({'load'}), groups=frozenset({'nightly'}), only=True),)
        """
        return self._share(workflows, lambda server: server != LOCAL and server not in but)

    def _share(
        self, workflows: Collection[str], wanted: Callable[[str], bool]
    ) -> tuple[Share, ...]:
        named = {one for one in workflows if one in self.by_workflow}
        chosen = {one for one in named if wanted(self.by_workflow[one])}
        by_default = wanted(self.default)
        exceptions = frozenset(
            group for group, server in self.by_group.items() if wanted(server) is not by_default
        )
        others = Share(frozenset(workflows) - named, exceptions, only=not by_default)
        return merged([Share(frozenset(chosen)), others])

    def to_json(self) -> str:
        """In words other servers can read.

        >>> Routing().to_json()
        '{"default": "local", "groups": {}, "workflows": {}}'
        """
        said = {
            "default": self.default,
            "groups": dict(self.by_group),
            "workflows": dict(self.by_workflow),
        }
        return json.dumps(said, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Routing":
        """What another server has written; what it leaves out goes to its own workers.

        >>> Routing.from_json("{}") == Routing()
        True
        """
        said = json.loads(text)
        return cls(said.get("default", LOCAL), said.get("workflows", {}), said.get("groups", {}))
