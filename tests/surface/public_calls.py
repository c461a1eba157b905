"""Every public function that may ask the database, with one call of it; and those that never do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Any

import headway
from headway import Headway, Item, every
from headway.definition.azolla import Azolla
from headway.definition.interventions import DeadLetters
from headway.definition.operating import Operator
from headway.definition.operating_azolla import OperatedAzolla
from headway.definition.operating_letters import OperatedDeadLetters
from headway.definition.operating_tokens import OperatedTokens
from headway.definition.runtime import Runtime
from headway.definition.tokens import Tokens
from headway.executor import Executor
from headway.history import History
from headway.store.engine import Store
from headway.testing import Sandbox
from tests.runtime_verbs import LATER, dependents

Call = Callable[[Any], object]

NOBODY = 65534

HOURLY = every(hours=1)


@contextmanager
def unprivileged() -> Iterator[None]:
    """Root may write to anything; another user may not."""
    if os.geteuid() != 0:
        yield
        return
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


@contextmanager
def history_of(hw: Headway) -> Iterator[History]:
    with closing(hw.open_store()) as store:
        yield History(store)


# The objects that an application hands out, by how users write them.
OBJECTS: dict[str, tuple[type, Call]] = {
    "hw": (Headway, lambda hw: hw),
    "hw.runtime": (Runtime, lambda hw: hw.runtime),
    "hw.dead_letters": (DeadLetters, lambda hw: hw.dead_letters),
    "hw.azolla": (Azolla, lambda hw: hw.azolla),
    "hw.tokens": (Tokens, lambda hw: hw.tokens),
    "alice": (Operator, lambda hw: hw.operator("alice")),
    "alice.dead_letters": (OperatedDeadLetters, lambda hw: hw.operator("alice").dead_letters),
    "alice.azolla": (OperatedAzolla, lambda hw: hw.operator("alice").azolla),
    "alice.tokens": (OperatedTokens, lambda hw: hw.operator("alice").tokens),
}
READERS = {f"history.{name}": type(own) for name, own in vars(History(None)).items()}  # type: ignore[arg-type]
OTHERS: dict[str, type] = {"Sandbox": Sandbox, "Executor": Executor, "Run": headway.Run}


def public_functions() -> set[str]:
    """What users can call, by the objects and modules themselves."""
    classes = {name: kind for name, (kind, _) in OBJECTS.items()} | READERS | OTHERS
    methods = {
        f"{owner}.{name}"
        for owner, kind in classes.items()
        for name in dir(kind)
        if not name.startswith("_")
    }
    functions = {f"headway.{name}" for name in headway.__all__ if name != "__version__"}
    return methods | functions


def _together(alice: Operator) -> None:
    with alice.together() as both:
        both.trigger("extract")


def _once(alice: Operator) -> None:
    with alice.once("key-1", "0" * 64) as once:
        once.operator.trigger("extract")


def _open_executor(hw: Headway) -> None:
    with Executor(hw) as executor:
        executor.run(7)


def _check_store(hw: Headway) -> None:
    with closing(hw.open_store()) as store:
        store.check()
        with store.reading(), store.picturing():
            pass


def queueing(own: Any) -> dict[str, Call]:
    """Verbs that applications and operators share, by their name on an object of this name."""
    return {
        f"{own}.trigger": lambda on: on.trigger("extract"),
        f"{own}.trigger_group": lambda on: on.trigger_group("loads"),
        f"{own}.enqueue": lambda on: on.enqueue("work"),
        f"{own}.rerun": lambda on: on.rerun(7),
        f"{own}.enable": lambda on: on.enable("extract"),
        f"{own}.disable": lambda on: on.disable("extract"),
        f"{own}.set_group": lambda on: on.set_group("loads", priority=3),
        f"{own}.unschedule": lambda on: on.unschedule("extract"),
    }


def letters(own: str) -> dict[str, Call]:
    return {
        f"{own}.requeue": lambda on: on.requeue(7),
        f"{own}.requeue_many": lambda on: on.requeue_many([7]),
        f"{own}.requeue_all": lambda on: on.requeue_all(),
        f"{own}.acknowledge": lambda on: on.acknowledge(7),
        f"{own}.acknowledge_many": lambda on: on.acknowledge_many([7]),
        f"{own}.acknowledge_all": lambda on: on.acknowledge_all(),
    }


def noting(own: str) -> dict[str, Call]:
    return {
        f"{own}.capture": lambda on: on.capture("orders look too low"),
        f"{own}.mark_processed": lambda on: on.mark_processed("capture-3f9a1c2b5d6e"),
        f"{own}.objective": lambda on: on.objective("clean up"),
        f"{own}.update": lambda on: on.update("objective-3f9a1c2b5d6e", status="DONE"),
        f"{own}.block": lambda on: on.block("objective-3f9a1c2b5d6e", "USER_INPUT", "which?"),
        f"{own}.resolve": lambda on: on.resolve("blocker-3f9a1c2b5d6e"),
        f"{own}.unpark": lambda on: on.unpark("event-3f9a1c2b5d6e"),
    }


CALLS: dict[str, Call] = {
    **queueing("hw"),
    "hw.enqueue_many": lambda hw: hw.enqueue_many("work", [None, None]),
    "hw.cancel": lambda hw: hw.cancel("extract"),
    "hw.why": lambda hw: hw.why("extract"),
    "hw.request_manifest": lambda hw: hw.request_manifest(),
    "hw.open_store": _check_store,
    **queueing("hw.runtime"),
    "hw.runtime.enqueue_many": lambda on: on.enqueue_many("work", [None, None]),
    "hw.runtime.schedule": lambda on: on.schedule("work", "new", None, HOURLY),
    "hw.runtime.schedule_once": lambda on: on.schedule_once("work", "new", None, LATER),
    "hw.runtime.schedule_many": lambda on: on.schedule_many(
        "work", "new", map(Item, range(600)), HOURLY
    ),
    "hw.runtime.schedule_dependent": lambda on: on.schedule_dependent(
        "work", "new", None, "extract"
    ),
    "hw.runtime.schedule_many_dependent": lambda on: on.schedule_many_dependent(
        "work", "new", dependents(1, 2)
    ),
    **letters("hw.dead_letters"),
    "hw.dead_letters.awaiting": lambda on: on.awaiting(),
    **noting("hw.azolla"),
    "hw.azolla.captures": lambda on: on.captures(),
    "hw.azolla.objectives": lambda on: on.objectives(),
    "hw.azolla.pause_states": lambda on: on.pause_states(),
    "hw.tokens.create": lambda on: on.create("ci", created_by="alice"),
    "hw.tokens.revoke": lambda on: on.revoke("ci"),
    "hw.tokens.all": lambda on: on.all(),
    "hw.tokens.exist": lambda on: on.exist(),
    "hw.tokens.check": lambda on: on.check(f"hw_0a1b2c3d_{'x' * 43}"),
    "hw.tokens.still": lambda on: on.still(7),
    **queueing("alice"),
    "alice.cancel": lambda on: on.cancel("extract"),
    "alice.request_manifest": lambda on: on.request_manifest(),
    "alice.together": _together,
    "alice.once": _once,
    **letters("alice.dead_letters"),
    **noting("alice.azolla"),
    "alice.tokens.create": lambda on: on.create("ci"),
    "alice.tokens.revoke": lambda on: on.revoke("ci"),
    "history.overview.summary": lambda on: on.summary(),
    "history.overview.throughput": lambda on: on.throughput(timedelta(hours=1)),
    "history.overview.waiting": lambda on: on.waiting(),
    "history.overview.next_runs": lambda on: on.next_runs(),
    "history.overview.attention": lambda on: on.attention(),
    "history.manifests.page": lambda on: on.page(),
    "history.manifests.detail": lambda on: on.detail("extract"),
    "history.manifests.strips": lambda on: on.strips([1, 2]),
    "history.manifests.graph": lambda on: on.graph(),
    "history.manifests.all": lambda on: on.all(),
    "history.groups.page": lambda on: on.page(),
    "history.groups.detail": lambda on: on.detail("loads"),
    "history.groups.graph": lambda on: on.graph(),
    "history.groups.all": lambda on: on.all(),
    "history.executions.page": lambda on: on.page(),
    "history.executions.detail": lambda on: on.detail(7),
    "history.executions.these": lambda on: on.these([7]),
    "history.executions.timeline": lambda on: on.timeline(LATER.at, LATER.at + timedelta(hours=1)),
    "history.executions.began": lambda on: on.began(),
    "history.executions.all": lambda on: on.all(),
    "history.queue.page": lambda on: on.page(),
    "history.queue.detail": lambda on: on.detail(7),
    "history.queue.all": lambda on: on.all(),
    "history.dead_letters.page": lambda on: on.page(),
    "history.dead_letters.detail": lambda on: on.detail(7),
    "history.dead_letters.awaiting": lambda on: on.awaiting(),
    "history.servers.all": lambda on: on.all(),
    "history.audit.page": lambda on: on.page(),
    "history.azolla.session": lambda on: on.session(),
    "history.azolla.building": lambda on: on.building(),
    "history.azolla.event": lambda on: on.event("event-3f9a1c2b5d6e"),
    "history.azolla.events": lambda on: on.events(),
    "history.azolla.captures": lambda on: on.captures(),
    "history.azolla.objectives": lambda on: on.objectives(),
    "history.azolla.objective": lambda on: on.objective("objective-3f9a1c2b5d6e"),
    "history.azolla.pause_states": lambda on: on.pause_states(),
    "history.azolla.any_parked": lambda on: on.any_parked(),
    "Executor.run": _open_executor,
}

# Inside a sandbox that was open before the database went away.
SANDBOXED: dict[str, Call] = {
    "Sandbox.run_until_idle": lambda box: box.run_until_idle(),
    "Sandbox.advance": lambda box: box.advance(hours=1),
    "Sandbox.advance_to": lambda box: box.advance_to(box.now + timedelta(hours=1)),
    "Sandbox.enqueue": lambda box: box.enqueue("work"),
    "Sandbox.why": lambda box: box.why("extract"),
    "Sandbox.executions": lambda box: box.executions("extract"),
    "Sandbox.last": lambda box: box.last("extract"),
    "Sandbox.queued": lambda box: box.queued(),
    "Sandbox.manifests": lambda box: box.manifests(),
    "Sandbox.dead_letters": lambda box: box.dead_letters(),
}

# Inside a job that was running before the database went away.
IN_A_RUN: dict[str, Call] = {
    "Run.activate": lambda run: run.activate("asleep"),
    "Run.activate_many": lambda run: run.activate_many([("asleep", None)]),
    "Run.progress": lambda run: run.progress(0.5),
    "Run.hand_over": lambda run: run.hand_over("check the figures"),
    "Run.cancelled": lambda run: run.cancelled,
    "Run.raise_if_cancelled": lambda run: run.raise_if_cancelled(),
}

ON_A_CONNECTION: dict[str, Call] = {
    "headway.fence": lambda own: headway.fence(own, "users", 7),
}

DECLARING = {"schedule", "schedule_once", "schedule_many", "declaration", "workflow"}
WITHOUT_DATABASE = {
    *(f"hw.{name}" for name in DECLARING),
    *("hw.builds_manifests", "hw.operator"),
    *("hw.runtime.name_of", "hw.runtime.within", "hw.runtime.store"),
    *("Sandbox.now", "Sandbox.history", "Sandbox.runtime", "Sandbox.store"),
    *(f"Run.{name}" for name in ("attempt", "fencing_token", "idempotency_key")),
    *("Run.manifest", "Run.scheduled_for"),
    # Values, errors and the application itself, whose methods are listed.
    *(f"headway.{name}" for name in headway.__all__ if name not in ("fence", "__version__")),
} - {"headway.fence"}


def object_of(name: str, hw: Headway, store: Store | None = None) -> object:
    """The object on which the function of this *name* is called."""
    owner = name.rpartition(".")[0]
    if owner in READERS:
        assert store is not None
        return getattr(History(store), owner.removeprefix("history."))
    return OBJECTS[owner][1](hw) if owner in OBJECTS else hw
