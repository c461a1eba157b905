"""Verbs that open a transaction of their own, as parts of one that is open already."""

from __future__ import annotations

import pytest

from headway.store.engine import Store
from headway.store.marks import read_mark, write_mark
from headway.store.within import Within


def test_what_is_written_commits_with_the_open_transaction(store: Store) -> None:
    with store.writing() as tx:
        within = Within(tx)
        with within.writing("topic") as inner:
            assert inner is tx
            write_mark(inner, "b", "3")
            write_mark(inner, "a", "1")
        with within.queueing("topic") as inner:
            write_mark(inner, "a", "2")
        with within.reading() as inner:
            assert (inner, read_mark(inner, "a")) == (tx, "2")
    with store.reading() as tx:
        assert [read_mark(tx, name) for name in "abc"] == ["2", "3", None]


def test_what_fails_leaves_nothing_and_the_rest_goes_on(store: Store) -> None:
    with store.writing() as tx:
        write_mark(tx, "a", "1")
        with pytest.raises(ValueError, match="broken"), Within(tx).writing() as inner:
            write_mark(inner, "a", "2")
            raise ValueError("broken")
        assert read_mark(tx, "a") == "1"
    with store.reading() as tx:
        assert read_mark(tx, "a") == "1"
