"""A scene and a deployment on both databases, for every test of this folder that asks for one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders import Scene
from tests.scenarios.deployment import Deployment


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    with Scene(database_url) as scene:
        yield scene


@pytest.fixture
def deployment(database_url: str, tmp_path: Path) -> Iterator[Deployment]:
    deployment = Deployment(database_url, tmp_path)
    yield deployment
    deployment.close()


@pytest.fixture
def postgres_deployment(postgres_url: str, tmp_path: Path) -> Iterator[Deployment]:
    deployment = Deployment(postgres_url, tmp_path)
    yield deployment
    deployment.close()
