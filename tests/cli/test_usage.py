"""What is wrong with a command line, and HEADWAY_APP instead of an argument."""

from __future__ import annotations

import pytest

from tests.cli.conftest import SHOP
from tests.surface.test_cli import CommandLine

WRONG = [
    (["executions", "rerun", "1", "y"], "EXECUTION... = 'y': must be a whole number"),
    (["demo", "--for", "0"], "--for = '0': must be at least 0.1; for example headway demo"),
    (["demo", "--for", "x"], "--for = 'x': must be a number; for example headway demo --for 20"),
    (["preview", "shop:hw", "--days", "9999"], "--days = '9999': must be at most 3660"),
    (["tokens", "create"], "NAME is missing; for example headway tokens create alice"),
    (["azolla", "peers"], "MODULE:APP is missing; name it (headway azolla peers shop:hw), or set"),
]
ALONE = [
    ["check"],
    ["plan"],
    ["apply"],
    ["preview"],
    ["doctor"],
    ["db", "status"],
    ["azolla", "captures"],
]


@pytest.fixture
def shop(headway: CommandLine, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    headway.write("shop.py", SHOP.format(url=f"sqlite:///{headway.folder / 'own.db'}"))
    monkeypatch.setenv("HEADWAY_APP", "shop:hw")
    assert headway("apply", "shop:hw", "--yes").code == 0
    return headway


@pytest.mark.parametrize(("arguments", "told"), WRONG)
def test_argument_value_rule_and_example_are_named(
    headway: CommandLine, arguments: list[str], told: str
) -> None:
    code, out, err = headway(*arguments)

    assert (code, out) == (2, "")
    assert err.startswith(f"headway: {told}")
    assert err.splitlines()[1].startswith("try: headway ")


@pytest.mark.parametrize("arguments", ALONE, ids=" ".join)
def test_headway_app_names_the_application(shop: CommandLine, arguments: list[str]) -> None:
    code, _, err = shop(*arguments)

    assert (code, err) == (0, "")
    assert not (shop.folder / "headway.db").exists()


def test_an_application_that_is_named_goes_before(shop: CommandLine) -> None:
    code, _, err = shop("check", "other:hw")

    assert code == 2
    assert "no module 'other' here" in err


@pytest.mark.parametrize("command", ["run", "check", "plan", "apply", "preview", "doctor"])
def test_the_help_names_the_variable_and_no_types(headway: CommandLine, command: str) -> None:
    code, out, _ = headway(command, "-h")

    assert code == 0
    assert "HEADWAY_APP" in out
    assert not any(word in out for word in ("<bool>", "<str>", "{MODULE"))


def test_an_argument_without_a_name_of_its_own(headway: CommandLine) -> None:
    _, out, _ = headway("azolla", "capture", "--help")
    code, _, err = headway("azolla", "capture", "shop:hw")

    assert "azolla capture [OPTIONS] MODULE:APP TEXT" in out
    assert code == 2
    assert err.startswith("headway: TEXT is missing; for example headway azolla capture shop:hw")


def test_a_missing_database_says_how_to_name_another(headway: CommandLine) -> None:
    code, _, err = headway("doctor")

    assert code == 1
    assert "no such file; name another by --database-url URL or MODULE:APP" in err
