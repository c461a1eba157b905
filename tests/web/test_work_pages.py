"""The pages about work say all there is to say: a deployment of which every value is known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import pytest
from sqlalchemy import update

from headway import Group, Item, RetryPolicy, cron, every, exclude
from headway.domain.execution import ExecutionState, Failure, Outcome, StepRun
from headway.domain.work_queue import NewEntry, Source
from headway.store import delays, executions, unknown_workflows, work_queue
from headway.store.executions import Progress
from headway.store.leases import register
from headway.store.servers import ServerProcess
from headway.store.tables import execution, manifest
from tests.builders import START, Scene
from tests.store.factories import dead_letter_for, finish, ran
from tests.web.parts import facts, forms, items, links, part, pressed, rows, said
from tests.web.visiting import Visitor, visiting


@dataclass
class Shop:
    """The deployment, and somebody who looks at it."""

    scene: Scene
    visitor: Visitor

    def page(self, path: str, scope: str = "admin") -> str:
        answer = self.visitor.as_(scope).get(path)
        assert answer.status == 200, answer.text
        return answer.text


NO_ROWS = Failure("load", "ValueError", "no rows", "Traceback: line 7")


def declare(scene: Scene) -> None:
    extract, load = Group("extract", max_active_jobs=2, priority=7), Group("load")
    hw = scene.app
    first = hw.schedule("work", "extract-a", None, every(hours=1), group=extract, max_retries=4)
    first.include("work", "load", None, group=load)
    first.include("work", "sort", None, group=load, dormant=True)
    hw.schedule("work", "extract-b", None, every(hours=1), group=extract)
    hw.schedule(
        "work",
        "tidy",
        None,
        cron("0 6 * * *", tz="Europe/Berlin"),
        enabled=False,
        timeout=timedelta(minutes=5),
        variance=timedelta(minutes=2),
        misfire="catch_up",
        catch_up_limit=3,
        allow_overlap=True,
        priority=4,
    )
    scene.apply()


def work(scene: Scene) -> None:
    """Two runs at noon, one of which fails; others later: one cancelled, one running, one not."""
    scene.manage()
    scene.clock.advance(minutes=1)
    scene.dispatch()
    scene.clock.advance(seconds=10)
    failing, going_well = scene.claim()
    with scene.store.writing() as tx:
        executions.note_progress(tx, "me", {going_well.id: Progress(0.9, "almost")})
    half_way = scene.clock.now + timedelta(seconds=30)
    read = StepRun("read", scene.clock.now, 30.0)
    scene.clock.advance(seconds=80)
    failed = Outcome(ExecutionState.FAILED, NO_ROWS, steps=(read, StepRun("load", half_way, 50.0)))
    finish(scene.store, failing, failed, "me")
    begun = (read, StepRun("load", half_way))
    completed = Outcome(ExecutionState.COMPLETED, output='{"rows": 7}', steps=begun)
    finish(scene.store, going_well, completed, "me")
    dead_letter_for(scene.store, "extract-a")

    scene.trigger("load")
    scene.dispatch()
    [stopped] = scene.claim()
    scene.app.cancel(execution=stopped.id, reason="wrong day")
    finish(scene.store, stopped, Outcome(ExecutionState.CANCELLED), "me")

    scene.trigger("extract-b")
    scene.dispatch()
    [running] = scene.claim()
    with scene.store.writing() as tx:
        executions.note_progress(tx, "me", {running.id: Progress(0.5, "half of it")})
    scene.pending("work", attempts=1, max_attempts=3)

    scene.trigger("extract-b", scheduled_at=START + timedelta(hours=2))
    scene.enqueue(NewEntry("work", Source.AD_HOC, "null", attempts=2, max_attempts=3, priority=3))
    scene.trigger("load")
    scene.clock.advance(seconds=30)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    url = f"sqlite:///{tmp_path_factory.mktemp('shop') / 'headway.db'}"
    with Scene(url) as scene:
        declare(scene)
        work(scene)
        with visiting(scene.app, scene.store) as visitor:
            yield Shop(scene, visitor)
        scene.app.runtime.store.close()


NOON, BEGUN, LATER = (f"2030-01-07 12:{minutes}" for minutes in ("00:00", "01:10", "02:30"))

AT_TWO = "2030-01-07 14:00:00"
FAILED = "load: ValueError: no rows"
STRIP = "failed · in 1 min 20 s"


def test_home_tells_how_much_waits_runs_and_went_wrong(shop: Shop) -> None:
    page = shop.page("/")
    assert links(page, "numbers") == [
        ("Queued 2 1 wait for later", "/queue"),
        ("Running 1 no worker is alive", "/executions?state=in_progress"),
        ("Completed 0.5 / min last 2 min", "/executions?state=completed"),
        ("Failed 0.5 / min last 2 min", "/executions?state=failed"),
        ("Dead letters 1 wait for a person", "/dead-letters"),
    ]
    assert "Success rate 50.0 % last hour" in said(page, "numbers")
    assert rows(page, "running") == [["extract-b _work", "extract", "half of it 50 %", "…"]]
    assert links(page, "running")[1:] == [
        ("extract-b", "/executions/4"),
        ("extract", "/groups/extract"),
    ]
    assert "Nothing is planned" in said(page, "next")


def test_home_leads_to_where_something_can_be_done(shop: Shop) -> None:
    page = shop.page("/")
    assert items(page, "attention") == [
        "no process with the manager role is alive: nothing becomes due",
        "no worker is alive: nothing is run by headway's own workers",
        f"extract-a waits for a person: max retries exceeded {LATER}",
    ]
    assert [address for _, address in links(page, "attention")] == [
        "/servers", "/servers", "/manifests/extract-a",
    ]  # fmt: skip
    assert 'class="count is-failed">3<' in part(page, "attention")
    shown = re.findall(r'data-kind="([^"]*)" class="([^"]*)"', part(page, "attention"))
    assert shown[-1] == ("dead_letter", "is-failed")


@pytest.mark.parametrize(
    ("query", "chosen", "unit", "step", "begins"),
    [
        ("", "Last hour", "minute", "1 min", "2030-01-07 12:02 UTC"),
        ("?span=week", "Last week", "hour", "1 h", "2030-01-07 12:00 UTC"),
        ("?span=year", "Last hour", "minute", "1 min", "2030-01-07 12:02 UTC"),
    ],
)
def test_home_shows_what_ended_in_an_hour_or_a_week(
    shop: Shop, query: str, chosen: str, unit: str, step: str, begins: str
) -> None:
    page = shop.page(f"/{query}")
    assert pressed(page) == [chosen]
    told = said(page, "throughput")
    assert f"runs ended per {unit}" in told
    span = chosen.lower()
    assert f"What ended during the {span}, in steps of {step}: 1 run completed, 1 failed" in told
    assert told.endswith(f"Begins Completed Failed {begins} 1 1")


def test_executions_are_listed_newest_first(shop: Shop) -> None:
    page = shop.page("/executions")
    assert rows(page) == [
        ["#5", "work work, attempt 2", "–", "pending", "ad hoc", LATER, "–"],
        ["#4", "extract-b half of it", "extract", "running", "trigger", LATER, "…"],
        ["#3", "load work", "load", "cancelled", "trigger", LATER, "0 ms"],
        ["#2", "extract-b work", "extract", "completed", "schedule", BEGUN, "1 min 20 s"],
        ["#1", "extract-a " + FAILED, "extract", "failed", "schedule", BEGUN, "1 min 20 s"],
    ]  # fmt: skip
    assert links(page)[2:5] == [
        ("#4", "/executions/4"),
        ("extract-b", "/executions/4"),
        ("extract", "/groups/extract"),
    ]
    assert "5 executions" in said(page, "executions")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("state=failed", [1]),
        ("manifest=extract-b", [4, 2]),
        ("manifest=+load+", [3]),
        ("group=load", [3]),
        ("source=ad_hoc", [5]),
        ("since=2030-01-07T12:02", [5, 4, 3]),
        ("until=2030-01-07T12:02", [2, 1]),
        ("since=2030-01-07T13:02%2B01:00", [5, 4, 3]),
        ("group=extract&source=trigger", [4]),
    ],
)
def test_executions_are_found_by_what_is_asked_for(
    shop: Shop, query: str, found: list[int]
) -> None:
    page = shop.page(f"/executions?{query}")
    assert [row[0] for row in rows(page)] == [f"#{one}" for one in found]
    assert ("Clear", "/executions") in links(page)


@pytest.mark.parametrize("query", ["since=yesterday", "until=2030-13-01", "source=odd"])
def test_what_cannot_be_asked_for_is_refused(shop: Shop, query: str) -> None:
    answer = shop.visitor.get(f"/executions?{query}")
    assert answer.status == 422
    name = query.partition("=")[0]
    assert f"{name} = " in said(answer.text, "failure")


def test_filters_keep_what_was_asked_for(shop: Shop) -> None:
    page = shop.page(
        "/executions?state=failed&manifest=x&group=y&source=trigger&since=2030-01-01T00:00"
    )
    chosen = re.findall(r'<option value="([^"]+)" selected', page)
    typed = re.findall(r'name="(manifest|group|since)" value="([^"]*)"', page)
    assert chosen == ["failed", "trigger"]
    assert dict(typed) == {"manifest": "x", "group": "y", "since": "2030-01-01T00:00"}
    assert "Nothing matches" in said(page, "executions")
    states = re.findall(r"<option[^>]*>([^<]*)</option>", part(page, "state"))
    assert states[:3] == ["Any", "Pending", "Running"]


def test_a_run_that_failed_tells_its_way_and_what_went_wrong(shop: Shop) -> None:
    page = shop.page("/executions/1")
    assert said(page, "execution").startswith(
        "extract-a failed Execution 1, attempt 1 of extract-a in extract . Run again "
        f"ValueError in step load : no rows The way it went stands for {NOON}"
    )
    assert items(page, "way") == [
        f"Queued {NOON} 1 min",
        "Dispatched 2030-01-07 12:01:00 10.0 s",
        f"Started {BEGUN} 1 min 20 s",
        f"Failed {LATER}",
    ]
    classes = re.findall(r'<li class="([^"]*)"', part(page, "way"))
    reached = ["is-queued", "is-dispatched", "is-in_progress", "is-failed"]
    assert classes == [f"{one} is-reached" for one in reached]
    assert rows(page, "steps") == [
        ["read", "read: 30.0 s, 0 ms after the start", "30.0 s"],
        ["load", "load: 50.0 s, 30.0 s after the start", "50.0 s"],
    ]
    assert re.findall(r'class="run ([^"]*)"', part(page, "steps")) == ["is-completed", "is-failed"]
    assert said(page, "traceback") == "Traceback: line 7"
    assert facts(page) == {
        "Workflow": "work", "Source": "schedule", "Entry": "1", "Priority": "7",
        "Task server": "local", "Worker": "me",
        "Idempotency key": "extract-a@2030-01-07T12:00:00+00:00",
    }  # fmt: skip
    assert links(page) == [
        ("extract-a", "/manifests/extract-a"),
        ("extract", "/groups/extract"),
        ("Run again", "/executions/1/rerun"),
        ("1", "/queue/1"),
    ]
    assert "Input · None" in said(page, "main")
    assert 'id="why"' not in page and "data-live" not in part(page, "execution")


def test_a_run_that_completed_shows_its_steps_and_its_output(shop: Shop) -> None:
    page = shop.page("/executions/2")
    assert rows(page, "steps") == [
        ["read", "read: 30.0 s, 0 ms after the start", "30.0 s"],
        ["load", "load: 50.0 s, 30.0 s after the start", "–"],
    ]
    bars = re.findall(r'class="run ([^"]*)" x="[^"]*" y="0" width="([^"]*)"', part(page, "steps"))
    assert bars == [("is-completed", "37.5%"), ("is-completed", "62.5%")]
    assert said(page, "output") == '{ "rows": 7 }'
    assert 'id="traceback"' not in page and 'role="alert"' not in part(page, "execution")
    assert "almost" not in said(page, "execution"), "how far it was is of no interest any more"


def test_a_run_that_was_cancelled_tells_why(shop: Shop) -> None:
    page = shop.page("/executions/3")
    assert "Cancelled: wrong day" in said(page, "execution")
    assert items(page, "way")[-1] == f"Cancelled {LATER}"
    [step] = rows(page, "steps")
    assert step == ["_work", "_work: 0 ms, 0 ms after the start", "–"]
    assert 'class="run is-cancelled"' in part(page, "steps")


def test_a_run_that_goes_on_tells_how_far_it_is(shop: Shop) -> None:
    page = shop.page("/executions/4")
    assert items(page, "way")[2:] == [f"Started {LATER} …", "Finished not yet"]
    assert said(page, "way").endswith("half of it 50 %")
    assert 'width="50.0"' in part(page, "way")
    assert (
        said(page, "why")
        == f"Why? extract-b is running: execution 4 since {LATER}, in step '_work'"
    )
    assert rows(page, "steps")[0][-1] == "…"
    assert 'class="run is-in_progress"' in part(page, "steps")
    assert forms(page) == ["/executions/4/cancel"]
    assert 'data-events="/api/v1/executions/4/events"' in page
    assert forms(shop.page("/executions/4", "read")) == []


def test_a_run_that_has_not_begun_tells_what_it_waits_for(shop: Shop) -> None:
    page = shop.page("/executions/5")
    assert said(page, "execution").startswith("work pending Execution 5, attempt 2 of 3. Cancel")
    assert items(page, "way") == [
        f"Queued {LATER} 0 ms", f"Dispatched {LATER} …", "Started not yet", "Finished not yet",
    ]  # fmt: skip
    assert said(page, "why") == (
        "Why? 1 of 1 gates closed a run of work does not run because no worker is alive; it can "
        "when one is started To be started worker : not passed no worker is alive when one is "
        "started"
    )
    assert "No step has begun yet." in said(page, "steps")
    assert facts(page)["Worker"] == "–"


def test_the_queue_is_listed_in_the_order_of_dispatch(shop: Shop) -> None:
    page = shop.page("/queue")
    assert rows(page) == [
        ["7", "work work, attempt 3", "–", "ad hoc", "0 / 3", LATER, "Why?"],
        ["8", "load work", "load", "trigger", "0 / 0", LATER, "Why?"],
        ["6", "extract-b work", "extract", "trigger", "7 / 0", f"starts {AT_TWO}", "Why?"],
    ]  # fmt: skip
    assert said(page, "queue").startswith("2 ready, 1 for later")
    assert said(page, "queue").endswith("3 entries")
    assert links(page)[3:7] == [
        ("8", "/queue/8"), ("load", "/queue/8"), ("load", "/groups/load"), ("Why?", "/queue/8"),
    ]  # fmt: skip
    assert forms(page) == ["/queue/7/cancel", "/queue/8/cancel", "/queue/6/cancel"]
    assert forms(shop.page("/queue", "read")) == []


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("group=load", ["8"]),
        ("manifest=extract-b", ["6"]),
        ("source=trigger", ["8", "6"]),
        ("group=+extract+&manifest=+extract-b+", ["6"]),
        ("source=schedule", []),
    ],
)
def test_the_queue_is_searched(shop: Shop, query: str, found: list[str]) -> None:
    page = shop.page(f"/queue?{query}")
    assert [row[0] for row in rows(page)] == found
    assert ("Clear", "/queue") in links(page)
    assert ("Nothing matches" in page) is (not found)
    assert shop.visitor.get("/queue?source=odd").status == 422


def test_an_entry_tells_when_it_may_run(shop: Shop) -> None:
    page = shop.page("/queue/6")
    told = said(page, "entry")
    assert told.startswith(
        "extract-b queued Entry 6 of the work queue, of extract-b in extract . Cancel"
    )
    assert "Why? 4 of 9 gates closed extract-b does not run because it waits until" in told
    assert facts(page) == {
        "Workflow": "work", "Source": "trigger", "Priority": "0", "Queued": LATER,
        "Not before": "2030-01-07 14:00:00", "Attempts made": "0",
    }  # fmt: skip
    assert links(page) == [("extract-b", "/manifests/extract-b"), ("extract", "/groups/extract")]
    delay = re.findall(r'data-gate="delay over" data-passed="no">(.*?)</li>', page, re.S)
    assert delay and 'data-time="until"' in delay[0]


def test_an_entry_of_no_manifest_is_called_like_its_workflow(shop: Shop) -> None:
    page = shop.page("/queue/7")
    assert said(page, "entry").startswith("work queued Entry 7 of the work queue. Cancel")
    assert facts(page) == {
        "Workflow": "work", "Source": "ad hoc", "Priority": "3", "Queued": LATER,
        "Attempts made": "2",
    }  # fmt: skip


def test_dead_letters_are_listed_with_what_failed(shop: Shop) -> None:
    page = shop.page("/dead-letters")
    assert rows(page) == [
        ["", "extract-a load: ValueError: no rows", "extract", "waits for you", "3", LATER]
    ]
    assert 'title="load: ValueError: no rows (max retries exceeded)"' in page
    assert '<input type="checkbox" name="id" value="1"' in page
    assert links(page) == [("extract-a", "/dead-letters/1"), ("extract", "/groups/extract")]
    assert 'formaction="/dead-letters/acknowledge"' in page
    read = shop.page("/dead-letters", "read")
    assert rows(read)[0][0].startswith("extract-a") and 'id="batch"' not in read


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("status=all", 1),
        ("status=retried", 0),
        ("group=+extract+", 1),
        ("group=load", 0),
        ("workflow=+work+", 1),
        ("workflow=other", 0),
        ("status=acknowledged", 0),
    ],
)
def test_dead_letters_are_found_by_what_is_asked_for(shop: Shop, query: str, found: int) -> None:
    page = shop.page(f"/dead-letters?{query}")
    assert len(rows(page)) == found
    assert ("Nothing matches" in page) is (not found)
    assert shop.visitor.get("/dead-letters?status=odd").status == 422


def test_a_dead_letter_tells_everything_about_the_failure(shop: Shop) -> None:
    page = shop.page("/dead-letters/1")
    told = said(page, "dead-letter")
    assert told.startswith(
        f"extract-a waits for you Dead letter 1 of extract-a , {LATER}: max retries exceeded."
    )
    assert "ValueError in step load : no rows" in told
    assert said(page, "traceback") == "Traceback: line 7"
    assert rows(page, "failures") == [
        ["#1 load: ValueError: no rows", "failed", "schedule", BEGUN, "1 min 20 s"]
    ]
    assert facts(page) == {
        "Workflow": "work", "Group": "extract", "Failures": "3", "Since": LATER,
        "Written for": "execution 1",
    }  # fmt: skip
    assert links(page) == [
        ("extract-a", "/manifests/extract-a"),
        ("Requeue with another input", "/dead-letters/1/requeue"),
        ("All", "/executions?manifest=extract-a"),
        ("#1", "/executions/1"),
        ("extract", "/groups/extract"),
        ("execution 1", "/executions/1"),
    ]
    assert forms(page) == ["/dead-letters/1/requeue"]
    assert 'formaction="/dead-letters/1/acknowledge"' in page
    assert forms(shop.page("/dead-letters/1", "read")) == []


def test_manifests_are_listed_with_how_they_stand(shop: Shop) -> None:
    page = shop.page("/manifests")
    assert [row[:6] for row in rows(page)] == [
        ["extract-a every 1 hour", "extract", "dead letter", "never", "–", STRIP],
        ["extract-b every 1 hour", "extract", "running", LATER, "–", "completed · in 1 min 20 s"],
        ["load after extract-a", "load", "queued", "never", "–", "cancelled · in 0 ms"],
        ["sort when activated by extract-a", "load", "idle", "never", "–", ""],
        ["tidy At 06:00 every day (Europe/Berlin)", "tidy", "disabled", "never", "–", ""],
    ]  # fmt: skip
    assert [row[6:] for row in rows(page)] == [["On", "Trigger"]] * 4 + [["Off", "Trigger"]]
    assert links(page)[:4] == [
        ("extract-a", "/manifests/extract-a"),
        ("extract", "/groups/extract"),
        ("failed · in 1 min 20 s", "/executions/1"),
        ("Trigger", "/manifests/extract-a/trigger"),
    ]
    assert forms(page)[-1] == "/manifests/tidy/switch"
    assert page.count('aria-label="no runs yet"') == 2
    read = rows(shop.page("/manifests", "read"))
    assert [row[6:] for row in read] == [["enabled", ""]] * 4 + [["disabled", ""]]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("group=+extract+", ["extract-a", "extract-b"]),
        ("kind=cron", ["tidy"]),
        ("kind=dependent", ["load"]),
        ("kind=dormant_dependent", ["sort"]),
        ("kind=odd", ["extract-a", "extract-b", "load", "sort", "tidy"]),
        ("state=off", ["tidy"]),
        ("state=on&search=+o+", ["load", "sort"]),
        ("state=dead", ["extract-a"]),
    ],
)
def test_manifests_are_found_by_what_is_asked_for(shop: Shop, query: str, found: list[str]) -> None:
    page = shop.page(f"/manifests?{query}")
    assert re.findall(r'<tr id="manifest-\d+" data-manifest="([^"]*)"', page) == found
    assert ("Clear", "/manifests") in links(page)


def test_a_manifest_that_waits_for_a_person_says_so_first(shop: Shop) -> None:
    page = shop.page("/manifests/extract-a")
    assert said(page, "manifest").startswith(
        "extract-a dead letter Runs work every 1 hour, in group extract . On Cancel Trigger "
        "It waits for a person. max retries exceeded. Look at dead letter 1"
    )
    assert rows(page, "history") == [
        ["#1 load: ValueError: no rows", "failed", "schedule", BEGUN, "1 min 20 s"]
    ]
    assert "Followed by 2" in said(page, "manifest")
    assert facts(page)["Failures allowed"] == "4"
    assert ("All executions", "/executions?manifest=extract-a") in links(page)
    cancel = re.findall(r"/cancel\"(.*?)</form>", page, re.S)[0]
    assert "disabled" in cancel, "nothing of it is queued or runs"
    assert forms(shop.page("/manifests/extract-a", "read")) == []


def test_a_manifest_shows_its_runs_its_entries_and_when_it_runs_next(shop: Shop) -> None:
    page = shop.page("/manifests/extract-b")
    assert said(page, "manifest").startswith("extract-b running Runs work")
    assert rows(page, "history") == [
        ["#4 half of it", "running", "trigger", LATER, "…"],
        ["#2", "completed", "schedule", BEGUN, "1 min 20 s"],
    ]
    assert ("completed · in 1 min 20 s", "/executions/2") in links(page, "history")
    assert (
        page.count('class="run is-completed"') == 1
        and "is-in_progress" not in re.findall(r'class="strip".*?</svg>', page, re.S)[0]
    ), "what still runs is not in the strip"
    assert items(page, "entries") == ["Entry 6 trigger 2030-01-07 14:00:00"]
    first = "2030-01-07 13:02:30"
    assert items(page, "next-runs")[0] == f"{first} {first}" and len(items(page, "next-runs")) == 5
    assert facts(page) == {
        "Workflow": "work", "Schedule": "every 1 hour", "Last success": LATER,
        "Timeout": "20 min as set for all", "Failures allowed": "3 as set for all",
        "Priority": "0", "Declared by": f"tests, {NOON}",
    }  # fmt: skip
    cancel = re.findall(r"/cancel\"(.*?)</form>", page, re.S)[0]
    assert "disabled" not in cancel


@pytest.mark.parametrize(
    ("name", "next_run"),
    [
        ("extract-a", "None by itself until its dead letter is resolved."),
        ("load", "Whenever its parents succeed."),
        ("sort", "Whenever a parent activates it."),
        ("tidy", "None: it is off."),
    ],
)
def test_what_has_no_next_run_says_why(shop: Shop, name: str, next_run: str) -> None:
    assert said(shop.page(f"/manifests/{name}"), "next-runs") == f"Next runs {next_run}"


def test_a_manifest_shows_what_it_was_declared_with(shop: Shop) -> None:
    page = shop.page("/manifests/tidy")
    assert said(page, "manifest").startswith("tidy disabled off Runs work At 06:00 every day")
    assert facts(page) == {
        "Workflow": "work",
        "Schedule": "At 06:00 every day (Europe/Berlin) (Europe/Berlin)",
        "Last success": "never",
        "Timeout": "5 min",
        "Failures allowed": "3 as set for all",
        "If missed": "catch up, at most 3",
        "Variance": "up to 2 min",
        "Overlap": "runs may overlap",
        "Priority": "4",
        "Declared by": f"tests, {NOON}",
    }
    assert "It has never run" in said(page, "history")
    assert facts(shop.page("/manifests/sort"))["When busy"] == "skip"


def test_a_dependent_shows_what_it_runs_after(shop: Shop) -> None:
    page = shop.page("/manifests/load")
    assert "Runs after 1 extract-a never succeeded failed In the graph" in said(page, "manifest")
    assert links(page)[-2:] == [
        ("extract-a", "/manifests/extract-a"),
        ("In the graph", "/graph?view=manifests&around=load"),
    ]


def test_groups_are_listed_with_how_they_stand(shop: Shop) -> None:
    page = shop.page("/groups")
    assert rows(page) == [
        ["extract", "running", "1 of 2 slots taken 1/2", "0", "1 done, 1 failed", "2", "7", "On"],
        ["load", "waiting", "0 active, no cap, 1 waiting 0, no cap", "1", "0 done", "2", "0", "On"],
        ["tidy", "idle", "0 active, no cap 0, no cap", "0", "0 done", "1", "4", "On"],
    ]
    assert pressed(page) == ["All"]
    assert pressed(shop.page("/groups?switched=on")) == ["On"]
    assert len(rows(shop.page("/groups?switched=on&search=+a+"))) == 2
    assert len(rows(shop.page("/groups?switched=odd"))) == 3
    assert [row[-1] for row in rows(shop.page("/groups", "read"))] == ["enabled"] * 3


def test_a_group_shows_its_numbers_and_where_they_lead(shop: Shop) -> None:
    page = shop.page("/groups/extract")
    assert links(page, "numbers") == [
        ("Waiting 0", "/queue?group=extract"),
        ("Manifests 2", "/manifests?group=extract"),
        ("Completed 1 in the last 24 hours", "/executions?group=extract&state=completed"),
        ("Failed 1 in the last 24 hours", "/executions?group=extract&state=failed"),
        ("Dead letters 1 wait for you", "/dead-letters?group=extract"),
    ]
    assert said(page, "numbers").startswith("Slots taken 1 of 2 1 of 2 slots taken")
    assert said(shop.page("/groups/load"), "numbers").startswith("Slots taken 0 no cap")
    [held] = rows(page, "holders")
    assert (held[:3], held[4]) == (["#4", "extract-b", "running"], "_work")
    assert rows(page, "waiting") == [["extract-b", "trigger", "0", "2030-01-07 14:00:00"]]
    assert rows(page, "manifests") == [
        ["extract-a", "dead letter", "failed · in 1 min 20 s", "every 1 hour", "never"],
        ["extract-b", "running", "completed · in 1 min 20 s", "every 1 hour", LATER],
    ]
    assert ("failed · in 1 min 20 s", "/executions/1") in links(page, "manifests")
    assert facts(page) == {
        "Runs after": "no group", "Followed by": "load", "Created": NOON, "Changed": NOON,
    }  # fmt: skip
    assert facts(shop.page("/groups/load"))["Runs after"] == "extract"
    assert ("Timeline", "/timeline?group=extract") in links(page)
    assert forms(page) == [
        f"/groups/extract/{act}" for act in ("trigger", "cancel", "switch", "settings")
    ]
    read = shop.page("/groups/extract", "read")
    assert forms(read) == ["/groups/extract/settings"] and "You may look at this" in read
    assert len(re.findall(r"<input [^>]* disabled>", read)) == 2 and ">Save<" not in read


@pytest.fixture
def young(sqlite_url: str) -> Iterator[Shop]:
    """A deployment in which nothing has happened yet."""
    with Scene(sqlite_url) as scene:
        with visiting(scene.app, scene.store) as visitor:
            yield Shop(scene, visitor)
        scene.app.runtime.store.close()


def lives(scene: Scene, name: str = "web-3") -> None:
    process = ServerProcess(name, "web", 3, ("manager", "worker"), ("work",), 4)
    with scene.store.writing() as tx:
        register(tx, process, timedelta(minutes=30))


def test_home_names_whatever_needs_attention_and_what_comes_next(young: Shop) -> None:
    scene = young.scene
    lives(scene)
    scene.app.schedule("work", "load-users", None, every(hours=1), group="nightly", max_retries=9)
    scene.app.schedule("work", "load-stock", None, every(hours=1), group="shut")
    scene.app.schedule("work", "report", None, every(hours=1), group="daily")
    scene.apply()
    scene.failing.add("load-users")
    scene.cycle()
    scene.manage()
    with scene.store.writing() as tx:
        unknown_workflows.note_seen(tx, {"other": scene.clock.now})
    scene.trigger("load-stock")
    scene.app.runtime.set_group("shut", enabled=False)
    scene.clock.advance(minutes=11)
    page = young.page("/")
    assert [sentence.removesuffix(f" {NOON}") for sentence in items(page, "attention")] == [
        f"server web-3 on web is late: last heard of at {NOON} UTC",
        "no living server knows the workflow 'other', and entries wait for it",
        "group shut is disabled, and work waits in it",
        "load-users has failed since its last success: RuntimeError",
    ]
    assert [address for _, address in links(page, "attention")] == [
        "/servers", "/queue", "/groups/shut", "/manifests/load-users",
    ]  # fmt: skip
    shown = re.findall(r'data-kind="([^"]*)" class="([^"]*)"', part(page, "attention"))
    assert shown == [
        ("late_server", "is-warning"),
        ("unknown_workflow", "is-failed"),
        ("disabled_group", "is-warning"),
        ("failing", "is-warning"),
    ]
    assert links(page, "next") == [("report", "/manifests/report")]
    assert items(page, "next") == ["report daily 2030-01-07 13:00:00"]
    assert "Running 0 of 4 slots" in said(page, "numbers")
    assert "Dead letters 0 nothing waits for you" in said(page, "numbers")
    assert "Nothing runs right now" in said(page, "running")


def test_home_of_a_young_deployment(young: Shop) -> None:
    page = young.page("/")
    numbers = said(page, "numbers")
    assert numbers.startswith("Queued 0 ready to be dispatched Running 0 no worker is alive")
    assert "Success rate – last hour" in numbers
    assert re.findall(r'class="stat is-(\w+)"', page)[-1] == "idle"
    young.scene.app.schedule("work", "load-users", None, every(hours=1))
    young.scene.apply()
    lives(young.scene)
    assert "All is well" in said(young.page("/"), "attention")


def test_all_attempts_of_an_entry_lead_to_one_another(young: Shop) -> None:
    scene = young.scene
    scene.failing.add(None)
    first = scene.pending("work", max_attempts=3)
    scene.run()
    scene.clock.advance(hours=1)
    with scene.store.writing() as tx:
        delays.ripen(tx, 10)
    scene.dispatch()
    page = young.page(f"/executions/{first}")
    assert items(page, "attempts") == ["#1 attempt 1 failed", "#2 attempt 2 pending"]
    assert links(page, "attempts") == [("#1", "/executions/1"), ("#2", "/executions/2")]
    assert pressed(page) == ["#1"]
    assert "Execution 1, attempt 1 of 3." in said(page, "execution")
    assert "Workers lost" not in facts(page)
    with scene.store.writing() as tx:
        tx.connection.execute(update(execution).values(crashes=2))
    assert facts(young.page("/executions/2"))["Workers lost"] == "2"


def test_a_run_that_is_asked_to_stop_is_stopping(young: Shop) -> None:
    run = young.scene.pending("work")
    young.scene.claim()
    young.scene.app.cancel(execution=run)
    page = young.page(f"/executions/{run}")
    assert said(page, "execution").startswith("work stopping Execution 1")
    assert forms(page) == []
    assert rows(young.page("/executions"))[0][3] == "stopping"


def test_an_entry_of_a_schedule_tells_which_occurrence_it_stands_for(young: Shop) -> None:
    young.scene.app.schedule("work", "load-users", None, every(hours=1), group="nightly")
    young.scene.apply()
    young.scene.manage()
    young.scene.clock.advance(minutes=1)
    assert facts(young.page("/queue/1")) == {
        "Workflow": "work", "Source": "schedule", "Priority": "0", "Queued": NOON,
        "Stands for": NOON, "Attempts made": "0",
    }  # fmt: skip
    young.scene.app.runtime.set_group("nightly", enabled=False)
    page = young.page("/manifests/load-users")
    assert "in group nightly (which is off)." in said(page, "manifest")
    assert items(page, "entries") == [f"Entry 1 schedule {NOON}"]


def test_a_group_that_is_off_is_seen_at_its_manifests(young: Shop) -> None:
    young.scene.app.schedule("work", "load-users", None, every(hours=1), group="nightly")
    young.scene.apply()
    young.scene.app.runtime.set_group("nightly", enabled=False)
    page = young.page("/manifests/load-users")
    assert said(page, "manifest").startswith("load-users group is off Runs")
    assert rows(young.page("/manifests"))[0][2] == "group is off"
    assert said(page, "next-runs") == "Next runs None: its group is off."
    group = young.page("/groups/nightly")
    assert "nightly off Nothing of this group is queued or dispatched" in said(group, "main")
    assert "Switch on" in said(group, "main")
    assert rows(young.page("/groups"))[0][-1] == "Off"
    assert pressed(young.page("/groups?switched=off")) == ["Off"]


def test_a_success_that_was_not_dealt_with_is_seen_at_the_dependent(young: Shop) -> None:
    hw = young.scene.app
    hw.schedule("work", "extract", None, every(hours=1), max_retries=1).include("work", "load")
    young.scene.apply()
    young.scene.cycle()
    told = said(young.page("/manifests/load"), "manifest")
    assert f"Runs after 1 extract {NOON}, not yet dealt with" in told
    young.scene.cycle()
    told = said(young.page("/manifests/load"), "manifest")
    assert f"Runs after 1 extract {NOON} " in told
    assert f"Last success {NOON}" in told


def test_a_long_list_is_turned_over_and_back(young: Shop) -> None:
    with young.scene.store.writing() as tx:
        work_queue.enqueue(tx, [NewEntry("work", Source.AD_HOC, "null")] * 1_000)
    first = young.page("/queue?source=ad_hoc")
    assert said(first, "queue").endswith("50 entries on this page Next page")
    [(_, following)] = [link for link in links(first, "queue") if link[0] == "Next page"]
    assert following.startswith("?source=ad_hoc&cursor=")
    second = young.page(f"/queue{following}")
    assert said(second, "queue").endswith("50 entries on this page First page Next page")
    assert ("First page", "?source=ad_hoc") in links(second, "queue")
    assert 'id="count-queue">999+<' in first
    elsewhere = young.page(f"/queue{following}&manifest=nothing")
    assert "Nothing matches" in said(elsewhere, "queue")


def test_a_group_shows_the_first_of_what_it_has_and_leads_to_the_rest(young: Shop) -> None:
    for number in range(26):
        young.scene.app.schedule("work", f"load-{number:02}", None, every(hours=1), group="many")
    young.scene.apply()
    young.scene.manage()
    page = young.page("/groups/many")
    assert [row[0] for row in rows(page, "manifests")] == [f"load-{n:02}" for n in range(25)]
    assert ("All 26", "/manifests?group=many") in links(page, "main")
    assert len(rows(page, "waiting")) == 10
    assert rows(page, "waiting")[0] == ["load-00", "schedule", "0", NOON]
    assert "It stands alone" in page
    assert said(page, "holders").startswith("Who holds its slots 0 Nothing runs")


def test_only_what_waits_can_be_ticked(young: Shop) -> None:
    for name in ("load-users", "load-stock", "load-orders"):
        young.scene.app.schedule("work", name, None, every(hours=1))
    young.scene.apply()
    for name in ("load-users", "load-stock", "load-orders"):
        dead_letter_for(young.scene.store, name)
    young.scene.app.dead_letters.requeue(1, "mended")
    young.scene.app.dead_letters.acknowledge(2)
    page = young.page("/dead-letters?status=all")
    assert sorted(row[1:4] for row in rows(page)) == [
        ["load-orders max retries exceeded", "load-orders", "waits for you"],
        ["load-stock max retries exceeded", "load-stock", "acknowledged"],
        ["load-users max retries exceeded", "load-users", "retried"],
    ]
    assert re.findall(r'name="id" value="(\d+)"', page) == ["3"]
    chosen = re.findall(r'<option value="(\w+)" selected>(\w+)', page)
    assert chosen == [("all", "All")]
    retried = young.page("/dead-letters?status=retried")
    assert rows(retried) == [
        ["load-users max retries exceeded", "load-users", "retried", "3", NOON]
    ]
    assert 'id="batch"' not in retried

    requeued, acknowledged = (young.page(f"/dead-letters/{one}") for one in (1, 2))
    assert re.search(r"Requeued [-\d: ]+: mended", said(requeued, "dead-letter"))
    assert re.search(r"Acknowledged [-\d: ]+ Its last runs", said(acknowledged, "dead-letter"))
    assert forms(requeued) == forms(acknowledged) == []
    assert "None are kept any more." in said(acknowledged, "failures")
    young.scene.dispatch()
    young.scene.run()
    resolved = young.page("/dead-letters/1")
    assert ("execution 1", "/executions/1") in links(resolved)


def test_a_workflow_that_is_not_known_can_only_run_with_the_input_it_has(young: Shop) -> None:
    scene = young.scene
    scene.app.schedule("work", "load-users", None, every(hours=1))
    scene.apply()
    dead_letter_for(scene.store, "load-users")
    run = scene.pending("other")
    with scene.store.writing() as tx:
        tx.connection.execute(update(manifest).values(workflow="other"))
    note = "No process with a dashboard knows the workflow other: it can only run with the input"
    for path in ("/manifests/load-users/trigger", f"/executions/{run}/rerun"):
        page = young.page(path)
        assert note in said(page, "main")
        assert '<input type="hidden" name="input" value="own">' in page
        assert 'name="input-mode"' not in page
    letter = young.page("/dead-letters/1")
    assert forms(letter) == ["/dead-letters/1/requeue"]


def test_a_workflow_without_input_asks_for_none(young: Shop) -> None:
    def nothing(value: None) -> None: ...

    young.scene.app.workflow("nothing", steps=(nothing,))
    young.scene.app.schedule("nothing", "tidy", None, every(hours=1))
    young.scene.apply()
    page = young.page("/manifests/tidy/trigger")
    assert "nothing takes no input." in said(page, "main")
    assert 'name="input-json"' not in page


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/executions", "Nothing has run yet"),
        ("/queue", "The queue is empty"),
        ("/dead-letters", "No dead letters"),
        ("/manifests", "No manifests yet"),
        ("/groups", "There are no groups yet"),
        ("/graph", "Nothing is declared yet"),
        ("/executions?state=failed", "Nothing matches"),
        ("/manifests?state=off", "Nothing matches"),
        ("/groups?switched=off", "No group is like that"),
    ],
)
def test_an_empty_list_says_what_would_be_there(young: Shop, path: str, told: str) -> None:
    assert told in said(young.page(path), "main")


def test_strips_show_the_oldest_run_first_and_tables_the_newest(young: Shop) -> None:
    young.scene.app.schedule("work", "load-users", None, every(hours=1), group="nightly")
    young.scene.apply()
    failed = Outcome(ExecutionState.FAILED, NO_ROWS)
    for outcome in (failed, Outcome(ExecutionState.COMPLETED)):
        ran(young.scene.store, "load-users", outcome)
    strip = [("failed · in 0 ms", "/executions/1"), ("completed · in 0 ms", "/executions/2")]
    page = young.page("/manifests/load-users")
    assert links(page, "history")[:2] == strip
    assert [row[0] for row in rows(page, "history")] == ["#2", f"#1 {FAILED}"]
    for path in ("/manifests", "/groups/nightly"):
        shown = links(young.page(path), "manifests")
        assert [link for link in shown if link in strip] == strip


def test_a_manifest_of_a_batch_shows_exclusions_retries_and_all_its_neighbours(
    young: Shop,
) -> None:
    items_of = [Item(one) for one in range(110)]
    quiet = [exclude.days("sat", "sun"), exclude.window("22:00", "06:00")]
    retry = RetryPolicy(delay=timedelta(seconds=10))
    batch = young.scene.app.schedule_many(
        "work", "load", items_of, every(hours=1), exclude=quiet, retry=retry, max_retries=2
    )
    after = [f"load-{one}" for one in range(110)]
    batch.then_include_many("work", "report", [Item("all", depends_on=after)], join="any")
    young.scene.apply()
    one = young.page("/manifests/load-7")
    told = said(one, "definition")
    assert "Not on sun, sat (skip) between 22:00 and 06:00 (skip)" in told
    assert re.search(r"Failures allowed 2 after 0:00:10", told)
    assert facts(one)["Batch"] == "load"
    assert ("In the graph", "/graph?view=manifests&around=load-7") in links(one)
    report = young.page("/manifests/report-all")
    assert "Runs after any of them 110 load-0 never succeeded" in said(report, "manifest")
    assert "and 10 more In the graph" in said(report, "manifest")


def test_a_manifest_whose_row_is_wrong_says_so(young: Shop) -> None:
    young.scene.app.schedule("work", "load-users", None, cron("0 6 * * *"))
    young.scene.apply()
    with young.scene.store.writing() as tx:
        tx.connection.execute(update(manifest).values(cron_expression="61 * * * *"))
    page = young.page("/manifests/load-users")
    assert "The row of this manifest cannot be understood: " in said(page, "manifest")
