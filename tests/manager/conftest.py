"""A scene on both databases, for every test of this folder that asks for one."""

from collections.abc import Iterator

import pytest

from tests.builders import Scene
from tests.databases import database_url, postgres_url, sqlite_url

__all__ = ["database_url", "postgres_url", "sqlite_url"]


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url) as scene:
        yield scene
