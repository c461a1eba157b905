"""One deployment on each kind of database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.federation.azolla import Azolla


@pytest.fixture
def azolla(database_url: str) -> Iterator[Azolla]:
    with Azolla(database_url) as azolla:
        yield azolla
