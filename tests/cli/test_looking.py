"""Lists and details: what people see, what programs read, page by page."""

from __future__ import annotations

import json
from typing import Any

import pytest

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
    (("executions", "list", "load-2"), {"load-2"}),
    (("executions", "list", "--state", "failed"), {"load-1", "load-3"}),
    (("executions", "list", "--group", "odd"), set()),
    (("executions", "list", "--until", "2026-01-01"), set()),
    (("executions", "list", "--source", "trigger"), set()),
    (("dead-letters", "list", "--group", "etl"), {"load-1", "load-3"}),
    (("dead-letters", "list", "--workflow", "other", "--resolved"), set()),
]
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
