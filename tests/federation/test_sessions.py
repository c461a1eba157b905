"""What the read side shows of requests: the page, what it was made from, and who said what."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headway.domain.azolla.artifacts import PauseReason, ResponseStatus
from headway.federation.worker import TickResult
from headway.history import Said
from tests.federation.azolla import OWN, Azolla, answering, objective, pause, refusing


@pytest.fixture
def asked(azolla: Azolla) -> Iterator[Azolla]:
    """One whose peers answer, answer in part, refuse, and are away."""
    azolla.peers = {
        "sales": answering(objective("sales", urgency=4), pause("sales", "requeue load-orders")),
        "shop": refusing(ResponseStatus.DENIED, "we do not show that"),
        "mill": refusing(ResponseStatus.TARGET_UNAVAILABLE, ""),
    }
    yield azolla


def carried_out(azolla: Azolla) -> str:
    """The id of a request whose page has been built."""
    event_id = azolla.request()
    result: TickResult = azolla.worker().run_once()
    assert result.event_id == event_id
    azolla.execute()
    return event_id


def test_before_the_first_request_there_is_nothing(azolla: Azolla) -> None:
    shown = azolla.history.azolla
    assert (shown.session(), shown.building(), shown.event("nothing")) == (None, None, None)
    assert (shown.events().items, shown.any_parked()) == ((), False)


def test_a_page_is_shown_with_what_it_was_made_from(asked: Azolla) -> None:
    event_id = carried_out(asked)
    session = asked.history.azolla.session()
    assert session is not None and session.page is not None and session.context is not None
    assert (session.event_id, session.context.event_id) == (event_id, event_id)
    assert (session.record.gate_result, session.bundle.output_id) == (
        "PASS",
        session.record.output_id,
    )
    assert session.page.prioritized_orientation[0] == "sales: requeue load-orders"
    assert [(one.azolla_id, one.urgency) for one in session.matters] == [("sales", 4)]


def test_what_every_deployment_said_begins_with_those_that_did_not_answer(asked: Azolla) -> None:
    carried_out(asked)
    session = asked.history.azolla.session()
    assert session is not None
    assert session.said == [
        Said(
            "mill",
            False,
            "TARGET_UNAVAILABLE",
            ("pause_state: TARGET_UNAVAILABLE", "objective: TARGET_UNAVAILABLE"),
            0,
            0,
        ),
        Said(
            "shop",
            False,
            "DENIED",
            ("pause_state: we do not show that", "objective: we do not show that"),
            0,
            0,
        ),
        Said("sales", True, "OK", (), 1, 1),
        Said(OWN, True, "OK", (), 0, 1),
    ]


def test_a_request_is_shown_while_it_is_carried_out_and_after(azolla: Azolla) -> None:
    first = carried_out(azolla)
    second = azolla.request()
    assert azolla.worker().run_once().processed
    shown = azolla.history.azolla
    assert shown.building() == second
    newest = shown.session()
    assert newest is not None and newest.event_id == first
    assert shown.session(second) is None
    azolla.execute()
    assert shown.building() is None
    for event_id in (first, second):
        one, known = shown.session(event_id), shown.event(event_id)
        assert one is not None and one.event_id == event_id
        assert known is not None and known.event.processed
    newest = shown.session()
    assert newest is not None and newest.event_id == second


def test_a_request_without_a_page_says_why(azolla: Azolla) -> None:
    azolla.app.builds_manifests(lambda snapshot: None)
    carried_out(azolla)
    session = azolla.history.azolla.session()
    assert session is not None and session.page is None
    assert "must be a Page or a str" in session.record.gate_reason
    [rest] = azolla.history.azolla.pause_states(reason=PauseReason.GATE_FAILED).items
    assert rest.state.prioritized_actions and rest.pause_id
