"""Server processes as others see them: how many jobs each can run, and which workflows.

A row that is not renewed expires (``leases``); then nothing more is dispatched for its sake.
"""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from sqlalchemy import bindparam, exists, or_, select

from headway.domain.routing import LOCAL, Routing, Share, merged, workflows_of
from headway.store.tables import execution, execution_history, server
from headway.store.transaction import Transaction, word

MANAGER = "manager"
DISPATCHER = "dispatcher"
EXECUTOR = "executor"


@dataclass(frozen=True)
class ServerProcess:
    """One process of headway, as it presents itself."""

    id: str
    host: str
    pid: int
    roles: Collection[str]
    workflows: Collection[str]
    slots: int
    routing: Routing = field(default_factory=Routing)

    def said(self) -> dict[str, str]:
        """What its row says of it as text: its roles, the workflows it knows, what goes where."""
        return {
            "roles": json.dumps(sorted(self.roles)),
            "workflows": json.dumps(sorted(self.workflows)),
            "routes": self.routing.to_json(),
        }


@dataclass(frozen=True)
class Workers:
    """What the living workers can do together.

    ``shares`` is what they take, ``workflows`` that in whatever group; ``routed`` are workflows
    that living dispatchers send to other task servers, ``delivered`` those that living executors
    run for them. Those who are ``for_themselves`` are all the workers there are, take the same, and
    are dispatchers as well: each starts itself what it dispatches. With ``everybody`` it is one of
    them, and there is no other process at all. ``ids`` are those of all living processes, in order,
    and the row of each says the same for as long as it lives.
    """

    slots: int
    workflows: frozenset[str]
    shares: tuple[Share, ...] = ()
    routed: frozenset[str] = frozenset()
    delivered: frozenset[str] = frozenset()
    for_themselves: frozenset[str] = frozenset()
    everybody: bool = False
    ids: tuple[str, ...] = ()

    @cached_property
    def in_no_group(self) -> frozenset[str]:
        """What they take of that which has no group."""
        return workflows_of(one for one in self.shares if not one.only)


def claimed_since(tx: Transaction, moment: datetime) -> bool:
    """Whether any of the own workers has started anything since *moment*."""
    live = exists().where(execution.c.started_at >= moment, execution.c.task_server == word(LOCAL))
    # By the time it ended, which is indexed; whatever started since has ended since.
    history = execution_history.c
    ended = exists().where(
        history.finished_at >= moment,
        history.started_at >= moment,
        history.task_server == word(LOCAL),
    )
    return bool(tx.connection.execute(select(or_(live, ended))).scalar_one())


LIVING = select(
    server.c.id, server.c.slots, server.c.roles, server.c.workflows, server.c.routes
).where(server.c.expires_at > bindparam("now"))


class _Row(NamedTuple):
    """What is read of a process, in the order of ``LIVING``."""

    id: str
    slots: int
    roles: str
    workflows: str
    routes: str


def living_workers(tx: Transaction) -> Workers:
    """The slots of every worker whose row has not expired, and what they take."""
    return _all_in(tuple(tx.ask(LIVING, {"now": tx.now})))


def workers_of(process: ServerProcess) -> Workers:
    """What *process* can do as long as it is the only one."""
    return _all_in((_Row(process.id, process.slots, **process.said()),))


# Asked in every cycle, and the same for as long as nobody comes or goes.
@lru_cache(maxsize=4)
def _all_in(rows: tuple[Any, ...]) -> Workers:
    working = [row for row in rows if row.slots > 0]
    shares = _shared(Routing.local, working)
    sent = _shared(Routing.elsewhere, _with_role(DISPATCHER, rows))
    run = [json.loads(row.workflows) for row in _with_role(EXECUTOR, rows)]
    slots = sum(row.slots for row in rows)
    delivered = frozenset[str]().union(*run)
    return Workers(
        slots,
        workflows_of(shares),
        shares,
        workflows_of(sent),
        delivered,
        for_themselves := _for_themselves(working),
        everybody=len(for_themselves) == len(rows) == 1,
        ids=tuple(sorted(row.id for row in rows)),
    )


def _for_themselves(working: Sequence[Any]) -> frozenset[str]:
    """The ids of all workers, if none of them needs another to dispatch something for it."""
    alike = len({(row.workflows, row.routes) for row in working}) == 1
    dispatching = len(_with_role(DISPATCHER, working)) == len(working)
    return frozenset(row.id for row in working) if alike and dispatching else frozenset()


def living_managers(tx: Transaction) -> list[str]:
    """The ids of servers whose row has not expired and that lead, or would."""
    living = select(server.c.id, server.c.roles).where(server.c.expires_at > tx.now)
    rows = tx.connection.execute(living.order_by(server.c.id)).all()
    return [row.id for row in _with_role(MANAGER, rows)]


def living_roles(tx: Transaction) -> frozenset[str]:
    """What servers whose row has not expired do, all of them together."""
    living = select(server.c.roles).where(server.c.expires_at > tx.now)
    rows = tx.connection.execute(living).scalars()
    return frozenset[str]().union(*(json.loads(roles) for roles in rows))


def _with_role(role: str, rows: Sequence[Any]) -> list[Any]:
    return [row for row in rows if role in json.loads(row.roles)]


def _shared(
    share: Callable[[Routing, Collection[str]], tuple[Share, ...]], rows: Sequence[Any]
) -> tuple[Share, ...]:
    """What the processes of these rows share; most of them say the same."""
    said = sorted({(row.workflows, row.routes) for row in rows})
    return merged(
        one
        for workflows, routes in said
        for one in share(Routing.from_json(routes), json.loads(workflows))
    )
