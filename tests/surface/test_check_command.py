"""headway check: dependents and the parents they name."""

from __future__ import annotations

import json

import pytest

from tests.surface.test_cli import CommandLine, assert_brief, headway

__all__ = ["headway"]

SHOP = """
from headway import Headway, Item, every

hw = Headway("shop")

@hw.workflow
def load() -> None: ...

hw.schedule(load, "extract-orders", None, every(hours=1)).then_include(load, "load-orders")
hw.schedule(load, "manual")
(
    hw.schedule(load, "delta", None, every(hours=1))
    .include_many(load, "bronze", [Item("all", depends_on=PARENT)])
    .include_many(
        load, "silver", [Item("all", depends_on=["extract-orders", "delta"])], join="any"
    )
    .include(load, "copy", dormant=True)
)
"""


def test_dependents_are_listed_with_their_parents(headway: CommandLine) -> None:
    headway.write("shop.py", SHOP.replace("PARENT", '"delta"'))

    code, out, err = headway("check", "shop:hw")
    assert (code, err) == (0, "")
    lines = {line.split()[0]: " ".join(line.split()) for line in out.splitlines() if line.strip()}
    assert "after extract-orders" in lines["load-orders"]
    assert "after delta or extract-orders" in lines["silver-all"]
    assert "when activated by delta" in lines["copy"]
    assert "only when triggered" in lines["manual"]
    assert out.count("only when triggered") == 1

    told = json.loads(headway("check", "shop:hw", "--json").out)
    assert {one["external_id"]: one["schedule"] for one in told["manifests"]} == {
        "extract-orders": "every 1 hour",
        "load-orders": "after extract-orders",
        "manual": "only when triggered",
        "delta": "every 1 hour",
        "bronze-all": "after delta",
        "silver-all": "after delta or extract-orders",
        "copy": "when activated by delta",
    }


@pytest.mark.parametrize(
    ("parent", "hint"),
    [("extract-order", "; did you mean 'extract-orders'?"), ("nothing-like-it", "")],
)
def test_a_parent_that_is_not_declared_is_refused(
    headway: CommandLine, parent: str, hint: str
) -> None:
    headway.write("shop.py", SHOP.replace("PARENT", repr(parent)))

    for options in ((), ("--json",)):
        code, out, err = headway("check", "shop:hw", *options)
        assert (code, out) == (2, "")
        assert err.startswith(f"headway: bronze-all: depends_on = {parent!r}: ")
        assert hint in err
        assert "--allow-undeclared-parents" in err
        assert_brief(err)


def test_a_parent_of_another_application_may_be_allowed(headway: CommandLine) -> None:
    headway.write("shop.py", SHOP.replace("PARENT", '"extract-order"'))

    code, out, err = headway("check", "shop:hw", "--allow-undeclared-parents")
    assert (code, err) == (0, "")
    [warning] = [line for line in out.splitlines() if line.startswith("warning: ")]
    assert warning.startswith("warning: bronze-all: depends_on = 'extract-order': ")
    assert files_in(headway) == ["shop.py"]


def files_in(headway: CommandLine) -> list[str]:
    return sorted(one.name for one in headway.folder.iterdir() if one.is_file())
