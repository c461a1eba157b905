"""A deployment that really runs, in this process, with its dashboard; jobs wait for the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pydantic import BaseModel, Field

from headway import Group, Headway, Run, every
from headway.service import Service
from headway.store.engine import Store
from headway.store.migrate import prepare
from headway.web.serving import CONNECTIONS, Dashboard
from tests.builders import Recorder

PATIENCE = 30.0


class Parcel(BaseModel):
    """What a job is given by hand."""

    address: str = Field(min_length=3)
    weight: int = Field(default=1, ge=1, le=40)
    express: bool = False


@dataclass
class Gate:
    """Where jobs wait until the test lets them through; it knows how many were in at once."""

    opened: threading.Event = field(default_factory=threading.Event)
    inside: int = 0
    most: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def pass_through(self, run: Run) -> None:
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        try:
            while not self.opened.wait(0.02):
                run.raise_if_cancelled()
        finally:
            with self._lock:
                self.inside -= 1


@dataclass
class Plant:
    """The application, what happens in it, and the gates of its jobs."""

    app: Headway
    events: Recorder
    dashboard: Dashboard
    capped: Gate
    packing: Gate
    posting: Gate

    @property
    def host(self) -> str:
        return self.dashboard.address.removeprefix("http://")


@contextmanager
def running_plant(url: str) -> Iterator[Plant]:
    """Start everything as ``headway run`` does; all of it has ended when the block has."""
    capped, packing, posting = Gate(), Gate(), Gate()
    app = Headway(
        "plant",
        database_url=url,
        worker_count=8,
        manager_polling_interval="1s",
        default_retry_delay="0.1s",
        shutdown_timeout="1s",
    )

    @app.workflow
    def tick(name: str) -> str:
        return name

    @app.workflow
    def press(run: Run) -> None:
        capped.pass_through(run)

    def pack(parcel: Parcel, run: Run) -> Parcel:
        packing.pass_through(run)
        return parcel

    def post(parcel: Parcel, run: Run) -> str:
        posting.pass_through(run)
        return f"{parcel.weight} kg to {parcel.address}"

    @app.workflow
    def broken() -> None:
        raise RuntimeError("the belt is torn")

    send = app.workflow("send", steps=(pack, post), keep_output=True)
    app.schedule(tick, "clock-a", "a", every(seconds=1), group="clock")
    app.schedule(tick, "clock-b", "b", every(seconds=1), group="bells")
    presses = Group("presses", max_active_jobs=3)
    for number in range(6):
        app.schedule(press, f"press-{number}", None, group=presses)
    app.schedule(send, "parcel", Parcel(address="Main Street 1"), group="post")
    app.schedule(tick, "report", "r", group="office")
    for number in range(3):
        broke = app.schedule(broken, f"belt-{number}", None, every(hours=1), max_retries=1)
        broke.include(tick, f"after-belt-{number}", "x", group="office")
    service = Service(app)
    prepare(service.store)
    events = Recorder(app.observer)
    service.start()
    dashboard = Dashboard(
        app, Store(url, connections=CONNECTIONS), "127.0.0.1", 0, health=service.health
    )
    try:
        yield Plant(app, events, dashboard, capped, packing, posting)
    finally:
        for gate in (capped, packing, posting):
            gate.opened.set()
        dashboard.stop()
        service.stop()
        app.runtime.store.close()
