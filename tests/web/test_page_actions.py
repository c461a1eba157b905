"""What people do on pages: forms that are sent twice, late, or filled in wrongly."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from html import unescape

import pytest

from headway.config import Settings
from headway.domain.views import AuditFilter
from headway.store import executions, work_queue
from tests.web.parts import said
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
from tests.web.site import Answered

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

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


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


def told(shop: Shop, answer: Answered) -> tuple[str, str, str]:
    """Where an answer leads to, and what is said there in which tone."""
    page = shop.browser.followed(answer)
    [kind] = re.findall(r'class="toast is-(\w+)"', page.text.split('id="toast-template"')[0])
    return answer.headers["location"], toast(page), kind


def noted(shop: Shop, action: str) -> list[str | None]:
    """What the audit trail keeps of actions of this kind, newest first."""
    return [one.detail for one in shop.box.history.audit.page(AuditFilter(action=action)).items]


def started(shop: Shop, name: str = TAME) -> int:
    """An execution of the manifest that is running."""
    entry = shop.hw.trigger(name)
    with shop.box.store.writing() as tx:
        run = work_queue.dispatch(tx, [entry])[entry]
        executions.claim_one(tx, "a worker", run)
    return run


@on_sqlite
def test_a_manifest_is_switched_from_its_page_and_from_the_list(shop: Shop) -> None:
    switch = path_of("manifests", TAME, "switch")
    assert told(shop, shop.browser.send(switch, {"enabled": "no"})) == (
        "/manifests/orders",
        "orders is off: its schedule and its parents start nothing until it is on",
        "ok",
    )
    answer = shop.browser.send(switch, {"enabled": "yes", "back": "list"})
    assert told(shop, answer) == ("/manifests", "orders is on", "ok")
    assert len(noted(shop, "manifest.enable")) == len(noted(shop, "manifest.disable")) == 1


@on_sqlite
def test_a_manifest_is_triggered_with_its_own_input(shop: Shop) -> None:
    answer = shop.browser.send(trigger_path(TAME), FILLED | {"input": "own"})
    [entry] = shop.box.queued()
    assert told(shop, answer) == (
        f"/queue/{entry.id}",
        f"orders was triggered as entry {entry.id}",
        "ok",
    )
    assert json.loads(entry.input)["title"] == "tame"
    assert entry.scheduled_at is None


@on_sqlite
def test_a_form_sent_twice_says_the_same_twice_and_one_for_another_manifest_is_another(
    shop: Shop,
) -> None:
    fields = {"input": "own", "once": "key-of-this-form"}
    first, second = (told(shop, shop.browser.send(trigger_path(TAME), fields)) for _ in range(2))
    assert first == second
    assert "orders was triggered" in first[1]
    other = shop.browser.send(trigger_path("asleep"), fields)
    assert other.status == 409 and len(shop.entries()) == 1
    run = shop.box.last(NASTY).id
    rerun = {"input": "own", "once": "another-key"}
    again = [shop.browser.send(f"/executions/{run}/rerun", rerun) for _ in range(2)]
    assert again[0].headers["location"] == again[1].headers["location"]


@on_sqlite
@pytest.mark.parametrize("delay", ["a while", "1e300", "nan"])
def test_a_wrong_delay_is_kept_with_what_is_wrong_and_nothing_is_queued(
    shop: Shop, delay: str
) -> None:
    answer = shop.browser.send(trigger_path(TAME), {"input": "own", "delay": delay})
    assert answer.status == 422
    assert said(answer.text, "delay-error") == "must be a number of minutes; for example 30"
    assert f'name="delay" inputmode="decimal" value="{delay}"' in answer.text
    assert shop.entries() == []


@on_sqlite
def test_everything_of_a_manifest_is_cancelled(shop: Shop) -> None:
    cancel = path_of("manifests", TAME, "cancel")
    assert told(shop, shop.browser.send(cancel)) == (
        "/manifests/orders",
        "orders: nothing to cancel",
        "warning",
    )
    run = started(shop)
    answer = shop.browser.send(cancel, {"reason": "wrong day"})
    assert told(shop, answer)[1:] == ("orders: 1 asked to stop", "ok")
    assert "wrong day" in shop.browser.get(f"/executions/{run}").text
    shop.hw.trigger("asleep")
    asleep = shop.browser.send("/manifests/asleep/cancel")
    assert told(shop, asleep)[1:] == ("asleep: 1 cancelled", "ok")


@on_sqlite
def test_the_form_to_trigger_a_manifest_begins_with_its_input(shop: Shop) -> None:
    page = shop.browser.get(trigger_path(TAME)).text
    form = page[page.index('id="trigger-form"') :]
    assert f'action="{trigger_path(TAME)}"' in form
    typed = dict(re.findall(r'name="input/(\w+)" type="\w+" value="([^"]*)"', form))
    assert typed == {"title": "tame", "rows": "120", "ratio": "", "day": ""}
    kinds = dict(re.findall(r'name="input/(\w+)" type="(\w+)"', form))
    assert kinds == {
        "title": "text", "rows": "number", "ratio": "number", "day": "date", "key": "password",
        "logins": "password",
    }  # fmt: skip
    assert 'name="input/fresh" value="yes" checked' in form
    assert re.findall(r'<option value="([^"]*)" selected', form) == ["&#34;full&#34;"]
    assert 'min="0" max="1000"' in form
    assert re.search(r'name="once" value="[\w-]{22}"', form)
    assert 'name="input-mode" value="fields" checked' in form
    assert "&#34;title&#34;: &#34;tame&#34;" in form[form.index('name="input-json"') :]


@on_sqlite
def test_an_execution_is_stopped_and_that_is_said(shop: Shop) -> None:
    run = started(shop)
    answer = shop.browser.send(f"/executions/{run}/cancel")
    assert told(shop, answer) == (
        f"/executions/{run}",
        f"Execution {run}: 1 asked to stop",
        "ok",
    )


@on_sqlite
def test_what_came_too_late_says_so_and_where_to_look(shop: Shop) -> None:
    run = shop.box.last(NASTY).id
    late = shop.browser.send(f"/executions/{run}/cancel")
    assert said(late.text, "stale") == (
        f"Execution {run} had ended before There was nothing left to cancel: it is completed. "
        "The page you acted on was out of date; nothing was changed. See how it stands"
    )
    assert f'href="/executions/{run}"' in late.text
    entry = shop.hw.trigger(TAME)
    shop.browser.send(f"/queue/{entry}/cancel")
    gone = shop.browser.send(f"/queue/{entry}/cancel")
    assert said(gone.text, "stale").startswith(
        f"Entry {entry} no longer waits It was dealt with before you cancelled it: "
    )
    assert f'href="/queue/{entry}"' in gone.text


@on_sqlite
def test_an_execution_runs_again_with_the_same_input(shop: Shop) -> None:
    run = shop.box.last(TAME)
    page = shop.browser.get(f"/executions/{run.id}/rerun").text
    assert f'action="/executions/{run.id}/rerun"' in page
    assert 'name="input/title" type="text" value="tame"' in page
    answer = shop.browser.send(f"/executions/{run.id}/rerun", FILLED | {"input": "own"})
    [entry] = shop.box.queued()
    assert told(shop, answer) == (
        f"/queue/{entry.id}",
        f"Execution {run.id} runs again as entry {entry.id}",
        "ok",
    )
    assert entry.input == run.input


@on_sqlite
def test_an_execution_does_not_run_again_with_an_input_that_is_wrong(shop: Shop) -> None:
    run = shop.box.last(TAME).id
    answer = shop.browser.send(f"/executions/{run}/rerun", FILLED | {"input/rows": "x"})
    assert answer.status == 422
    assert 'name="input/rows" type="number" value="x"' in answer.text
    assert f'action="/executions/{run}/rerun"' in answer.text
    assert shop.entries() == []


@on_sqlite
def test_an_entry_is_cancelled_for_a_reason_and_that_is_said(shop: Shop) -> None:
    entry = shop.hw.trigger(TAME)
    answer = shop.browser.send(f"/queue/{entry}/cancel", {"reason": "wrong day"})
    assert told(shop, answer) == ("/queue", f"Entry {entry}: 1 cancelled", "ok")
    [detail] = noted(shop, "entry.cancel")
    assert detail and "wrong day" in detail
    page = said(shop.browser.get(f"/queue/{entry}").text, "entry")
    assert page.startswith(f"Entry {entry} waits no longer")


@on_sqlite
def test_a_dead_letter_is_requeued_as_it_failed(shop: Shop) -> None:
    [letter] = shop.box.dead_letters()
    fields = FILLED | {"input": "own", "note": " mended "}
    answer = shop.browser.send(f"/dead-letters/{letter.id}/requeue", fields)
    [entry] = shop.box.queued()
    assert told(shop, answer) == (
        f"/dead-letters/{letter.id}",
        f"Dead letter {letter.id}: requeued as entry {entry.id}",
        "ok",
    )
    assert json.loads(entry.input)["rows"] == 120
    page = said(shop.browser.get(f"/dead-letters/{letter.id}").text, "dead-letter")
    assert re.search(r"Requeued [-\d: ]+: mended", page)
    assert "What now?" not in page
    kept = shop.box.history.dead_letters.detail(letter.id).letter
    assert kept.resolution_note == "mended"
    late = shop.browser.send(f"/dead-letters/{letter.id}/requeue", fields)
    assert late.status == 409
    assert said(late.text, "stale").startswith(f"Dead letter {letter.id} was resolved before ")
    assert f'href="/dead-letters/{letter.id}"' in late.text


@on_sqlite
def test_a_wrong_input_for_a_dead_letter_is_shown_again_with_the_note(shop: Shop) -> None:
    [letter] = shop.box.dead_letters()
    path = f"/dead-letters/{letter.id}/requeue"
    offered = shop.browser.get(path).text
    assert (
        f'action="{path}"' in offered and 'name="input/rows" type="number" value="120"' in offered
    )
    wrong = shop.browser.send(path, FILLED | {"input/rows": "x", "note": "smaller"})
    assert wrong.status == 422
    assert 'name="input/rows" type="number" value="x"' in wrong.text
    assert 'name="note" value="smaller"' in wrong.text
    assert [one.id for one in shop.box.dead_letters()] == [letter.id]


@on_sqlite
def test_a_dead_letter_is_acknowledged_with_a_note(shop: Shop) -> None:
    [letter] = shop.box.dead_letters()
    answer = shop.browser.send(f"/dead-letters/{letter.id}/acknowledge", {"note": "known"})
    assert told(shop, answer)[:2] == (
        f"/dead-letters/{letter.id}",
        f"Dead letter {letter.id}: acknowledged",
    )
    assert "Acknowledged" in said(shop.browser.get(f"/dead-letters/{letter.id}").text, "main")
    assert shop.entries() == []


@on_sqlite
@pytest.mark.parametrize(
    ("act", "done"), [("requeue", "requeued"), ("acknowledge", "acknowledged")]
)
def test_ticked_dead_letters_are_resolved_and_what_was_before_is_counted(
    shop: Shop, act: str, done: str
) -> None:
    [letter] = shop.box.dead_letters()
    ticked = [("id", letter.id), ("id", letter.id), ("id", letter.id + 1), ("note", "  ")]
    answer = shop.browser.send(f"/dead-letters/{act}", ticked)
    assert told(shop, answer) == ("/dead-letters", f"1 {done}; 1 had been resolved before", "ok")
    assert len(shop.entries()) == (act == "requeue")
    late = shop.browser.send(f"/dead-letters/{act}", ticked)
    assert said(late.text, "stale").startswith(
        "Nothing left to do somebody else has resolved all of them meanwhile."
    )


@on_sqlite
def test_what_is_no_id_of_a_dead_letter_is_named(shop: Shop) -> None:
    for sent, error in (
        ([], "id: tick at least one dead letter"),
        ([("id", "1"), ("id", "x1")], "id = 'x1': must be the id of a dead letter; for example 7"),
        ([("id", "٣")], "id = '٣': must be the id of a dead letter; for example 7"),
    ):
        for act in ("requeue", "acknowledge"):
            answer = shop.browser.send(f"/dead-letters/{act}", sent)
            assert answer.status == 422
            assert error in unescape(answer.text)


@on_sqlite
def test_a_group_is_changed_switched_triggered_and_cancelled(shop: Shop) -> None:
    def done(act: str, **fields: str) -> tuple[str, str, str]:
        return told(shop, shop.browser.send(f"/groups/rest/{act}", fields))

    here = "/groups/rest"
    settings = {"max_active_jobs": "1200", "priority": "3"}
    assert done("settings", **settings) == (
        here, "rest now has a cap of 1,200 and priority 3", "ok",
    )  # fmt: skip
    no_cap = done("settings", max_active_jobs="", priority="0")
    assert no_cap[1] == "rest now has no cap and priority 0"
    assert done("trigger") == (
        here, "rest has no enabled manifest that runs by itself; nothing was queued", "warning",
    )  # fmt: skip
    shop.browser.send("/manifests/asleep/switch", {"enabled": "yes"})
    assert done("trigger") == (here, "1 run of rest queued", "ok")
    assert done("cancel", reason="wrong day") == (here, "rest: 1 cancelled", "ok")
    assert "wrong day" in str(noted(shop, "group.cancel"))
    assert done("switch", enabled="no") == (
        here,
        "rest is off: nothing of it is queued or dispatched until it is on",
        "ok",
    )
    assert done("switch", enabled="yes", back="list") == ("/groups", "rest is on", "ok")


@on_sqlite
def test_what_was_filled_in_wrongly_is_marked_at_its_field(shop: Shop) -> None:
    answer = shop.browser.send(trigger_path(TAME), FILLED | {"input/rows": "-1"})
    form = answer.text[answer.text.index('id="trigger-form"') :]
    assert "This cannot run yet. rows: Input should be greater than or equal to 0" in form
    [rows] = re.findall(r'<input class="input" +id="field-input-rows"[^>]*>', form)
    assert 'aria-describedby="field-input-rows-hint field-input-rows-error"' in rows
    assert 'aria-invalid="true"' in rows and 'min="0" max="1000"' in rows
    [title] = re.findall(r'<input class="input" +id="field-input-title"[^>]*>', form)
    assert 'aria-invalid="true"' not in title and 'value="typed"' in title
    [tags] = re.findall(r'<textarea[^>]*name="input/tags"[^>]*>\n(.*?)</textarea>', form, re.S)
    assert json.loads(unescape(tags)) == {"a": 1}
    assert re.findall(r'name="input/parts/(\w+)/name"', form) == ["0", "1", "__n__"]
    assert 'data-rows data-next="2"' in form
    assert re.findall(r'<option value="([^"]*)" selected>(\w+)', form) == [
        ("&#34;delta&#34;", "delta"),
    ]  # fmt: skip
    assert 'name="input/fresh" value="yes">' in form, "it was switched off"


@on_sqlite
def test_a_form_sent_as_json_stays_json(shop: Shop) -> None:
    sent = {"input-mode": "json", "input-json": '{"title": 3}'}
    answer = shop.browser.send(trigger_path(TAME), sent)
    form = answer.text[answer.text.index('id="trigger-form"') :]
    assert 'name="input-mode" value="json" checked' in form
    assert 'name="input-mode" value="fields">' in form
    [typed] = re.findall(r'name="input-json"([^>]*)>\n(.*?)</textarea>', form, re.S)
    assert 'aria-invalid="true"' in typed[0]
    assert unescape(typed[1]) == '{"title": 3}'
    assert '<span class="muted">(Feed)</span>' in form
