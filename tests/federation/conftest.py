"""One deployment on each kind of database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.databases import database_url, postgres_url, sqlite_url
from tests.federation.azolla import Azolla

__all__ = ["database_url", "postgres_url", "sqlite_url"]


@pytest.fixture
def azolla(database_url: str) -> Iterator[Azolla]:
    with Azolla(database_url) as azolla:
        yield azolla
