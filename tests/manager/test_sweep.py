"""The safety net finds what sleeps too long, and nothing else."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import delete, update

from headway import cron, every
from headway.manager import sweep as sweep_module
from headway.manager.sweep import Sweep, Swept
from headway.manager.time_rules import time_rules
from headway.store import marks
from headway.store.locks import Lock
from headway.store.tables import manifest, manifest_state, wake
from headway.store.transaction import Transaction
from tests.builders import START, Scene, names


def sweep(scene: Scene, rules: str | None = None) -> Sweep:
    return Sweep(scene.store, scene.app.settings, scene.app.observer, rules)


def declare(scene: Scene, count: int = 3) -> None:
    for number in range(count):
        scene.app.schedule("work", f"load-{number}", None, every(hours=1))
    scene.apply()
    scene.cycle()
    scene.manage()


def edit(scene: Scene, **values: Any) -> None:
    """Somebody changes the state of a manifest by hand and leaves no wake-up."""
    with scene.store.writing() as tx:
        manifest_id, _ = scene.ids_of("load-1")
        this = manifest_state.c.manifest_id == manifest_id
        tx.connection.execute(update(manifest_state).where(this).values(**values))
        tx.connection.execute(delete(wake))


def test_nothing_is_found_where_nothing_is_wrong(scene: Scene) -> None:
    declare(scene)
    assert sweep(scene).run_once() == Swept(True, 3)
    scene.clock.advance(minutes=90)
    assert sweep(scene).run_once() == Swept(True, 3), "due, and the manager knows when to look"


def test_a_manifest_that_would_sleep_for_ever_is_woken(scene: Scene) -> None:
    declare(scene)
    edit(scene, wake_at=None)
    scene.clock.advance(hours=1)
    scene.manage()
    assert names(scene.history.queue.all()) == ["load-0", "load-2"]

    assert sweep(scene).run_once().woken == ("load-1",)
    told = [one.fields for one in scene.events.named("manager.swept")]
    assert told == [{"looked_at": 3, "woken": 1}]

    scene.manage()
    assert sorted(filter(None, names(scene.history.queue.all()))) == ["load-0", "load-1", "load-2"]


def test_a_manifest_that_would_wake_too_late_is_woken(scene: Scene) -> None:
    declare(scene)
    edit(scene, wake_at=START + timedelta(days=1))
    assert sweep(scene).run_once().woken == ("load-1",)
    scene.manage()
    assert scene.manifest("load-1").wake_at == START + timedelta(hours=1)


def test_one_that_is_woken_too_early_is_left(scene: Scene) -> None:
    declare(scene)
    edit(scene, wake_at=START + timedelta(minutes=1))
    assert sweep(scene).run_once().woken == ()


def test_what_a_guard_holds_may_sleep(scene: Scene) -> None:
    declare(scene)
    scene.clock.advance(hours=1)
    scene.manage()
    scene.dispatch()
    assert sweep(scene).run_once() == Swept(True, 3)


def test_it_goes_on_where_it_was_in_small_chunks_and_begins_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(scene, count=5)
    sweep(scene).run_once()
    monkeypatch.setattr(sweep_module, "CHUNK", 2)
    seen = [sweep(scene).run_once().looked_at for _ in range(6)]
    assert seen == [2, 2, 1, 2, 2, 1], "also across restarts, for each of these is a new process"


def test_new_rules_of_time_start_a_full_sweep_at_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_module, "CHUNK", 2)
    declare(scene, count=5)
    first = sweep(scene, "tzdata 2025a")
    assert [first.run_once().hurry for _ in range(4)] == [True, True, False, False]
    assert not sweep(scene, "tzdata 2025a").run_once().hurry
    newer = sweep(scene, "tzdata 2025b")
    assert [newer.run_once().looked_at for _ in range(3)] == [2, 2, 1], "from the very first on"
    assert not first.run_once().hurry, "old and new side by side do not chase each other"


def test_a_full_sweep_that_was_not_finished_begins_again_in_the_next_process(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_module, "CHUNK", 2)
    declare(scene, count=5)
    assert sweep(scene, "tzdata 2025a").run_once().hurry
    restarted = sweep(scene, "tzdata 2025a")
    assert [restarted.run_once().hurry for _ in range(3)] == [True, True, False]


def test_an_old_process_does_not_replace_the_rules_of_a_new_one(scene: Scene) -> None:
    declare(scene)
    old, new = sweep(scene, "tzdata 2025a"), sweep(scene, "tzdata 2025b")
    old.run_once()
    new.run_once()

    old.run_once()

    with scene.store.reading() as tx:
        assert marks.read_mark(tx, sweep_module.RULES) == "tzdata 2025b"


def test_rules_that_move_a_due_time_are_noticed(scene: Scene) -> None:
    """As if the zone's rules had changed: the stored time is the old rules' idea."""
    scene.app.schedule("work", "load-1", None, cron("0 14 * * *", tz="Europe/Berlin"))
    scene.apply()
    scene.cycle()
    scene.manage()
    assert scene.manifest("load-1").wake_at == START + timedelta(hours=1)
    edit(scene, wake_at=START + timedelta(hours=2))
    assert sweep(scene, "other rules").run_once().woken == ("load-1",)


def test_the_rules_name_their_versions() -> None:
    assert [part.split()[0] for part in time_rules().split(", ")] == [
        "cronsim",
        "holidays",
        "tzdata",
        "system",
    ]


def test_removed_manifests_are_not_looked_at(scene: Scene) -> None:
    declare(scene)
    scene.remove("load-1")
    assert sweep(scene).run_once().looked_at == 2


def test_a_row_that_cannot_be_read_stops_nobody(scene: Scene) -> None:
    declare(scene)
    with scene.store.writing() as tx:
        _break(tx, scene.ids_of("load-1")[0])
    assert sweep(scene).run_once().looked_at == 3


def _break(tx: Transaction, manifest_id: int) -> None:
    this = manifest.c.id == manifest_id
    tx.connection.execute(update(manifest).where(this).values(exclusions="nonsense"))


def test_one_server_sweeps_at_a_time(postgres_url: str) -> None:
    with Scene(postgres_url) as scene, Scene(postgres_url) as other:
        declare(scene)
        with other.store.leading(Lock.SWEEP):
            assert sweep(scene).run_once() == Swept(led=False)
        assert sweep(scene).run_once().led
