"""Every verb of the runtime API in one table, with what it does to one small deployment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import select

from headway import Item, every, once
from headway.definition.runtime import Runtime
from headway.store.tables import dependency, manifest, work_queue
from tests.builders import START, Scene

Call = Callable[[Runtime, Any], Any]

HOURLY = every(hours=1)
LATER = once(START + timedelta(days=1))
EXTRACT = "extract: interval in loads"
LOAD = "load: dependent in loads"
REPORT = "report: none in reports"
FINISHED = 1  # the execution that has ended when a verb is called


@dataclass(frozen=True)
class Verb:
    """A call, and what it adds to and takes from the picture of the database."""

    call: Call
    added: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


def dependents(*numbers: int) -> list[Item]:
    return [Item(number, depends_on="extract") for number in numbers]


VERBS: dict[str, Verb] = {
    "trigger": Verb(
        lambda runtime, own: runtime.trigger("report", connection=own), ("queued report",)
    ),
    "trigger_group": Verb(
        lambda runtime, own: runtime.trigger_group("loads", connection=own), ("queued extract",)
    ),
    "rerun": Verb(lambda runtime, own: runtime.rerun(FINISHED, connection=own), ("queued report",)),
    "enqueue": Verb(lambda runtime, own: runtime.enqueue("work", connection=own), ("queued work",)),
    "enable": Verb(
        lambda runtime, own: runtime.enable("resting", connection=own),
        ("resting: none in resting",),
        ("resting: none in resting, off",),
    ),
    "disable": Verb(
        lambda runtime, own: runtime.disable("extract", connection=own),
        (f"{EXTRACT}, off",),
        (EXTRACT,),
    ),
    "set_group": Verb(
        lambda runtime, own: runtime.set_group(
            "reports", max_active_jobs=2, priority=9, enabled=False, connection=own
        ),
        ("group reports: 2, 9, off",),
        ("group reports: None, 0",),
    ),
    "unschedule": Verb(
        lambda runtime, own: runtime.unschedule("extract", connection=own),
        ("load after nobody",),
        (EXTRACT, "queued extract", "load after extract"),
    ),
    "schedule": Verb(
        lambda runtime, own: runtime.schedule("work", "new", None, HOURLY, connection=own),
        ("new: interval in new",),
    ),
    "schedule, changing": Verb(
        lambda runtime, own: runtime.schedule("work", "report", None, HOURLY, connection=own),
        ("report: interval in report",),
        (REPORT,),
    ),
    "schedule_once": Verb(
        lambda runtime, own: runtime.schedule_once("work", "new", None, LATER, connection=own),
        ("new: once in new",),
    ),
    "schedule_many": Verb(
        lambda runtime, own: runtime.schedule_many(
            "work", "old", [Item(2), Item(3)], HOURLY, prune=True, connection=own
        ),
        ("old-3: interval in old",),
        ("old-1: interval in old",),
    ),
    "schedule_dependent": Verb(
        lambda runtime, own: runtime.schedule_dependent(
            "work", "new", None, "extract", group="loads", connection=own
        ),
        ("new: dependent in loads", "new after extract"),
    ),
    "schedule_dependent, changing": Verb(
        lambda runtime, own: runtime.schedule_dependent(
            "work", "load", None, "report", group="loads", connection=own
        ),
        ("load after report",),
        ("load after extract",),
    ),
    "schedule_many_dependent": Verb(
        lambda runtime, own: runtime.schedule_many_dependent(
            "work", "new", dependents(1, 2), connection=own
        ),
        (
            "new-1: dependent in new",
            "new-1 after extract",
            "new-2: dependent in new",
            "new-2 after extract",
        ),
    ),
}


def picture(scene: Scene) -> Counter[str]:
    """Every manifest, edge and queued entry in words."""
    with scene.store.reading() as tx:
        rows = tx.connection.execute(select(manifest).order_by(manifest.c.id)).all()
        names = {row.id: row.external_id for row in rows if row.removed_at is None}
        groups = {one.external_id: one.group_name for one in scene.history.manifests.all()}
        manifests = [
            f"{row.external_id}: {row.schedule_kind} in {groups[row.external_id]}"
            + ("" if row.enabled else ", off")
            for row in rows
            if row.id in names
        ]
        edges = [
            f"{names[row.child_id]} after {names.get(row.parent_id, 'nobody')}"
            for row in tx.connection.execute(select(dependency))
        ]
        queued = [
            f"queued {names.get(row.manifest_id, row.workflow)}"
            for row in tx.connection.execute(
                select(work_queue).where(work_queue.c.status == "queued")
            )
        ]
    # Those that nothing is said about are in the names of their manifests.
    changed = [
        f"group reports: {one.max_active_jobs}, {one.priority}" + ("" if one.enabled else ", off")
        for one in scene.history.groups.all()
        if one.name == "reports"
    ]
    return Counter([*manifests, *edges, *queued, *changed])


def set_the_scene(scene: Scene) -> None:
    """Declare and apply what :data:`VERBS` are about; ``extract`` has an entry queued."""
    hourly = scene.app.schedule("work", "extract", None, HOURLY, group="loads")
    hourly.include("work", "load", group="loads")
    scene.app.schedule("work", "report", group="reports")
    scene.app.schedule("work", "resting", enabled=False)
    scene.apply()
    runtime_of(scene).schedule_many("work", "old", [Item(1), Item(2)], HOURLY)
    scene.trigger("report")
    scene.dispatch()
    assert scene.run().claimed == FINISHED
    scene.trigger("extract")


def runtime_of(scene: Scene) -> Runtime:
    """The runtime API on the scene's own store, under its clock."""
    most = scene.app.settings.max_queued_per_group
    return Runtime(scene.app.name, scene.app.registry, scene.store, most_queued=most)
