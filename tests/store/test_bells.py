"""Wake-ups within one process on SQLite: every listener on the same file is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import URL, make_url

from headway.store.bells import hang, ring


def url_of(file: Path) -> URL:
    return make_url(f"sqlite:///{file}")


def test_a_listener_that_ends_leaves_the_others_on_the_same_file(tmp_path: Path) -> None:
    url = url_of(tmp_path / "headway.db")
    heard: list[tuple[str, str]] = []
    end_first = hang(url, lambda topic: heard.append(("first", topic)))
    end_second = hang(url, lambda topic: heard.append(("second", topic)))

    ring(url, "dispatcher")
    end_first()
    ring(url, "manager")
    end_second()
    ring(url, "worker")

    assert heard == [("first", "dispatcher"), ("second", "dispatcher"), ("second", "manager")]


def test_a_file_is_the_same_under_a_relative_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    heard: list[str] = []
    end = hang(make_url("sqlite:///headway.db"), heard.append)

    ring(url_of(tmp_path / "headway.db"), "dispatcher")
    end()

    assert heard == ["dispatcher"]


def test_a_listener_on_another_file_is_not_told(tmp_path: Path) -> None:
    heard: list[str] = []
    end = hang(url_of(tmp_path / "one.db"), heard.append)

    ring(url_of(tmp_path / "other.db"), "dispatcher")
    end()

    assert heard == []
