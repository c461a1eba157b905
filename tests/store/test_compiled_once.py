"""A statement is compiled once in a process, however many stores and engines it has."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import literal, select

from headway.store.connecting import Compiled
from headway.store.engine import Store

ALIAS = "asked_by_this_test_alone"


def test_readers_writers_and_other_stores_share_what_one_of_them_compiled(
    store: Store, second: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[str] = []
    keep = Compiled.__setitem__

    def note(self: Compiled, key: Any, compiled: Any) -> None:
        kept.append(str(compiled))
        keep(self, key, compiled)

    monkeypatch.setattr(Compiled, "__setitem__", note)
    answers = []
    for number, enter in enumerate((store.reading, store.writing, second.reading, second.writing)):
        with enter() as tx:
            asked = select(literal(number).label(f"{ALIAS}_{store.url.get_backend_name()}"))
            answers.append(tx.connection.execute(asked).scalar_one())
    assert answers == [0, 1, 2, 3]
    assert len([statement for statement in kept if ALIAS in statement]) == 1
