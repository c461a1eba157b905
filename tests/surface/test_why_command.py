"""headway why: one sentence, a table or JSON, and nothing written."""

from __future__ import annotations

import json

import pytest

from tests.surface.test_cli import CommandLine, assert_brief, headway

__all__ = ["headway"]

SHOP = """
from headway import Group, Headway, every

hw = Headway("shop", database_url={url!r})

@hw.workflow
def load(table: str) -> None: ...

hw.schedule(load, "load-[bold]1", "users", every(hours=1), enabled=False)
hw.schedule(load, "load-2", "users", every(hours=1), group=Group("etl", enabled=False))
"""


@pytest.fixture
def shop(headway: CommandLine, database_url: str) -> CommandLine:
    headway.write("shop.py", SHOP.format(url=database_url))
    assert headway("db", "migrate", "shop:hw").code == 0
    assert headway("apply", "shop:hw", "--yes").code == 0
    return headway


def test_the_first_line_is_the_answer_and_the_gates_follow(shop: CommandLine) -> None:
    code, out, err = shop("why", "load-[bold]1", "--app", "shop:hw")

    answer, blank, *table = out.splitlines()
    assert (code, err, blank) == (0, "", "")
    told = "does not run because the manifest is disabled; it can when somebody enables it"
    assert answer == f"load-[bold]1 {told}"
    assert table[0].split() == ["gate", "asked", "by", "can", "change"]
    assert table[1].split()[:3] == ["✗", "enabled", "manager"]
    assert table[1].rstrip().endswith("when somebody enables it")
    assert "✗  worker" in out and "no worker is alive" in out


def test_json_has_every_gate(shop: CommandLine) -> None:
    code, out, err = shop("why", "load-2", "-a", "shop:hw", "--json")

    told = json.loads(out)
    assert (code, err) == (0, "")
    assert told["answer"].startswith("load-2 does not run because group 'etl' is disabled")
    assert (told["entry"], told["execution"]) == (None, None)
    held = [one for one in told["gates"] if not one["passed"]]
    assert held[0] == {
        "name": "group enabled",
        "stage": "queue",
        "passed": False,
        "sentence": "group 'etl' is disabled",
        "until": "when somebody enables the group",
        "at": None,
    }


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("nothing",), 1, "no manifest has the external id 'nothing'; see headway manifests list"),
        (("laod-2",), 1, "no manifest has the external id 'laod-2'; did you mean 'load-2'?"),
        (("--entry", "7"), 1, "entry = 7: no entry has this id"),
        (("--execution", "7"), 1, "execution = 7: no execution has this id"),
        ((), 2, "give one external id, or --execution, or --entry"),
        (("load-2", "--entry", "7"), 2, "give one external id, or --execution, or --entry"),
    ],
)
def test_what_is_not_there_is_told_in_one_line(
    shop: CommandLine, arguments: tuple[str, ...], code: int, said: str
) -> None:
    found, out, err = shop("why", *arguments, "--app", "shop:hw")

    assert (found, out) == (code, "")
    assert_brief(err)
    assert said in err


def test_asking_creates_no_database(headway: CommandLine) -> None:
    headway.write("shop.py", SHOP.format(url="sqlite:///shop.db"))

    code, out, err = headway("why", "load-2", "--app", "shop:hw")

    assert (code, out) == (1, "")
    assert "cannot open sqlite:///shop.db: there is no such file" in err
    assert not (headway.folder / "shop.db").exists()


@pytest.mark.parametrize("named_by", ["option", "variable", "address of the application"])
def test_the_database_alone_is_enough(
    shop: CommandLine, database_url: str, monkeypatch: pytest.MonkeyPatch, named_by: str
) -> None:
    option: tuple[str, ...] = ()
    if named_by == "option":
        option = ("--database-url", database_url)
    elif named_by == "variable":
        monkeypatch.setenv("HEADWAY_DATABASE_URL", database_url)
    else:
        monkeypatch.setenv("HEADWAY_APP", "shop:hw")

    code, out, err = shop("why", "load-2", *option)

    assert (code, err) == (0, "")
    assert out.startswith("load-2 does not run because group 'etl' is disabled")
