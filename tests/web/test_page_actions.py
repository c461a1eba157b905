"""What people do on pages: forms that are sent twice, late, or filled in wrongly."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta

import pytest

from headway.config import Settings
from headway.store import executions, work_queue
from tests.web.shop import (
    CANARY,
    FAILING,
    GROUP,
    NASTY,
    TAME,
    Shop,
    opened_shop,
    path_of,
    toast,
)

FILLED = {
    "input-mode": "fields",
    "input/title": "typed",
    "input/rows": "7",
    "input/mode": '"delta"',
    "input/day": "2026-02-03",
    "input/parts/0/name": "first",
    "input/parts/0/amount": "2",
    "input/tables/3": "users",
    "input/tables/9": "",
    "input/tags": '{"a": 1}',
}


@pytest.fixture
def shop(database_url: str) -> Iterator[Shop]:
    with opened_shop(database_url) as shop:
        yield shop


def input_of(shop: Shop, entry: int) -> dict[str, object]:
    found = next(one for one in shop.box.queued() if one.id == entry)
    read: dict[str, object] = json.loads(found.input)
    return read


def trigger_path(name: str = NASTY) -> str:
    return path_of("manifests", name, "trigger")


def test_a_run_is_triggered_with_what_was_filled_in(shop: Shop) -> None:
    answer = shop.browser.send(trigger_path(), FILLED)
    page = shop.browser.followed(answer)
    [entry] = shop.entries()
    assert answer.headers["location"] == f"/queue/{entry}"
    assert "was triggered" in toast(page)
    given = input_of(shop, entry)
    assert given["title"] == "typed"
    assert given["rows"] == 7
    assert given["mode"] == "delta"
    assert given["day"] == "2026-02-03"
    assert given["fresh"] is False
    assert given["part"] is None
    assert given["parts"] == [{"name": "first", "amount": 2}]
    assert given["tables"] == ["users"]
    assert given["tags"] == {"a": 1}


def test_a_secret_that_was_left_alone_stays_what_it_is(shop: Shop) -> None:
    shop.browser.send(trigger_path(), FILLED)
    [entry] = shop.entries()
    assert input_of(shop, entry)["key"] == CANARY
    page = shop.browser.get(f"/queue/{entry}").text
    assert CANARY not in page
    assert "********" in page


def test_a_secret_kept_in_json_stays_what_it_is(shop: Shop) -> None:
    text = '{"title": "by hand", "key": "********", "logins": "********"}'
    shop.browser.send(trigger_path(), {"input-mode": "json", "input-json": text})
    [entry] = shop.entries()
    given = input_of(shop, entry)
    assert (given["title"], given["key"]) == ("by hand", CANARY)
    assert given["logins"] == {CANARY: CANARY}


WRONG = (
    ("input/rows", "many", "valid integer"),
    ("input/rows", "-1", "greater than or equal to 0"),
    ("input/day", "soon", "date"),
    ("input/parts/0/amount", "-3", "greater than or equal to 0"),
    ("input/tags", "{", "is not JSON"),
)
JUNK = ("{", "[" * 5000, "null", '"text"', '{"title": 3}', '{"x": 1}', "")


def test_what_is_wrong_is_said_at_its_field_and_nothing_is_queued(shop: Shop) -> None:
    for field, typed, told in WRONG:
        answer = shop.browser.send(trigger_path(), FILLED | {field: typed})
        assert answer.status == 422
        place = f'id="field-{field.replace("/", "-")}-error">(.*?)</span>'
        error = re.search(place, answer.text, re.S)
        assert error, answer.text
        assert told in error[1]
        assert 'value="typed"' in answer.text
    assert shop.entries() == []


def test_junk_as_json_is_refused_and_kept_to_be_corrected(shop: Shop) -> None:
    for junk in JUNK:
        answer = shop.browser.send(trigger_path(), {"input-mode": "json", "input-json": junk})
        assert answer.status == 422
        assert 'role="alert"' in answer.text
    assert shop.entries() == []


def test_a_form_sent_twice_does_it_once(shop: Shop) -> None:
    first = shop.browser.send(trigger_path(), FILLED | {"once": "key-of-this-form"})
    second = shop.browser.send(trigger_path(), FILLED | {"once": "key-of-this-form"})
    assert first.headers["location"] == second.headers["location"]
    assert len(shop.entries()) == 1


def test_where_very_much_waits_a_form_queues_no_more_and_says_so(shop: Shop) -> None:
    shop.hw.settings = Settings(max_queued_per_group=1)
    assert shop.browser.send(trigger_path(), {"input": "own"}).status == 303
    refused = shop.browser.send(trigger_path(TAME), {"input": "own"})
    assert refused.status == 429
    assert int(refused.headers["retry-after"]) > 0
    assert "1 entries wait already in the group of &#39;orders&#39;" in refused.text
    group = shop.browser.send(path_of("groups", GROUP, "trigger"))
    assert group.status == 429
    assert len(shop.entries()) == 1


def test_a_run_is_triggered_after_the_delay_that_was_filled_in(shop: Shop) -> None:
    shop.browser.send(trigger_path(), FILLED | {"delay": "90"})
    [entry] = shop.box.queued()
    assert entry.scheduled_at == shop.box.now + timedelta(minutes=90)


def test_a_delay_that_is_none_is_said_at_its_field(shop: Shop) -> None:
    answer = shop.browser.send(trigger_path(), FILLED | {"delay": "a while"})
    assert answer.status == 422
    assert "number of minutes" in answer.text


def test_an_execution_runs_again_with_another_input(shop: Shop) -> None:
    run = shop.box.last(NASTY).id
    answer = shop.browser.send(f"/executions/{run}/rerun", FILLED)
    [entry] = shop.entries()
    assert answer.headers["location"] == f"/queue/{entry}"
    assert input_of(shop, entry)["title"] == "typed"


def test_cancelling_what_has_ended_says_that_it_was_too_late(shop: Shop) -> None:
    run = shop.box.last(NASTY).id
    answer = shop.browser.send(f"/executions/{run}/cancel")
    assert answer.status == 409
    assert "had ended before" in answer.text
    assert "completed" in answer.text


def test_an_execution_is_cancelled_for_the_reason_that_was_filled_in(shop: Shop) -> None:
    entry = shop.hw.trigger(TAME)
    with shop.box.store.writing() as tx:
        run = work_queue.dispatch(tx, [entry])[entry]
        executions.claim_one(tx, "a worker", run)

    answer = shop.browser.send(f"/executions/{run}/cancel", {"reason": "wrong day"})

    page = shop.browser.followed(answer).text
    assert "wrong day" in page
    with shop.box.store.reading() as tx:
        [owned] = executions.owned_by_any(tx, ["a worker"])
    assert owned.stop == "wrong day"


def test_a_run_that_is_being_stopped_already_offers_no_button_to_cancel_it(shop: Shop) -> None:
    entry = shop.hw.trigger(TAME)
    with shop.box.store.writing() as tx:
        run = work_queue.dispatch(tx, [entry])[entry]
        executions.claim_one(tx, "a worker", run)
    button = f'action="/executions/{run}/cancel"'
    assert button in shop.browser.get(f"/executions/{run}").text

    page = shop.browser.followed(shop.browser.send(f"/executions/{run}/cancel"))

    assert f'data-execution="{run}" data-state="in_progress"' in page.text
    assert button not in page.text


def test_an_entry_is_cancelled_once(shop: Shop) -> None:
    entry = shop.hw.trigger(TAME)
    page = shop.browser.followed(shop.browser.send(f"/queue/{entry}/cancel"))
    assert "1 cancelled" in toast(page)
    assert shop.entries() == []
    late = shop.browser.send(f"/queue/{entry}/cancel")
    assert late.status == 409
    assert "no longer waits" in late.text


def test_the_page_of_an_entry_leads_on_to_its_execution(shop: Shop) -> None:
    entry = shop.hw.trigger(TAME)
    assert "Why?" in shop.browser.get(f"/queue/{entry}").text
    shop.box.run_until_idle()
    answer = shop.browser.get(f"/queue/{entry}")
    assert answer.status == 303
    assert answer.headers["location"] == f"/executions/{shop.box.last(TAME).id}"


def test_dead_letters_are_requeued_in_a_batch_and_only_once(shop: Shop) -> None:
    letters = [letter.id for letter in shop.box.dead_letters()]
    ticked = [("id", one) for one in letters]
    page = shop.browser.followed(
        shop.browser.send("/dead-letters/requeue", [*ticked, ("note", "mended")])
    )
    assert "requeued" in toast(page)
    assert shop.box.dead_letters() == []
    assert "mended" in shop.browser.get(f"/dead-letters/{letters[0]}").text
    late = shop.browser.send("/dead-letters/requeue", ticked)
    assert late.status == 409
    assert "somebody else" in late.text


def test_a_dead_letter_is_acknowledged_once(shop: Shop) -> None:
    letter = shop.box.dead_letters()[0].id
    seen = f"/dead-letters/{letter}"
    answer = shop.browser.send(f"{seen}/acknowledge", {"note": "known"}, seen=seen)
    assert "Acknowledged" in shop.browser.followed(answer).text
    late = shop.browser.send(f"{seen}/acknowledge", {"note": "known"})
    assert late.status == 409
    assert "was resolved before" in late.text


def test_a_dead_letter_is_requeued_with_another_input(shop: Shop) -> None:
    letter = shop.box.dead_letters()[0].id
    wrong = shop.browser.send(f"/dead-letters/{letter}/requeue", FILLED | {"input/rows": "x"})
    assert wrong.status == 422
    shop.browser.send(f"/dead-letters/{letter}/requeue", FILLED | {"note": "smaller"})
    [entry] = shop.entries()
    assert input_of(shop, entry)["rows"] == 7
    assert shop.box.dead_letters() == []


def test_odd_ids_of_dead_letters_are_refused(shop: Shop) -> None:
    for ids in ([], [("id", "x")], [("id", "9" * 30)], [("id", "-1")]):
        assert shop.browser.send("/dead-letters/requeue", ids).status == 422
    assert shop.box.dead_letters()


def test_every_action_leaves_a_row_in_the_audit(shop: Shop) -> None:
    shop.browser.send(trigger_path(), FILLED)
    shop.browser.send(path_of("manifests", TAME, "switch"), {"enabled": "no"})
    shop.browser.send(path_of("manifests", FAILING, "cancel"))
    actions = [one.action for one in shop.box.history.audit.page().items]
    assert {"manifest.trigger", "manifest.disable", "manifest.cancel"} <= set(actions)
