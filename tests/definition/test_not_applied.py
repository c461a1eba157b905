"""A manifest that the code declares and the database does not have: an error of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from headway import Headway, every
from headway.applying import apply_declarations
from headway.errors import ManifestNotFound
from tests.databases import database_url, postgres_url, sqlite_url

__all__ = ["database_url", "postgres_url", "sqlite_url"]

NOT_APPLIED = (
    "manifest 'declared' is declared in the code but is not in the database: it was never applied, "
    "or was removed; run: headway apply MODULE:APP"
)
CALLS: dict[str, Callable[[Headway, str], object]] = {
    "trigger": lambda hw, name: hw.trigger(name),
    "trigger with an input": lambda hw, name: hw.trigger(name, None),
    "enable": lambda hw, name: hw.enable(name),
    "disable": lambda hw, name: hw.disable(name),
    "unschedule": lambda hw, name: hw.unschedule(name),
    "cancel": lambda hw, name: hw.cancel(name),
    "why": lambda hw, name: hw.why(name),
    "operator": lambda hw, name: hw.operator("alice").trigger(name),
}


@pytest.fixture
def hw(database_url: str) -> Iterator[Headway]:
    hw = Headway("tests", database_url=database_url)

    @hw.workflow
    def work() -> None: ...

    hw.schedule("work", "declared", None, every(hours=1))
    with closing(hw.runtime.store):
        yield hw


@pytest.mark.parametrize("name", CALLS)
def test_a_declared_manifest_that_is_not_applied(hw: Headway, name: str) -> None:
    with pytest.raises(ManifestNotFound) as refused:
        CALLS[name](hw, "declared")
    assert str(refused.value) == NOT_APPLIED
    with pytest.raises(ManifestNotFound, match="no manifest has the external id 'misspelt'"):
        CALLS[name](hw, "misspelt")


def test_once_it_is_applied_it_is_found(hw: Headway) -> None:
    apply_declarations(hw, hw.runtime.store)
    assert hw.trigger("declared") > 0
