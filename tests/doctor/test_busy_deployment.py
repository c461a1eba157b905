"""No false alarms: a deployment at work has nothing the matter with it."""

from __future__ import annotations

import time

from headway import Run, every
from headway.doctor.examination import SECOND_LOOK
from headway.service import Service
from headway.store.engine import Store
from tests.builders import Recorder, Scene
from tests.doctor.examining import found

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


def activate(run: Run) -> None:
    run.activate("dormant", None)
