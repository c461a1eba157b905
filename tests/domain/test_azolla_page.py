"""The page: what comes first, who answered, and what a builder may return."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.domain.azolla.artifacts import (
    ArtifactType,
    BlockerKind,
    BlockerRef,
    GateResult,
    Objective,
    ObjectiveStatus,
    ObjectiveType,
    OutputBundle,
    PauseReason,
    PauseState,
    PauseSummary,
    ResponseStatus,
)
from headway.domain.azolla.context import (
    Answer,
    Context,
    Urgency,
    parse_prompt,
    prompt_text,
    urgency_of,
)
from headway.domain.azolla.gate import Judgement, judge
from headway.domain.azolla.page import Page, build_page, not_answered, page_of, summary_of
from headway.domain.azolla.ranking import ranked
from headway.errors import DefinitionError

NOW = datetime(2030, 1, 7, 12, tzinfo=UTC)

REASONS = st.sampled_from(list(PauseReason))
DEGREES = st.integers(0, 4)


def objective(azolla: str, key: str, urgency: int, importance: int, **changes: Any) -> Objective:
    fields: dict[str, Any] = {
        "title": f"{key} of {azolla}",
        "acceptance_criteria": "",
        "objective_type": ObjectiveType.TICKET,
        "status": ObjectiveStatus.IN_PROGRESS,
        "blocked_reason": None,
        "blocked_on": (),
        "metadata": {},
        "created_at": NOW,
        "updated_at": NOW,
    }
    ranks = {"urgency": urgency, "importance": importance}
    return Objective(azolla_id=azolla, objective_id=key, **fields | ranks | changes)


def pause(azolla: str, key: str, reason: PauseReason, age: int, *actions: str) -> PauseState:
    return PauseState(
        objective_id=key,
        azolla_id=azolla,
        reason=reason,
        prioritized_actions=actions or (f"look at {key} ({age})",),
        created_at=NOW - timedelta(hours=age),
    )


def answer(azolla: str, kind: ArtifactType, *results: Any, **changes: Any) -> Answer:
    fields: dict[str, Any] = {"status": ResponseStatus.OK}
    found = tuple(one.model_dump(mode="json") for one in results)
    return Answer(azolla_id=azolla, artifact_type=kind, results=found, **fields | changes)


def context(*answers: Answer, captures: int = 0) -> Context:
    return Context(
        azolla_id="here",
        event_id="e1",
        asked_at=NOW,
        pending_captures=captures,
        answers=answers,
    )


def pauses(azolla: str, *found: PauseState) -> Answer:
    return answer(azolla, ArtifactType.PAUSE_STATE, *found)


def objectives(azolla: str, *found: Objective) -> Answer:
    return answer(azolla, ArtifactType.OBJECTIVE, *found)


def refused(azolla: str, status: ResponseStatus, note: str | None = None) -> tuple[Answer, Answer]:
    kinds = (ArtifactType.PAUSE_STATE, ArtifactType.OBJECTIVE)
    first, second = (answer(azolla, kind, status=status, note=note) for kind in kinds)
    return first, second


@st.composite
def contexts(draw: st.DrawFn) -> Context:
    found: list[Answer] = []
    for name in draw(st.lists(st.sampled_from(["here", "sales", "shop"]), unique=True)):
        own = [
            objective(name, f"o{n}", draw(DEGREES), draw(DEGREES))
            for n in range(draw(st.integers(0, 3)))
        ]
        rests = [
            pause(name, f"o{n}", draw(REASONS), draw(st.integers(0, 50)))
            for n in draw(st.lists(st.integers(0, 3), max_size=4))
        ]
        found += [pauses(name, *rests), objectives(name, *own)]
    return context(*found, captures=draw(st.integers(0, 2)))


@given(contexts())
def test_nothing_that_matters_less_comes_first(seen: Context) -> None:
    urgency = {
        (one.azolla_id, found.objective_id): (found.urgency, found.importance)
        for one in seen.answers
        for found in one.objectives()
    }
    matters = ranked(seen)
    for before, after in pairwise(matters):
        first, second = (
            urgency.get((m.azolla_id, m.objective_id), (0, 0)) for m in (before, after)
        )
        assert first >= second
        if first == second:
            assert (before.failure, before.since) <= (after.failure, after.since)
    assert len(matters) == sum(len(one.pause_states()) for one in seen.answers)


@given(contexts())
def test_the_page_is_the_same_for_the_same_and_has_one_to_five_lines(seen: Context) -> None:
    page = build_page(seen)
    assert page == build_page(parse_prompt(prompt_text(seen)))
    assert 1 <= len(page.orientation) <= 5
    assert all(line in page.content for line in page.orientation)


@given(contexts())
def test_the_text_carries_everything_that_was_seen(seen: Context) -> None:
    assert parse_prompt(prompt_text(seen)) == seen
    written = json.loads(prompt_text(seen).partition("=== CONTEXT (JSON) ===")[2])
    assert len(written["answers"]) == len(seen.answers)


def test_urgency_beats_importance_beats_failure_beats_age() -> None:
    seen = context(
        pauses(
            "sales",
            pause("sales", "old", PauseReason.RUN_COMPLETE, 40, "read the old one"),
            pause("sales", "late", PauseReason.BUDGET_EXHAUSTED, 1, "give it more time"),
            pause("sales", "dead", PauseReason.GATE_FAILED, 1, "requeue it"),
            pause("sales", "older", PauseReason.GATE_FAILED, 9, "requeue the older one"),
            pause("sales", "important", PauseReason.RUN_COMPLETE, 0, "see what matters"),
            pause("sales", "urgent", PauseReason.RUN_COMPLETE, 0, "run"),
        ),
        objectives(
            "sales", objective("sales", "important", 0, 4), objective("sales", "urgent", 1, 0)
        ),
    )
    assert [matter.actions[0] for matter in ranked(seen)] == [
        "run",
        "see what matters",
        "requeue the older one",
        "requeue it",
        "give it more time",
        "read the old one",
    ]


def test_the_objective_of_another_deployment_lends_no_urgency() -> None:
    seen = context(
        pauses("sales", pause("sales", "standing", PauseReason.GATE_FAILED, 1, "mend sales")),
        objectives("shop", objective("shop", "standing", 4, 4)),
    )
    assert [matter.urgency for matter in ranked(seen)] == [0]


def test_what_is_blocked_new_or_not_begun_waits_too() -> None:
    blocker = BlockerRef(blocker_id="b", kind=BlockerKind.USER_INPUT, description="which tables?")
    solved = blocker.model_copy(update={"blocker_id": "c", "resolved": True})
    seen = context(
        objectives(
            "here",
            objective("here", "a", 0, 0, status=ObjectiveStatus.NEW),
            objective("here", "b", 1, 0, status=ObjectiveStatus.TODO),
            objective(
                "here", "c", 2, 0, status=ObjectiveStatus.BLOCKED, blocked_on=(solved, blocker)
            ),
            objective("here", "d", 3, 0, status=ObjectiveStatus.BLOCKED, blocked_reason="holidays"),
            objective("here", "e", 4, 0, status=ObjectiveStatus.DONE),
        )
    )
    assert build_page(seen).orientation == (
        "here: unblock “d of here”: holidays",
        "here: unblock “c of here”: which tables?",
        "here: begin “b of here”",
        "here: decide on “a of here”: it is new",
    )


def test_the_page_names_who_answered_and_who_did_not() -> None:
    seen = context(
        pauses("here"),
        objectives("here"),
        *refused("mill", ResponseStatus.TARGET_UNAVAILABLE, "connection refused"),
        *refused("shop", ResponseStatus.DENIED),
        pauses("yard"),
        answer("yard", ArtifactType.OBJECTIVE, status=ResponseStatus.DENIED),
        captures=2,
    )
    assert seen.answered() == ("here", "yard")
    assert not_answered(seen) == [
        "mill did not answer: TARGET_UNAVAILABLE (connection refused)",
        "shop did not answer: DENIED",
        "yard did not show any objective: DENIED",
    ]
    page = build_page(seen)
    assert all(f"- {sentence}" in page.content for sentence in not_answered(seen))
    assert "- here: 0 pause states, 0 objectives" in page.content
    assert "2 captures of here not sorted yet" in page.content
    assert page.orientation == ("here: sort 2 captures; nothing else waits",)


@pytest.mark.parametrize(
    ("seen", "line"),
    [
        (context(pauses("here")), "here: carry on; nothing waits anywhere"),
        (context(pauses("here"), captures=1), "here: sort 1 capture; nothing else waits"),
        (
            context(pauses("here"), *refused("shop", ResponseStatus.DENIED)),
            "here: look at who did not answer; nothing waits where one could see",
        ),
    ],
)
def test_when_nothing_waits_the_page_says_so(seen: Context, line: str) -> None:
    assert build_page(seen).orientation == (line,)


def test_of_very_much_the_rest_is_counted() -> None:
    many = [pause("here", f"o{n}", PauseReason.GATE_FAILED, n % 50) for n in range(60)]
    page = build_page(context(pauses("here", *many)))
    assert page.content.endswith("10 more are not shown.")
    assert len(summary_of(context(pauses("here", *many)))) == 60


def test_a_text_is_a_page_whose_first_lines_say_what_to_do() -> None:
    page = page_of("# Do\n\n- requeue load\n* call finance\n\nthree\nfour\nfive\nsix")
    assert page.orientation == ("Do", "requeue load", "call finance", "three", "four")
    assert page_of(page) is page


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (None, "manifest builder returned NoneType: must be a Page or a str"),
        (" \n#\n", "Page orientation = (): must be 1 to 5 lines"),
    ],
)
def test_what_is_no_page_is_refused(returned: Any, said: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        page_of(returned)
    assert said in str(refused.value)


@pytest.mark.parametrize("lines", ["one line", (), ("a",) * 6, ("a", " "), ("a", 3)])
def test_an_orientation_has_one_to_five_lines(lines: Any) -> None:
    with pytest.raises(DefinitionError, match="Page orientation"):
        Page(orientation=lines, content="x")


def bundle(**changes: Any) -> OutputBundle:
    metadata = {"queried_azolla_ids": ["here"], "prioritized_orientation": ["a", "b", "c", "d"]}
    fields: dict[str, Any] = {"title": "t", "metadata": metadata, "content": "x", "notes": ""}
    return OutputBundle(output_id="o1", objective_id="s", created_at=NOW, **fields | changes)


def test_the_gate_passes_what_names_who_answered_and_says_what_to_do() -> None:
    passed = judge(bundle())
    assert (passed.result, passed.pause) == (GateResult.PASS, PauseReason.RUN_COMPLETE)
    assert passed.actions == ("a", "b", "c")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"content": " \n"}, "content is empty"),
        ({"metadata": {"prioritized_orientation": ["a"]}}, "queried_azolla_ids is empty"),
        (
            {"metadata": {"queried_azolla_ids": "here", "prioritized_orientation": ["a"]}},
            "queried_azolla_ids is empty",
        ),
        (
            {"metadata": {"queried_azolla_ids": ["here"], "prioritized_orientation": [" "]}},
            "prioritized_orientation is empty",
        ),
        ({"metadata": {"failure": "error"}, "notes": "ValueError: no"}, "ValueError: no"),
    ],
)
def test_the_gate_refuses_what_nobody_can_act_on(changes: dict[str, Any], reason: str) -> None:
    failed = judge(bundle(**changes))
    assert (failed.result, failed.pause) == (GateResult.FAIL, PauseReason.GATE_FAILED)
    assert reason in failed.reason
    assert reason in failed.actions[0] and "review output bundle o1" in failed.actions[0]
    assert failed.actions[1] == "request the manifest again: headway azolla request-manifest"


def test_a_builder_that_took_too_long_exhausts_its_budget() -> None:
    failed = judge(bundle(metadata={"failure": "budget"}, notes="longer than 60 s"))
    assert (failed.result, failed.pause) == (GateResult.FAIL, PauseReason.BUDGET_EXHAUSTED)
    assert "longer than 60 s" in failed.actions[0]


def test_the_whole_page() -> None:
    seen = Context(
        azolla_id="here",
        event_id="e1",
        asked_at=NOW.astimezone(ZoneInfo("Asia/Tokyo")),
        pending_captures=1,
        answers=(
            pauses("here", pause("here", "o1", PauseReason.GATE_FAILED, 2, "mend it", "or not")),
            objectives("here", objective("here", "o1", 2, 0), objective("here", "o2", 0, 0)),
            pauses("shop", pause("shop", "o1", PauseReason.RUN_COMPLETE, 1, "sell\nit")),
            pauses("barn"),
            *refused("mill", ResponseStatus.TARGET_UNAVAILABLE, "no\x1broute"),
        ),
    )
    page = build_page(seen)
    assert page == Page(
        orientation=("here: mend it", "shop: sell it"),
        content="""\
