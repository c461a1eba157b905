"""What the demo shows of a deployment: a live picture, plain lines and a summary."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from headway import Headway, RetryPolicy, every
from headway.demo.plain import Plain
from headway.demo.screen import Screen
from headway.demo.snapshot import Snapshots, Upcoming
from headway.demo.summary import Row, rows, table
from headway.domain.manifest import Group
from tests.builders import START, Scene, names
from tests.databases import sqlite_url

__all__ = ["sqlite_url"]


@pytest.fixture
def scene(sqlite_url: str) -> Iterator[Scene]:
    """Of etl two run and eight wait; one has failed for good, another is to be retried."""
    with Scene(sqlite_url) as scene:
        retry = RetryPolicy(delay=timedelta(minutes=1))
        scene.failing |= {"broken", "shaky"}
        declare, odd = scene.app.schedule, Group("odd", priority=1)
        declare("work", "fine", None, every(hours=1), group=odd)
        declare("work", "broken", None, every(hours=1), group=odd, max_retries=1)
        declare("work", "shaky", None, every(hours=2), group=odd, max_retries=2, retry=retry)
        for number in range(10):
            declare("work", f"load-{number}", group=Group("etl", max_active_jobs=3))
        scene.apply()
        scene.cycle()
        scene.clock.advance(seconds=2)
        scene.manage()
        for number in range(10):
            scene.trigger(f"load-{number}")
        scene.configure(max_active_jobs=2)
        scene.dispatch()
        scene.claim()
        scene.clock.advance(seconds=3)
        yield scene


def test_a_snapshot_has_all_that_is_shown(scene: Scene) -> None:
    snapshot = Snapshots(scene.history).take()

    assert [one.name for one in snapshot.groups] == ["etl", "odd"]
    assert names(snapshot.running) == ["load-0", "load-1"]
    assert set(names(snapshot.recent)) == {"fine", "broken", "shaky"}
    noon, queued = START, START + timedelta(seconds=2)
    assert snapshot.upcoming == (
        *(Upcoming(queued, f"load-{number}") for number in range(2, 10)),
        Upcoming(noon + timedelta(minutes=1), "shaky", is_retry=True),
        Upcoming(noon + timedelta(hours=1), "fine"),
    )
    assert snapshot.dead == ("broken",)
    assert (snapshot.total("queued"), snapshot.total("failed")) == (8, 2)
    assert abs(datetime.now(UTC) - snapshot.now) < timedelta(minutes=1)


def picture(scene: Scene, *, width: int, encoding: str = "utf-8") -> list[str]:
    """The lines of the live picture on a terminal like this."""
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="replace")
    output = Console(file=file, width=width, height=26, force_terminal=True, color_system=None)
    screen = Screen(output, Snapshots(scene.history), slots=3)
    screen.say("finishing")
    screen.announce("dashboard: http://here")
    output.print(screen.draw(replace(Snapshots(scene.history).take(), now=scene.clock.now)))
    file.seek(0)
    return file.read().splitlines()


def words(lines: list[str]) -> list[list[str]]:
    return [re.split(r" {2,}", line.strip(" │|")) for line in lines]


def test_a_wide_picture_has_everything(scene: Scene) -> None:
    lines = picture(scene, width=140)

    assert re.split(r" {2,}", lines[0].strip()) == [
        *("headway demo", "00:00", "1 completed", "2 failed", "1 dead letter", "finishing")
    ]
    assert lines[1].startswith("╭─ groups ──")
    titles, etl, odd = words(lines[2:5])
    assert titles == ["group", "cap", "running", "queued", "completed", "failed", "dead", "runs"]
    assert etl[:3] == ["etl", "3", "■■□"]
    assert etl[3:] == ["●●●●●● +2", "0", "0", "0"]
    assert odd[:5] == ["odd", "–", "1", "2", "1"] and set(odd[5]) == {"█"}
    assert lines[5].endswith("■ running  □ free  ● queued  █ completed  █ failed ─╯")
    assert lines[6].startswith("╭─ running ──")
    assert words(lines[7:9]) == [
        ["load-0", "_work", "0%", "3.0 s"],
        ["load-1", "_work", "0%", "3.0 s"],
    ]
    assert lines[11].startswith("╭─ finished ──") and "╭─ coming next ──" in lines[11]
    ended, coming = zip(*(line.split("││") for line in lines[12:21]), strict=True)
    failure = "_work: RuntimeError: told to fail"
    assert words(list(ended))[:3] == [
        ["✔", "fine", "0.0 s"],
        ["✘", "broken", "0.0 s", failure],
        ["✘", "shaky", "0.0 s", failure],
    ]
    assert words(list(coming)) == [
        ["☠", "broken", "dead letter"],
        *(["now", f"load-{number}"] for number in range(2, 10)),
    ]
    assert "✔ completed  ✘ failed  – cancelled ─╯" in lines[24]
    assert lines[25].rstrip() == " dashboard: http://here"


def test_a_narrow_picture_without_unicode_is_shortened(scene: Scene) -> None:
    lines = picture(scene, width=90, encoding="ascii")

    assert not any("free" in line for line in lines)
    _, etl, odd = words(lines[2:5])
    assert etl[:4] == ["etl", "3", "##.", "oooooo +2"]
    assert odd[:5] == ["odd", "-", "1", "2", "1"] and set(odd[5]) == {"#"}
    ended = words([line.split("||")[0] for line in lines[12:15]])
    assert ended[:2] == [["+", "fine", "0.0 s"], ["x", "broken", "0.0 s", "RuntimeError"]]
    assert words([lines[12].split("||")[1]]) == [["!", "broken", "dead"]]


def test_what_was_tried_again_says_so(scene: Scene) -> None:
    scene.failing.clear()
    scene.clock.advance(minutes=1)
    scene.configure(max_active_jobs=3)
    scene.dispatch()
    scene.run()

    snapshots = Snapshots(scene.history)
    assert names(snapshots.take().recent)[0] == names(snapshots.take(recent=1).recent)[0] == "shaky"
    assert len(snapshots.take(recent=1).recent) == 1
    lines = picture(scene, width=140)
    [again] = [one for one in words(lines) if "shaky" in one and "✔" in one]
    assert again[3].startswith("attempt 2")
    assert rows(scene.history)[1] == Row(
        "odd", runs=4, completed=2, failed=2, retried=1, dead_letters=1
    )


def test_a_wait_of_any_length_fits_into_its_line(scene: Scene) -> None:
    scene.clock.advance(seconds=1)
    for number in range(2, 10):
        scene.app.cancel(f"load-{number}")
    lines = picture(scene, width=140)
    coming = words([line.split("││")[1] for line in lines[12:15]])
    assert coming == [
        ["☠", "broken", "dead letter"],
        ["54 s", "shaky", "retry"],
        ["60 min", "fine"],
    ]


def test_progress_and_notes_of_what_runs_are_shown(scene: Scene) -> None:
    snapshot = Snapshots(scene.history).take()
    half = snapshot.running[0]._replace(progress=0.5, progress_note="half way")
    file = io.StringIO()
    output = Console(file=file, width=140, height=26, force_terminal=True, color_system=None)
    screen = Screen(output, Snapshots(scene.history), slots=1)
    output.print(screen.draw(replace(snapshot, running=(half, *snapshot.running[1:]))))

    lines = file.getvalue().splitlines()
    [running] = [line for line in lines if "load-0" in line]
    assert re.search(r"load-0 +_work +━+╸? +50%  half way +0\.0 s", running)
    assert not any("load-1 " in line for line in lines), "there is one slot"
    assert "Ctrl-C ends" in lines[0]
    assert "dashboard" not in lines[-1]


def test_the_summary_counts_what_ended_in_each_group(scene: Scene) -> None:
    assert rows(scene.history) == [
        Row("etl", runs=0, completed=0, failed=0, retried=0, dead_letters=0),
        Row("odd", runs=3, completed=1, failed=2, retried=0, dead_letters=1),
    ]
    output = Console(file=io.StringIO(), width=100)
    output.print(table(scene.history))
    assert isinstance(output.file, io.StringIO)
    assert [line.split() for line in output.file.getvalue().splitlines() if line.strip()] == [
        ["group", "runs", "completed", "failed", "retried", "dead", "letters"],
        ["etl", "0", "0", "0", "0", "0"],
        ["odd", "3", "1", "2", "0", "1"],
        ["all", "3", "1", "2", "0", "1"],
    ]


def test_without_a_terminal_each_event_is_a_line() -> None:
    app = Headway("demo")
    app.workflow("work")(lambda: None)
    app.schedule("work", "load", group="etl")
    output = Console(file=io.StringIO(), width=20)
    run = {"external_id": "load", "execution_id": 7}
    with Plain(output, app) as lines:
        lines.announce("")
        lines.announce("dashboard: http://here")
        for name, fields in (
            ("execution.started", run),
            ("execution.completed", run),
            ("execution.failed", run | {"failure": "work: ValueError: no\nrows\x1b[31m"}),
            ("execution.cancelled", {"external_id": "other"}),
            ("execution.handed_back", {"external_id": None, "execution_id": 7}),
            ("manifest.dead_lettered", {"external_id": "load"}),
            ("service.started", {}),
        ):
            app.observer.emit(name, **fields)
        lines.refresh()
        lines.say("finishing")

    assert isinstance(output.file, io.StringIO)
    told = output.file.getvalue().splitlines()
    assert all(re.match(r" {3}\d\.\d s  ", line) for line in told)
    assert [line[10:] for line in told] == [
        "a small ETL on SQLite; Ctrl-C ends",
        "dashboard: http://here",
        "started     load              etl",
        "completed   load              etl",
        "failed      load              etl        work: ValueError: no rows\\x1b[31m",
        "cancelled   other",
        "handed back #7",
        "dead letter load              etl",
        "finishing",
    ]
