"""Lists and details: what people see, what programs read, page by page."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert, update

from headway.cli.deployment import actor
from headway.store.engine import Store
from headway.store.tables import server, work_queue
from tests.cli.conftest import Shop
from tests.surface.test_cli import CommandLine, assert_brief

LISTS = {
    "manifests": 5,
    "groups": 2,
    "executions": 4,
    "queue": 0,
    "dead-letters": 2,
    "servers": 0,
    "audit": 0,
}

FILTERED: list[tuple[tuple[str, ...], set[str]]] = [
    (("manifests", "list", "load-1"), {"load-1"}),
    (("manifests", "list", "ad-", "--anywhere"), {f"load-{n}" for n in range(4)}),
    (("manifests", "list", "--dead-lettered"), {"load-1", "load-3"}),
    (("manifests", "list", "--disabled"), set()),
    (("manifests", "list", "--group", "etl", "--workflow", "other"), set()),
    (("manifests", "list", "--group", "odd", "--workflow", "load"), {"odd-[bold]"}),
    (("manifests", "list", "--group", "odd", "--enabled"), {"odd-[bold]"}),
    (("executions", "list", "load-2"), {"load-2"}),
    (("executions", "list", "--state", "failed"), {"load-1", "load-3"}),
    (("executions", "list", "--group", "odd"), set()),
    (("executions", "list", "--until", "2026-01-01"), set()),
    (("executions", "list", "--source", "trigger"), set()),
    (("executions", "list", "--workflow", "other"), set()),
    (("executions", "list", "--since", "1d"), set()),
    (
        (
            *("executions", "list", "--group", "etl", "--workflow", "load"),
            *("--source", "schedule", "--since", "2026-01-04", "--until", "2026-01-06"),
        ),
        {f"load-{n}" for n in range(4)},
    ),
    (
        ("executions", "list", "--state", "failed", "--state", "completed"),
        {f"load-{n}" for n in range(4)},
    ),
    (("dead-letters", "list", "--group", "etl"), {"load-1", "load-3"}),
    (("dead-letters", "list", "--workflow", "other", "--resolved"), set()),
    (("dead-letters", "list", "--workflow", "load"), {"load-1", "load-3"}),
    (("dead-letters", "list", "--group", "odd"), set()),
]
FAILURE = r"load: ValueError: no rows \x1b[31min it"
BEGAN = "2026-01-05 00:00:00Z"
TABLES: list[tuple[tuple[str, ...], list[list[str]]]] = [
    (
        ("manifests", "list", "load-", "--limit", "2"),
        [
            ["external id", "state", "group", "workflow", "schedule", "last success"],
            ["load-0", "idle", "etl", "load", "every 1 hour", BEGAN],
            ["load-1", "failed", "etl", "load", "every 1 hour"],
        ],
    ),
    (
        ("groups", "list"),
        [
            [
                *("group", "state", "active", "queued", "prio", "on", "manifests"),
                *("done 24 h", "failed", "dead"),
            ],
            ["etl", "failed", "0 of 2", "0", "0", "yes", "4", "0", "0", "2"],
            ["odd", "idle", "0", "0", "0", "yes", "1", "0", "0", "0"],
        ],
    ),
    (
        ("executions", "list", "--limit", "2"),
        [
            [
                *("id", "state", "manifest", "workflow", "group", "source"),
                *("dispatched", "took", "what happened"),
            ],
            ["4", "failed", "load-3", "load", "etl", "schedule", BEGAN, "0.00 s", FAILURE],
            ["3", "completed", "load-2", "load", "etl", "schedule", BEGAN, "0.00 s"],
        ],
    ),
    (
        ("dead-letters", "list"),
        [
            ["id", "manifest", "group", "workflow", "since", "reason"],
            ["2", "load-3", "etl", "load", BEGAN, "failed once (max_attempts 1)"],
            ["1", "load-1", "etl", "load", BEGAN, "failed once (max_attempts 1)"],
        ],
    ),
]
NOTHING = {
    ("manifests", "list", "x"): "there is no such manifest; headway apply MODULE:APP adds what an "
    "application declares",
    ("groups", "list", "x"): "no group is like that; headway groups list shows all",
    ("executions", "list", "x"): "nothing like that has run; what waits: headway queue list",
    ("queue", "list"): "nothing waits",
    ("dead-letters", "list", "--group", "odd"): "no dead letter waits",
    ("dead-letters", "list", "--group", "odd", "--resolved"): "there is no dead letter",
    ("servers", "list"): "no process runs; start one: headway run MODULE:APP",
    ("audit", "list"): "nobody has done anything like that",
}
MASKED = [
    (("manifests", "show", "load-1"), ("definition", "input")),
    (("executions", "show", "1"), ("execution", "input")),
    (("dead-letters", "show", "1"), ("input",)),
    (("dead-letters", "show", "1"), ("execution", "input")),
]
WRONG: list[tuple[tuple[str, ...], int, str]] = [
    (("manifests", "show", "laod-1"), 1, "did you mean 'load-1'?"),
    (("manifests", "show", "zzz"), 1, "see headway manifests list"),
    (("groups", "show", "elt"), 1, "did you mean 'etl'?"),
    (("executions", "show", "999"), 1, "999"),
    (("dead-letters", "show", "999"), 1, "999"),
    (("executions", "show", "x"), 2, "EXECUTION = 'x': must be a whole number; for example"),
    (("executions", "list", "--state", "done"), 2, "'done' is not one of"),
    (("executions", "list", "--since", "yesterday"), 2, "--since 2h"),
    (("executions", "list", "--follow", "--all"), 2, "--follow goes with --limit"),
    (("executions", "list", "--follow", "--after", "x"), 2, "--follow goes with --limit"),
    (("manifests", "list", "--limit", "0"), 2, "--limit = '0': must be at least 1; for example"),
    (("manifests", "list", "--after", "nonsense"), 2, "cursor = 'nonsense'"),
    (("manifests", "lsit"), 2, "Did you mean 'list'?"),
]


def test_every_list_is_a_table_and_an_array(shop: Shop) -> None:
    for noun, count in LISTS.items():
        told = shop.read(noun, "list")
        lines = shop.said(noun, "list").splitlines()
        assert len(told) == count, noun
        assert len(lines) == (count + 1 if count else 1)
        assert all(line == line.rstrip() for line in lines)


def test_groups_are_found_anywhere_in_their_names_if_that_is_asked_for(shop: Shop) -> None:
    def found(*arguments: str) -> list[str]:
        return [one["name"] for one in shop.read("groups", "list", *arguments)]

    assert found("od") == ["odd"]
    assert found("dd") == []
    assert found("dd", "--anywhere") == ["odd"]


def test_a_list_goes_on_where_another_ended(shop: Shop) -> None:
    for noun in ("manifests", "groups", "executions", "dead-letters"):
        everything = shop.read(noun, "list", "--all")
        code, out, err = shop(noun, "list", "--limit", "1", "--json")
        first, cursor = json.loads(out), err.split("--after ")[1].split(" ")[0]
        assert code == 0
        assert err.startswith("there is more: --all shows it")
        assert first + shop.read(noun, "list", "--after", cursor) == everything


def cells(table: str) -> list[list[str]]:
    """What stands in each line; of moments since the test began only that there is one."""
    told = re.sub(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\dZ", _moment, table)
    return [re.split(r" {2,}", line.strip()) for line in told.splitlines()]


def _moment(found: re.Match[str]) -> str:
    return BEGAN if found[0] == BEGAN else "AT"


def test_every_column_of_a_table(shop: Shop) -> None:
    for arguments, expected in TABLES:
        code, out, _ = shop(*arguments)
        assert (code, cells(out)) == (0, expected), arguments


def test_every_column_of_the_queue(shop: Shop) -> None:
    shop.said("trigger", "load-2", "--delay", "1h", "--max-attempts", "3")
    shop.said("trigger", "odd-[bold]")

    assert cells(shop.said("queue", "list")) == [
        [
            *("entry", "manifest", "workflow", "group", "source"),
            *("priority", "queued", "not before", "attempt"),
        ],
        ["6", "odd-[bold]", "load", "odd", "trigger", "0", "AT", "1"],
        ["5", "load-2", "load", "etl", "trigger", "0", "AT", "AT", "1 of 3"],
    ]
    for arguments, found in (
        (("load-2",), {5}),
        (("--group", "odd"), {6}),
        (("--group", "etl"), {5}),
        (("--source", "trigger"), {5, 6}),
        (("--source", "rerun"), set()),
    ):
        assert {one["id"] for one in shop.read("queue", "list", *arguments)} == found, arguments


def test_a_delay_that_is_over_is_not_shown_any_more(shop: Shop) -> None:
    shop.said("trigger", "load-2", "--delay", "1h")
    store = Store(shop.database_url)
    with store.writing() as tx:
        due = tx.now - timedelta(minutes=1)
        over = update(work_queue).values(scheduled_at=due, delayed=False)
        tx.connection.execute(over)
    store.close()

    [_, line] = cells(shop.said("queue", "list"))
    assert line[-2:] == ["AT", "1"] and line.count("AT") == 1
    assert shop.read("queue", "list")[0]["scheduled_at"] is not None


def test_every_column_of_the_audit(shop: Shop) -> None:
    shop.said("manifests", "disable", "load-0")
    shop.said("groups", "set", "odd", "--cap", "3")

    told = cells(shop.said("audit", "list"))
    assert told == [
        ["at", "who", "action", "what", "detail"],
        ["AT", actor(), "group.set", "odd", '{"set": {"max_active_jobs": 3}}'],
        ["AT", actor(), "manifest.disable", "load-0"],
    ]
    for arguments, found in (
        (("--actor", actor()), {"odd", "load-0"}),
        (("--actor", "cli:other"), set()),
        (("--action", "manifest.disable"), {"load-0"}),
        (("--subject", "odd"), {"odd"}),
        (("--since", "1h"), {"odd", "load-0"}),
        (("--since", "2100-01-01"), set()),
    ):
        said = {one["subject"] for one in shop.read("audit", "list", *arguments)}
        assert said == found, arguments


def test_queue_and_audit_go_on_where_another_list_ended(shop: Shop) -> None:
    for name in ("load-0", "load-2", "odd-[bold]"):
        shop.said("trigger", name)
    for noun in ("queue", "audit"):
        everything = shop.read(noun, "list", "--all")
        _, out, err = shop(noun, "list", "--limit", "2", "--json")
        first, cursor = json.loads(out), err.split("--after ")[1].split(" ")[0]
        assert len(first) == 2
        assert first + shop.read(noun, "list", "--after", cursor) == everything


def test_every_column_of_the_servers(shop: Shop) -> None:
    store = Store(shop.database_url)
    with store.writing() as tx:
        for name, minutes in (("a", 0), ("b", 30), ("c", 61)):
            renewed = tx.now - timedelta(minutes=minutes)
            values = {"id": name, "host": "here", "pid": 7, "slots": 4, "started_at": renewed}
            values |= {"roles": '["manager", "worker"]', "workflows": '["load", "other"]'}
            values |= {"renewed_at": renewed, "expires_at": renewed + timedelta(hours=1)}
            tx.connection.execute(insert(server).values(values))
    store.close()

    told = cells(shop.said("servers", "list"))
    titles = ["server", "host", "lease", "roles", "running", "workflows", "started", "last beat"]
    both = "manager, worker"
    assert told == [
        titles,
        ["c", "here:7", "lost", both, "0 of 4", "2", "AT", "AT"],
        ["b", "here:7", "late", both, "0 of 4", "2", "AT", "AT"],
        ["a", "here:7", "alive", both, "0 of 4", "2", "AT", "AT"],
    ]


def test_an_empty_list_says_what_to_do(shop: Shop) -> None:
    for arguments, sentence in NOTHING.items():
        assert shop.said(*arguments) == f"{sentence}\n"
        assert shop.said(*arguments, "--json") == "[]\n"


def test_groups_are_found_by_their_switch(shop: Shop) -> None:
    shop.said("groups", "set", "odd", "--disable")

    [off] = shop.read("groups", "list", "--disabled")
    [on] = shop.read("groups", "list", "--enabled")
    assert (off["name"], on["name"]) == ("odd", "etl")
    [line] = cells(shop.said("groups", "list", "--disabled"))[1:]
    assert line[:2] == ["odd", "disabled"] and line[5] == "no"


def test_what_was_resolved_is_listed_with_its_moment(shop: Shop) -> None:
    shop.said("dead-letters", "acknowledge", "1")

    titles, waiting, resolved = cells(shop.said("dead-letters", "list", "--resolved"))
    assert titles[-1] == "resolved"
    assert (waiting[0], len(waiting)) == ("2", 6)
    assert (resolved[0], resolved[-1]) == ("1", "AT")


def test_names_are_shown_as_text(shop: Shop) -> None:
    shown = shop.said("manifests", "list", "odd")

    assert "odd-[bold]" in shown
    assert "\x1b" not in shop.said("executions", "list", "--state", "failed")


def test_filters(shop: Shop) -> None:
    for arguments, found in FILTERED:
        assert {one["external_id"] for one in shop.read(*arguments)} == found, arguments


def test_a_manifest_in_detail(shop: Shop) -> None:
    told = shop.said("manifests", "show", "load-1")

    assert "state        failed" in told
    assert "schedule     every 1 hour" in told
    assert "dead letter  1: failed once (max_attempts 1)" in told
    assert "last executions" in told
    assert shop.read("manifests", "show", "load-1")["overview"]["group_name"] == "etl"


def test_a_group_in_detail(shop: Shop) -> None:
    told = shop.said("groups", "show", "etl")

    assert "cap           2" in told
    assert "dead letters  2" in told


def test_an_execution_in_detail(shop: Shop) -> None:
    [failed] = shop.read("executions", "list", "load-1")
    told = shop.said("executions", "show", str(failed["id"]))

    assert "state        failed" in told
    assert "load  " in told.partition("\nsteps\n")[2]
    assert r"ValueError: no rows \x1b[31min it" in told.splitlines()[-1]
    assert shop.read("executions", "show", str(failed["id"]))["execution"]["state"] == "failed"


def test_a_dead_letter_in_detail_says_what_to_do(shop: Shop) -> None:
    told = shop.said("dead-letters", "show", "1")

    assert "manifest     load-1" in told
    assert "headway dead-letters requeue 1" in told
    assert shop.read("dead-letters", "show", "1")["letter"]["external_id"] == "load-1"


def test_secrets_are_masked(shop: Shop) -> None:
    for arguments, path in MASKED:
        told: Any = shop.read(*arguments)
        known: Any = shop.read(*arguments, "--app", "shop:hw")
        for name in path:
            told, known = told[name], known[name]
        assert told == "********", path
        assert known["password"] == "********", path
        assert known["name"] in ("fine", "broken")
        assert "geheim" not in shop.said(*arguments, "--app", "shop:hw")


def test_what_is_wrong_is_told_in_at_most_three_lines(shop: Shop) -> None:
    for arguments, code, said in WRONG:
        result = shop(*arguments)
        assert (result.code, result.out) == (code, ""), arguments
        assert_brief(result.err)
        assert said in result.err


@pytest.mark.parametrize("noun", LISTS)
def test_a_noun_without_a_verb_shows_its_verbs(headway: CommandLine, noun: str) -> None:
    code, out, err = headway(noun)

    assert (code, err) == (2, "")
    assert f"Usage: headway {noun}" in out


@pytest.mark.parametrize(
    "arguments",
    [("manifests", "list"), ("trigger", "load"), ("groups", "show", "etl")],
    ids=" ".join,
)
def test_a_database_that_is_not_ready(
    headway: CommandLine, postgres_url: str, arguments: tuple[str, ...]
) -> None:
    wanted = {
        postgres_url: "run: headway db migrate",
        "postgresql://me:secret@127.0.0.1:1/x": "cannot open postgresql://me:***@127.0.0.1:1/x",
        "sqlite:///not-there.db": "there is no such file",
    }
    for url, said in wanted.items():
        code, out, err = headway(*arguments, "--database-url", url)
        assert (code, out) == (1, "")
        assert_brief(err)
        assert said in err
        assert "secret" not in err


def test_a_database_that_was_not_named(headway: CommandLine) -> None:
    code, _, err = headway("manifests", "list")

    assert code == 1
    assert err == (
        f"headway: cannot open sqlite:///{headway.folder.resolve() / 'headway.db'} (default; set "
        "HEADWAY_DATABASE_URL or Headway(database_url=...)): there is no such file; "
        "name another by --database-url URL or --app MODULE:APP\n"
    )
    assert not (headway.folder / "headway.db").exists()
