"""No false alarms: a deployment at work has nothing the matter with it."""

from __future__ import annotations

import time
from collections.abc import Collection

import pytest

from headway import Run, every
from headway.doctor.examination import SECOND_LOOK
from headway.doctor.findings import Check, Severity
from headway.service import Service
from headway.store import examining_definitions as definitions
from headway.store.engine import Store
from headway.store.tables import manifest_state
from headway.store.transaction import Transaction
from tests.builders import Recorder, Scene
from tests.doctor.examining import change, declare, found

EXAMINATIONS = 12


def test_a_healthy_busy_deployment_gives_no_finding(database_url: str) -> None:
    with Scene(database_url, virtual_time=False) as scene:
        app = scene.new_app(max_active_jobs=20, worker_count=4, manager_polling_interval="1s")
        app.workflow("activate")(activate)
        for number in range(30):
            chain = app.schedule("work", f"extract-{number}", None, every(seconds=1))
            chain.then_include("work", f"load-{number}", None)
        parent = app.schedule("activate", "parent", None, every(seconds=1))
        parent.include("work", "dormant", None, dormant=True, when_busy="keep")
        events = Recorder(app.observer)
        service = Service(app, store=Store(database_url, durable=False))
        service.start()
        try:
            events.wait_for("execution.completed", count=20)
            for number in range(EXAMINATIONS):
                before = len(events.named("execution.completed"))
                told = found(scene, wait=time.sleep)
                assert told == {}, f"examination {number}"
                events.wait_for("execution.completed", count=before + 1)
        finally:
            service.stop()
    assert SECOND_LOOK > 2.0, "longer than the sweep of orphans"


def test_a_wake_up_taken_between_two_statements_is_no_finding(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is gone when it is looked for, and a moment before the manifest was still asleep."""
    declare(scene, "load")
    scene.cycle()
    look_for, taken = definitions.about_to_be_woken, []

    def fall_asleep_and_be_woken(_seconds: float = 0.0) -> None:
        change(scene, manifest_state, wake_at=None)
        scene.wake("load")

    def look_after_the_manager(tx: Transaction, manifest_ids: Collection[int]) -> set[int]:
        taken.append(scene.manage().candidates)
        return look_for(tx, manifest_ids)

    fall_asleep_and_be_woken()
    monkeypatch.setattr(definitions, "about_to_be_woken", look_after_the_manager)
    told = found(scene, wait=fall_asleep_and_be_woken)
    assert "sleeping-too-long" not in told and taken


def test_what_only_one_of_two_looks_has_found_is_no_finding(scene: Scene) -> None:
    """Something else may be in motion at each of them."""
    looks = [
        ["execution 1: since 11:00", "execution 2: since 11:01"],
        ["execution 2: since 11:01, still", "execution 3: since 11:02"],
    ]
    moving = Check(
        "moving", Severity.ERROR, "These move.", "wait", find=lambda _: looks.pop(0), twice=True
    )
    assert found(scene, checks=[moving]) == {"moving": ("execution 2: since 11:01, still",)}


def activate(run: Run) -> None:
    run.activate("dormant", None)