# Where was I?

As seen by here at 2030-01-07 12:00:00 UTC.

## Do first

1. here: mend it
2. shop: sell it

## Who answered

- barn: 0 pause states, 0 objectives
- here: 1 pause state, 2 objectives
- shop: 1 pause state, 0 objectives
- mill did not answer: TARGET_UNAVAILABLE (no\\x1broute)

## here

- mend it (since 2030-01-07 10:00 UTC)
  - or not

## shop

- sell it (since 2030-01-07 11:00 UTC)

## Captures

- 1 capture of here not sorted yet""",
        title="Where was I?",
    )
    assert summary_of(seen) == (
        PauseSummary(
            source_azolla_id="here",
            objective_id="o1",
            reason=PauseReason.GATE_FAILED,
            prioritized_actions=("mend it", "or not"),
        ),
        PauseSummary(
            source_azolla_id="shop",
            objective_id="o1",
            reason=PauseReason.RUN_COMPLETE,
            prioritized_actions=("sell\nit",),
        ),
    )


def test_a_line_of_the_page_is_bounded() -> None:
    long = pause("here", "o1", PauseReason.GATE_FAILED, 2, "x" * 1000)
    [line] = build_page(context(pauses("here", long))).orientation
    assert line.startswith("here: x") and len(line) == 300
    assert page_of("y" * 1000).orientation == ("y" * 300,)


def test_what_ranks_alike_is_ordered_by_its_ids() -> None:
    def alike(azolla: str, key: str, *actions: str) -> PauseState:
        return pause(azolla, key, PauseReason.GATE_FAILED, 1, *actions)

    seen = context(
        pauses("shop", alike("shop", "a", "5")),
        pauses("here", alike("here", "b", "4"), alike("here", "a", "3"), alike("here", "a", "2")),
    )
    assert [one.actions for one in ranked(seen)] == [("2",), ("3",), ("4",), ("5",)]


def test_blocked_comes_before_what_is_open_and_after_what_ran_out_of_time() -> None:
    own = [
        objective("here", "a", 0, 0, status=ObjectiveStatus.TODO),
        objective("here", "b", 0, 0, status=ObjectiveStatus.BLOCKED),
    ]
    rests = [
        pause("here", "c", PauseReason.RUN_COMPLETE, 9, "read"),
        pause("here", "d", PauseReason.BUDGET_EXHAUSTED, 5, "give time"),
        pause("here", "e", PauseReason.GATE_FAILED, 1, "mend"),
    ]
    found = ranked(context(pauses("here", *rests), objectives("here", *own)))
    assert [(one.actions[0], one.since) for one in found] == [
        ("mend", NOW - timedelta(hours=1)),
        ("give time", NOW - timedelta(hours=5)),
        ("unblock “b of here”: nobody said why", NOW),
        ("read", NOW - timedelta(hours=9)),
        ("begin “a of here”", NOW),
    ]


def test_what_the_page_needs_to_know_of_an_objective() -> None:
    assert urgency_of(objective("here", "o1", 3, 2, status=ObjectiveStatus.TODO)) == Urgency(
        azolla_id="here",
        objective_id="o1",
        title="o1 of here",
        status=ObjectiveStatus.TODO,
        urgency=3,
        importance=2,
    )


def test_of_a_deployment_that_gave_no_answer_only_the_first_refusal_is_told() -> None:
    first, second = refused("mill", ResponseStatus.DENIED)
    other, _ = refused("barn", ResponseStatus.TARGET_UNAVAILABLE)
    assert context(second, first, other).refusals() == (other, second)
    partly = answer("mill", ArtifactType.BLOCKER_REF)
    assert context(first, second, partly).refusals() == (first, second)


def test_the_prompt_has_its_rules_first() -> None:
    text = prompt_text(context())
    assert text.startswith("Build a session manifest: ")
    assert "\n=== CONTEXT (JSON) ===\n{" in text
    with pytest.raises(DefinitionError) as refusal:
        parse_prompt("x" * 50)
    assert str(refusal.value) == (
        f"full_prompt_text = {'x' * 40!r}: has no line '=== CONTEXT (JSON) ==='; build it with "
        "prompt_text"
    )


def test_a_judgement_says_why() -> None:
    two = {"queried_azolla_ids": ["here", "shop"], "prioritized_orientation": ["a", " ", "b"]}
    assert judge(bundle(metadata=two)) == Judgement(
        GateResult.PASS,
        "2 orientation lines from here, shop",
        PauseReason.RUN_COMPLETE,
        ("a", "b"),
    )
    again = "request the manifest again: headway azolla request-manifest"
    late = bundle(metadata={"failure": "budget"}, notes="longer than 60 s")
    assert judge(late) == Judgement(
        GateResult.FAIL,
        "longer than 60 s",
        PauseReason.BUDGET_EXHAUSTED,
        ("give the builder more time or less to do: longer than 60 s", again),
    )
    why = "metadata.prioritized_orientation is empty: nothing says what to do first"
    silent = bundle(metadata={"queried_azolla_ids": ["here"]})
    assert judge(silent) == Judgement(
        GateResult.FAIL,
        why,
        PauseReason.GATE_FAILED,
        (f"review output bundle o1: {why}", again),
    )


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            "one line",
            "'one line': must be 1 to 5 lines; for example ('sales: requeue load-orders',)",
        ),
        (("a", " "), "('a', ' '): every line must be a text that says something"),
    ],
)
def test_a_refused_orientation_says_what_it_must_be(lines: Any, said: str) -> None:
    with pytest.raises(DefinitionError) as refusal:
        Page(orientation=lines, content="x")
    assert str(refusal.value) == f"Page orientation = {said}"


def test_an_orientation_may_be_a_list() -> None:
    lines: Any = ["a"] * 5
    assert Page(orientation=lines, content="x").orientation == ("a",) * 5
