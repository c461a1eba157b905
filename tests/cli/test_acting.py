"""What is done from the command line: in whose name, and asked before if it is much."""

from __future__ import annotations

import io
import json
import sys

import pytest

from headway.cli import resolving
from headway.cli.deployment import actor
from headway.history import History
from headway.store import work_queue
from headway.store.engine import Store
from tests.cli.conftest import Shop
from tests.surface.test_cli import assert_brief

WRONG: list[tuple[tuple[str, ...], int, str]] = [
    (("trigger", "laod-2"), 1, "did you mean 'load-2'?"),
    (("trigger", "load-2", "--input", "3"), 2, "--app MODULE:APP"),
    (("trigger", "load-2", "--input", "{"), 2, "is not JSON"),
    (("trigger", "load-2", "--input", "[" * 9999), 2, "is not JSON"),
    (("trigger", "load-2", "--input", "@nothere.json"), 2, "No such file"),
    (("trigger", "load-2", "--input", "@."), 2, "Is a directory"),
    (("trigger", "load-2", "-a", "shop:hw", "--input", "3"), 2, "load-2: input = 3"),
    (("trigger", "load-2", "-a", "nothere:hw"), 2, "no module 'nothere' here"),
    (("trigger", "load-2", "--delay", "soon"), 2, "--delay 90s"),
    (("trigger", "load-2", "--max-attempts", "0"), 2, "--max-attempts"),
    (("trigger",), 2, "WHAT is missing; for example headway trigger load-42"),
    (("cancel",), 2, "give one external id"),
    (("cancel", "load-2", "--entry", "5"), 2, "give one external id"),
    (("cancel", "--execution", "999"), 1, "999"),
    (("cancel", "--group", "etl"), 2, "add --yes"),
    (("groups", "set", "etl"), 2, "nothing to change"),
    (("groups", "set", "etl", "--cap", "x"), 2, "--cap 4"),
    (("groups", "set", "etl", "--cap", "0"), 2, "--cap = '0': must be a whole number of at"),
    (("groups", "set", "etl", "--cap", "-1"), 2, "--cap = '-1': must be a whole number of at"),
    (("groups", "set", "etl", "--priority", "99"), 2, "from 0 to 31"),
    (("groups", "set", "elt", "--cap", "1"), 1, "did you mean 'etl'?"),
    (("groups", "trigger", "etl"), 2, "add --yes"),
    (("manifests", "enable", "laod-2"), 1, "did you mean 'load-2'?"),
    (("manifests", "disable"), 2, "WHAT... is missing"),
    (("executions", "rerun", "999"), 1, "999"),
    (("queue", "cancel", "999"), 1, "999"),
    (("dead-letters", "requeue"), 2, "give ids, or --all"),
    (("dead-letters", "requeue", "1", "--all"), 2, "give ids, or --all"),
    (("dead-letters", "requeue", "1", "2"), 2, "to requeue 2 dead letters, add --yes"),
    (("dead-letters", "requeue", "--all"), 2, "to requeue 2 dead letters, add --yes"),
    (("dead-letters", "requeue", "999"), 1, "not found"),
    (("dead-letters", "acknowledge", "998", "999", "--yes"), 1, "not found"),
    (("dead-letters", "requeue", "1", "2", "--input", "3", "--yes"), 2, "one id"),
    (("dead-letters", "requeue", "--all", "--input", "3", "--yes"), 2, "one id"),
    (("dead-letters", "requeue", "1", "--input", "3"), 2, "--app MODULE:APP"),
    (("dead-letters", "requeue", "1", "--group", "etl"), 2, "give ids, or --all"),
    (("dead-letters", "requeue", "1", "--workflow", "load"), 2, "give ids, or --all"),
    (("dead-letters", "acknowledge", "998", "999", "--yes"), 1, "dead letter 998, 999: not found"),
    (("trigger", "load-2", "--input", "-"), 2, "there is nothing on stdin"),
    (("trigger", "load-2", "--input", "@latin.json"), 2, "--input @latin.json: is not UTF-8 text"),
]


