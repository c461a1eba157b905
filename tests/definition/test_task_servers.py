"""Saying where work is sent: by workflow, by group, or otherwise; contradictions are refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from headway import Group, Headway
from headway.domain.routing import Routing
from headway.domain.work_queue import Source, WorkQueueEntry
from headway.errors import HeadwayError


class Nowhere:
    def submit(self, execution_ids: Sequence[int]) -> None:
        """Take and forget."""


def entry(number: int, workflow: str) -> WorkQueueEntry:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    return WorkQueueEntry(
        number, workflow, Source.TRIGGER, 0, now, number, 1, f"m-{number}", "nightly", 0, None
    )


@pytest.fixture
def hw() -> Headway:
    hw = Headway("shop")
    hw.workflow("train")(lambda: None)
    hw.workflow("load")(lambda: None)
    return hw


def test_without_a_word_everything_goes_to_the_own_workers(hw: Headway) -> None:
    assert hw.task_servers.routing == Routing()
    assert hw.task_servers.routing.server_of("train", "nightly") == "local"
    assert hw.task_servers.elsewhere() == ()
    assert hw.task_servers.local_workflows() == {"load", "train"}


def test_a_workflow_wins_over_its_group_and_a_group_over_the_default(hw: Headway) -> None:
    gpu, batch, other = Nowhere(), Nowhere(), Nowhere()
    hw.task_servers.add("gpu", gpu, workflows=["train"])
    hw.task_servers.add("batch", batch, groups=["nightly"])
    hw.task_servers.add("other", other, default=True)
    routing = hw.task_servers.routing
    assert routing.server_of("train", "nightly") == "gpu"
    assert routing.server_of("load", "nightly") == "batch"
    assert routing.server_of("load", "daily") == routing.server_of("load", None) == "other"
    assert [hw.task_servers[name] for name in ("gpu", "batch", "other")] == [gpu, batch, other]
    assert hw.task_servers.local_workflows() == frozenset()


def test_what_is_kept_local_stays_whatever_the_default(hw: Headway) -> None:
    hw.task_servers.add("other", Nowhere(), default=True)
    hw.task_servers.keep_local(workflows=["load"], groups=[Group("small")])
    routing = hw.task_servers.routing
    assert routing.server_of("load", "daily") == routing.server_of("train", "small") == "local"
    assert routing.server_of("train", "daily") == "other"
    assert hw.task_servers.local_workflows() == {"load", "train"}


def test_workflows_are_named_or_given_as_functions_and_groups_as_groups(hw: Headway) -> None:
    @hw.workflow
    def render() -> None: ...

    hw.task_servers.add("gpu", Nowhere(), workflows=[render], groups=[Group("pictures")])

    assert hw.task_servers.routing.by_workflow == {"render": "gpu"}
    assert hw.task_servers.routing.by_group == {"pictures": "gpu"}


def test_what_another_application_runs_is_not_sent_anywhere(hw: Headway) -> None:
    hw.task_servers.add("other", Nowhere(), groups=["nightly"], default=True)
    mine, theirs = (entry(1, "load"), entry(2, "elsewhere"))

    routed = hw.task_servers.routed([mine, theirs])

    assert [one.task_server for one in routed] == ["other", "local"]


class Relayed:
    """One that is told through the outbox."""

    def publish(self, execution_id: int) -> None: ...
    def reach(self) -> None: ...


def test_work_for_a_server_that_is_away_stays_unless_it_answers_again(hw: Headway) -> None:
    celery = Relayed()
    hw.task_servers.add("celery", celery, workflows=["train"])
    assert dict(hw.task_servers.relayed) == {"celery": celery}
    assert [one.task_server for one in hw.task_servers.routed([entry(1, "train")])] == ["celery"]
    hw.task_servers.add("gpu", Nowhere(), groups=["pictures"])
    everywhere = hw.task_servers.elsewhere()
    assert hw.task_servers.reachable() == everywhere != ()

    hw.task_servers.note_away("celery", True)
    assert hw.task_servers.away == {"celery"}
    assert hw.task_servers.elsewhere() == everywhere
    without = hw.task_servers.reachable()
    assert not any(share.holds("train", "nightly") for share in without)
    assert any(share.holds("load", "pictures") for share in without)
    assert not any(share.holds("load", "pictures") for share in hw.task_servers.reachable(["gpu"]))

    hw.task_servers.note_away("celery", False)
    assert (hw.task_servers.away, hw.task_servers.reachable()) == (frozenset(), everywhere)


def test_what_is_registered_later_counts_as_well(hw: Headway) -> None:
    hw.task_servers.add("gpu", Nowhere(), workflows=["train"])
    assert hw.task_servers.local_workflows() == {"load"}
    hw.workflow("tidy")(lambda: None)
    assert hw.task_servers.local_workflows() == {"load", "tidy"}
    hw.task_servers.add("other", Nowhere(), default=True)
    assert hw.task_servers.local_workflows() == frozenset()
    assert [one.task_server for one in hw.task_servers.routed([entry(1, "tidy")])] == ["other"]


def test_one_server_may_stand_for_all_of_them(hw: Headway) -> None:
    hw.task_servers.add("celery", Relayed(), workflows=["train"])
    hw.task_servers.add("gpu", Nowhere(), groups=["pictures"])
    inline = Nowhere()
    other = hw.task_servers.all_handed_to(inline)
    assert [other["celery"], other["gpu"]] == [inline, inline]
    assert (other.routing, dict(other.relayed)) == (hw.task_servers.routing, {})
    assert [one.task_server for one in other.routed([entry(1, "train")])] == ["celery"]


WRONG: dict[str, tuple[Callable[[Headway], Any], str]] = {
    "the name of the own workers": (
        lambda hw: hw.task_servers.add("local", Nowhere()),
        "is the name of headway's own workers",
    ),
    "a name twice": (
        lambda hw: hw.task_servers.add("first", Nowhere()),
        "is the name of another task server",
    ),
    "the name of one told through the outbox": (
        lambda hw: hw.task_servers.add("third", Nowhere()),
        "'third': is the name of another task server; choose another, for example 'third-2'",
    ),
    "text instead of workflows": (
        lambda hw: hw.task_servers.add("second", Nowhere(), workflows="train"),
        "workflows = 'train': must be a list; for example workflows=['nightly']",
    ),
    "a function instead of a list": (
        lambda hw: hw.task_servers.add("second", Nowhere(), workflows=len),  # type: ignore[arg-type]
        "workflows = <built-in function len>: must be a list",
    ),
    "a group kept here but sent away": (
        lambda hw: hw.task_servers.keep_local(groups=["nightly"]),
        "task server 'local': group 'nightly' already goes to 'first'",
    ),
    "a workflow that goes elsewhere": (
        lambda hw: hw.task_servers.add("second", Nowhere(), workflows=["train"]),
        "workflow 'train' already goes to 'first'",
    ),
    "a group that goes elsewhere": (
        lambda hw: hw.task_servers.add("second", Nowhere(), groups=["nightly"]),
        "group 'nightly' already goes to 'first'",
    ),
    "two defaults": (
        lambda hw: hw.task_servers.add("second", Nowhere(), default=True),
        "what nothing is said about already goes to 'first'",
    ),
    "a workflow nobody registered": (
        lambda hw: hw.task_servers.add("second", Nowhere(), workflows=["unheard-of"]),
        "'unheard-of' is not registered",
    ),
    "text instead of a list": (
        lambda hw: hw.task_servers.add("second", Nowhere(), groups="nightly"),
        "groups = 'nightly': must be a list",
    ),
    "no server": (
        lambda hw: hw.task_servers.add("second", object()),  # type: ignore[arg-type]
        "must have submit",
    ),
    "a class instead of a server": (
        lambda hw: hw.task_servers.add("second", Nowhere),  # type: ignore[arg-type]
        "must have submit",
    ),
    "a group without a name": (
        lambda hw: hw.task_servers.add("second", Nowhere(), groups=[Group(priority=3)]),
        "group = ''",
    ),
    "kept here but sent away": (
        lambda hw: hw.task_servers.keep_local(workflows=["train"]),
        "workflow 'train' already goes to 'first'",
    ),
    "no name": (lambda hw: hw.task_servers.add("", Nowhere()), "task server"),
}


@pytest.mark.parametrize("case", WRONG)
def test_contradictions_are_refused_and_change_nothing(hw: Headway, case: str) -> None:
    first = {"workflows": ["train"], "groups": ["nightly"], "default": True}
    hw.task_servers.add("first", Nowhere(), **first)  # type: ignore[arg-type]
    hw.task_servers.add("third", Relayed())
    before = hw.task_servers.routing
    call, told = WRONG[case]
    with pytest.raises(HeadwayError) as refused:
        call(hw)
    assert told in str(refused.value) and "\n" not in str(refused.value)
    assert hw.task_servers.routing == before
    with pytest.raises(KeyError):
        hw.task_servers["second"]
