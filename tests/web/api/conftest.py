"""The API of a populated deployment, on each kind of database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.databases import database_url, postgres_url, sqlite_url
from tests.web.api.deployment import Deployment, deployed

__all__ = ["database_url", "postgres_url", "sqlite_url"]


@pytest.fixture
def deployment(database_url: str) -> Iterator[Deployment]:
    with deployed(database_url) as made:
        yield made
