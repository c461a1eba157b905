"""Whatever users put into inputs and exceptions survives the way through the database."""

from __future__ import annotations

import json

import pytest

from headway.definition.inputs import InputType
from headway.domain.execution import ExecutionState, Outcome
from headway.domain.text import MESSAGE_LIMIT
from headway.domain.work_queue import Source
from headway.runner.outcome import failed
from headway.store import executions, work_queue
from headway.store.engine import Store
from tests.store.factories import (
    ME,
    a_manifest,
    declare,
    finish,
    queue_ad_hoc,
    ran,
    started,
    view_of,
)

TEXTS = [
    "",
    "a\x00b",
    "\ud800 lone \udfff",
    "%s %(name)s :name ? $1",
    "'; DROP TABLE headway_manifest; --",
    "Grüße, 東京 🚀",
    "line\nline\r\n\ttab \x1b[31m",
    '\\u0000 \\ "quoted"',
]


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize("words", TEXTS)
def test_an_input_comes_back_as_it_went_in(store: Store, words: str) -> None:
    kind = InputType(dict[str, str])
    value = {"words": words}
    # Not by InputType.encode: it refuses NUL and lone surrogates, which earlier versions stored.
    encoded = json.dumps(value)
    declare(store, a_manifest(input=encoded))
    assert kind.decode(view_of(store).input, "extract") == value
    one = ran(store)
    entry = queue_ad_hoc(store, input=encoded)
    with store.writing() as tx:
        [execution_id] = work_queue.dispatch(tx, [entry]).values()
        [ad_hoc] = executions.claim_pending(tx, ME, 1, ["work"])
    assert ad_hoc.id == execution_id
    assert kind.decode(one.input, "extract") == kind.decode(ad_hoc.input, "extract") == value


def recorded(store: Store, outcome: Outcome) -> Outcome:
    """What the record says afterwards."""
    one = ran(store, outcome=outcome, source=Source.TRIGGER)
    with store.reading() as tx:
        found = executions.find(tx, one.id)
    assert found is not None
    return Outcome(found.state, found.failure, found.output)


@pytest.mark.story(41)
@pytest.mark.parametrize("words", TEXTS)
def test_a_failure_is_recorded_whatever_its_message(store: Store, words: str) -> None:
    declare(store, "extract")
    outcome = failed(f"step {words}", ValueError(words))
    assert recorded(store, outcome) == outcome
    assert outcome.failure is not None
    assert outcome.failure.type == "ValueError"


@pytest.mark.story(41)
def test_a_message_of_ten_megabytes_is_recorded_by_its_ends(store: Store) -> None:
    declare(store, "extract")
    kept = recorded(store, failed("load", ValueError("first" + "x\x00" * 5_000_000 + "last")))
    assert kept.failure is not None
    message = kept.failure.message
    assert (message[:5], message[-4:]) == ("first", "last")
    assert "characters cut" in message
    assert len(message) <= MESSAGE_LIMIT


@pytest.mark.story(41)
def test_an_exception_without_words_is_recorded_by_its_type(store: Store) -> None:
    declare(store, "extract")
    kept = recorded(store, failed("load", Unprintable()))
    assert kept.failure is not None
    assert kept.failure.type.endswith("Unprintable")
    assert kept.failure.message == "<unprintable Unprintable>"


def test_an_output_of_ten_megabytes_comes_back_whole(store: Store) -> None:
    declare(store, "extract")
    output = json.dumps(["\x00\ud800" * 800_000])
    assert len(output) > 9_000_000
    outcome = Outcome(ExecutionState.COMPLETED, output=output)
    assert recorded(store, outcome) == outcome


def test_an_input_of_ten_megabytes_comes_back_whole(store: Store) -> None:
    declare(store, a_manifest(input=json.dumps("x" * 10_000_000)))
    one = started(store)
    assert len(one.input) == 10_000_002
    assert finish(store, one)[0].input == one.input
