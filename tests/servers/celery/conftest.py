"""A broker for each process of a test run, and a deployment for each test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.brokers import Broker, BrokerUnavailable, running
from tests.servers.celery.site import Site


@contextmanager
def brought_up(kind: str) -> Iterator[Broker]:
    """A broker of this kind, or the test is skipped."""
    try:
        with running(kind) as broker:
            yield broker
    except BrokerUnavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def redis_broker() -> Iterator[Broker]:
    with brought_up("redis") as broker:
        yield broker


@pytest.fixture(scope="session")
def rabbitmq_broker() -> Iterator[Broker]:
    with brought_up("rabbitmq") as broker:
        yield broker


@pytest.fixture(params=["redis", "rabbitmq"])
def broker(request: pytest.FixtureRequest) -> Broker:
    found: Broker = request.getfixturevalue(f"{request.param}_broker")
    return found


@pytest.fixture
def either_site(broker: Broker, postgres_url: str, tmp_path: Path) -> Iterator[Site]:
    """On each of the brokers."""
    site = Site(postgres_url, broker, tmp_path)
    yield site
    site.close()


@pytest.fixture
def site(redis_broker: Broker, postgres_url: str, tmp_path: Path) -> Iterator[Site]:
    """On Redis, where nothing is asked about RabbitMQ."""
    site = Site(postgres_url, redis_broker, tmp_path)
    yield site
    site.close()