@pytest.mark.parametrize(
    "given",
    [
        '{"name": "fine", "password": "hunter2"',
        '{"name": "fine", "pasword": "hunter2"}',
        '{"name": "fine", "password": ["hunter2"]}',
        '{"name": 7, "password": "hunter2"}',
        '"{\\"password\\": \\"hunter2\\"}"',
    ],
)
def test_an_input_that_is_refused_is_not_quoted_with_its_secrets(shop: Shop, given: str) -> None:
    code, out, err = shop("trigger", "load-2", "--app", "shop:hw", "--input", given)

    assert code == 2 and out == ""
    assert "hunter2" not in err
    assert "input" in err


def audited(shop: Shop) -> list[tuple[str, str]]:
    """What the audit says that was done by us, oldest first."""
    records = shop.read("audit", "list", "--actor", actor())[::-1]
    return [(one["action"], one["subject"]) for one in records]


def dispatch(shop: Shop, entry: int) -> None:
    """Make a pending execution of the entry, which no worker claims."""
    store = Store(shop.database_url)
    with store.writing() as tx:
        work_queue.dispatch(tx, [entry])
    store.close()


def test_where_very_much_waits_no_more_is_queued(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWAY_MAX_QUEUED_PER_GROUP", "1")
    shop.said("trigger", "load-2")
    for command in (("trigger", "load-0"), ("groups", "trigger", "etl", "--yes")):
        code, out, err = shop(*command)
        assert (code, out) == (1, "")
        assert "1 entries wait already in" in err
        assert_brief(err)
    shop.said("trigger", "odd-[bold]")


def test_triggering(shop: Shop) -> None:
    assert shop.said("trigger", "load-2") == "queued load-2 as entry 5\n"
    assert shop.read("trigger", "load-2", "--delay", "1h30m") == {
        "external_id": "load-2",
        "entry": 6,
    }

    first, second = shop.read("queue", "list")
    assert (first["source"], first["delayed"]) == ("trigger", False)
    assert second["delayed"]
    assert audited(shop) == [("manifest.trigger", "load-2")] * 2


def test_triggering_with_an_input(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    (shop.command.folder / "input.json").write_text('{"name": "file"}')
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"name": "stdin"}'))
    for given in ('{"name": "here"}', "@input.json", "-"):
        shop.said("trigger", "load-2", "--app", "shop:hw", "--input", given)

    assert waiting(shop) == ["file", "here", "stdin"]


def waiting(shop: Shop) -> list[str]:
    """The names in the inputs of all that is queued."""
    store = Store(shop.database_url)
    names = [json.loads(one.input)["name"] for one in History(store).queue.all()]
    store.close()
    return sorted(names)


def test_what_is_wrong_changes_nothing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    (shop.command.folder / "latin.json").write_bytes(b'"\xff"')
    for arguments, code, said in WRONG:
        result = shop(*arguments)
        assert (result.code, result.out) == (code, ""), arguments
        assert_brief(result.err)
        assert said in result.err
    assert audited(shop) == []
    assert shop.read("queue", "list") == []


def test_switching_manifests(shop: Shop) -> None:
    assert shop.said("manifests", "disable", "load-0", "load-2") == "disabled load-0, load-2\n"
    assert {one["external_id"] for one in shop.read("manifests", "list", "--disabled")} == {
        "load-0",
        "load-2",
    }
    assert shop.read("manifests", "enable", "load-0") == {"enabled": ["load-0"]}
    assert audited(shop)[-1] == ("manifest.enable", "load-0")


def test_changing_a_group(shop: Shop) -> None:
    assert shop.said("groups", "set", "etl", "--cap", "3", "--disable") == (
        "group etl: disabled, cap 3\n"
    )
    [etl] = shop.read("groups", "list", "etl")
    assert (etl["max_active_jobs"], etl["enabled"], etl["priority"]) == (3, False, 0)

    told = ("groups", "set", "etl", "--cap", "none", "--enable", "--priority", "9")
    assert shop.said(*told) == "group etl: priority 9, enabled, no cap\n"
    assert shop.read(*told) == {
        "group": "etl",
        "priority": 9,
        "enabled": True,
        "max_active_jobs": None,
    }
    [etl] = shop.read("groups", "list", "etl")
    assert (etl["max_active_jobs"], etl["enabled"], etl["priority"]) == (None, True, 9)


def test_triggering_and_cancelling_a_group(shop: Shop) -> None:
    assert shop.read("groups", "trigger", "etl", "--yes") == {"group": "etl", "queued": 4}
    assert shop.said("groups", "trigger", "odd", "--yes") == "queued 1 of group odd\n"
    shop.said("cancel", "--group", "odd", "--yes")
    assert shop.said("cancel", "--group", "etl", "--yes") == "4 cancelled\n"
    assert shop.read("queue", "list") == []
    assert audited(shop) == [
        ("group.trigger", "etl"),
        ("group.trigger", "odd"),
        ("group.cancel", "odd"),
        ("group.cancel", "etl"),
    ]


def test_cancelling_by_every_name(shop: Shop) -> None:
    for _ in range(3):
        shop.said("trigger", "load-2")
    assert shop.said("queue", "cancel", "5") == "entry 5: 1 cancelled\n"
    assert shop.said("cancel", "--entry", "6") == "1 cancelled\n"
    assert shop.read("cancel", "load-2", "--reason", "wrong day") == {
        "cancelled": 1,
        "requested": 0,
        "finished": None,
    }
    assert shop.said("executions", "cancel", "1").startswith("execution 1: already finished: ")
    over = {"cancelled": 0, "requested": 0, "finished": "completed"}
    assert shop.read("executions", "cancel", "1", "3") == [
        {"execution": 1, **over},
        {"execution": 3, **over},
    ]
    shop.said("trigger", "load-2")
    assert shop.read("queue", "cancel", "8") == [
        {"entry": 8, "cancelled": 1, "requested": 0, "finished": None}
    ]


@pytest.mark.parametrize(
    "command",
    [
        ("cancel", "load-2"),
        ("cancel", "--group", "etl", "--yes"),
        ("cancel", "--entry", "5"),
        ("cancel", "--execution", "5"),
        ("queue", "cancel", "5"),
        ("executions", "cancel", "5"),
    ],
    ids=" ".join,
)
def test_the_reason_of_a_cancellation_is_kept(shop: Shop, command: tuple[str, ...]) -> None:
    shop.said("trigger", "load-2")
    dispatch(shop, 5)

    shop.said(*command, "--reason", "wrong day")

    [ended] = shop.read("executions", "list", "load-2", "--state", "cancelled")
    told = shop.read("executions", "show", str(ended["id"]))
    assert told["execution"]["failure"]["message"] == "cancelled before it started: wrong day"
    record, *_ = shop.read("audit", "list", "--actor", actor())
    assert json.loads(record["detail"])["reason"] == "wrong day"


def test_running_something_again(shop: Shop) -> None:
    [done] = shop.read("executions", "list", "load-2")

    assert shop.read("executions", "rerun", str(done["id"])) == [
        {"execution": done["id"], "entry": 5}
    ]
    [entry] = shop.read("queue", "list")
    assert (entry["source"], entry["external_id"]) == ("rerun", "load-2")
    assert waiting(shop) == ["fine"]
    assert entry["max_attempts"] == 1


def test_running_several_again_with_another_input(shop: Shop) -> None:
    given = ("--input", '{"name": "other"}', "--max-attempts", "3")
    code, out, err = shop("executions", "rerun", "1", *given)
    assert (code, out) == (2, "")
    assert "--input is checked by the application's code; name it: --app MODULE:APP" in err

    assert shop.said("executions", "rerun", "1", "3", *given, "--app", "shop:hw") == (
        "queued execution 1 again as entry 5\nqueued execution 3 again as entry 6\n"
    )
    assert [one["max_attempts"] for one in shop.read("queue", "list")] == [3, 3]
    assert waiting(shop) == ["other", "other"]


def test_requeueing_one_dead_letter_asks_nobody(shop: Shop) -> None:
    assert shop.said("dead-letters", "requeue", "1", "--note", "back") == (
        "dead letter 1: requeued as entry 5\n"
    )
    assert audited(shop) == [("dead_letter.requeue", "1")]
    [left] = shop.read("dead-letters", "list")
    assert left["external_id"] == "load-3"
    assert {one["status"] for one in shop.read("dead-letters", "list", "--resolved")} == {
        "retried",
        "awaiting_intervention",
    }


def test_requeueing_with_another_input(shop: Shop) -> None:
    given = ("--input", '{"name": "mended"}', "--app", "shop:hw")
    assert shop.read("dead-letters", "requeue", "1", *given) == {
        "requeued": 1,
        "asked": 1,
        "entry": 5,
    }

    assert len(shop.read("queue", "list", "load-1")) == 1
    assert waiting(shop) == ["mended"]


@pytest.mark.parametrize("which", [("--group", "etl"), ("--workflow", "load")], ids=" ".join)
def test_requeueing_all_of_a_kind(shop: Shop, which: tuple[str, ...]) -> None:
    assert shop.read("dead-letters", "requeue", *which, "--yes") == {
        "requeued": 2,
        "asked": 2,
        "entry": None,
    }
    assert {one["external_id"] for one in shop.read("queue", "list")} == {"load-1", "load-3"}
    assert audited(shop) == [("dead_letter.requeue", "several")]
    assert shop.read("dead-letters", "requeue", *which, "--yes")["asked"] == 0, "none waits"


def test_of_another_kind_nothing_is_requeued(shop: Shop) -> None:
    said = shop.said("dead-letters", "requeue", "--group", "odd", "--workflow", "load", "--yes")
    assert said.startswith("0 requeued: no dead letter of group odd and workflow load waits in ")
    assert shop.read("dead-letters", "acknowledge", "--workflow", "other") == {
        "acknowledged": 0,
        "asked": 0,
        "entry": None,
    }
    assert len(shop.read("dead-letters", "list")) == 2


def test_those_that_were_not_found_are_counted(shop: Shop) -> None:
    told = shop.said("dead-letters", "acknowledge", "1", "998", "999", "--yes")
    assert told == "1 acknowledged; 2 were resolved already or not found\n"
    again = shop.read("dead-letters", "acknowledge", "1", "2", "--yes")
    assert again == {"acknowledged": 1, "asked": 2, "entry": None}


def test_many_dead_letters_are_resolved_in_several_batches(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolving, "AT_ONCE", 1)
    assert shop.said("dead-letters", "acknowledge", "--all", "--yes") == "2 acknowledged\n"
    assert shop.read("dead-letters", "list") == []


@pytest.mark.parametrize("which", [("1",), ("1", "2"), ("--all",)], ids=" ".join)
@pytest.mark.parametrize("how", ["requeue", "acknowledge"])
def test_the_note_is_kept_with_each_dead_letter(
    shop: Shop, how: str, which: tuple[str, ...]
) -> None:
    shop.said("dead-letters", how, *which, "--note", "the server is back", "--yes")

    resolved = [
        one
        for one in shop.read("dead-letters", "list", "--resolved")
        if one["resolved_at"] is not None
    ]
    assert len(resolved) == (1 if which == ("1",) else 2)
    for one in resolved:
        shown = shop.read("dead-letters", "show", str(one["id"]))["letter"]
        assert shown["resolution_note"] == "the server is back"


@pytest.mark.parametrize("which", [("1", "2"), ("--all",), ("--group", "etl")], ids=" ".join)
def test_acknowledging_several(shop: Shop, which: tuple[str, ...]) -> None:
    assert shop.said("dead-letters", "acknowledge", *which, "--yes") == "2 acknowledged\n"
    assert shop.read("dead-letters", "list") == []
    again = shop.said("dead-letters", "acknowledge", "--all")
    assert again.startswith("0 acknowledged: no dead letter waits in ")


def test_what_was_done_is_told_even_if_the_next_one_fails(shop: Shop) -> None:
    code, out, err = shop("executions", "cancel", "1", "999")
    assert (code, out) == (1, "execution 1: already finished: completed\n")
    assert "execution = 999" in err

    code, out, err = shop("executions", "rerun", "1", "999", "--json")
    assert code == 1
    assert [one["execution"] for one in json.loads(out)] == [1]


def test_a_retry_has_a_number_and_no_end(shop: Shop) -> None:
    shop.said("trigger", "load-0")
    shop.said("trigger", "load-2", "--max-attempts", "3")

    header, *lines = shop.said("queue", "list").splitlines()
    assert header.endswith("attempt")
    assert sorted(line.split("  ")[-1].strip() for line in lines) == ["1", "1 of 3"]
