"""Fixtures every test may ask for: fresh databases of both kinds, and no silent skips in CI."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from tests.databases import Schemas, make_tables
from tests.durations import Durations
from tests.gate import (
    COLLECTED,
    Selection,
    belongs_to_the_gate,
    functions_of,
    load_profile,
    selection_of,
)
from tests.pgbouncer import create_schema, drop_schema, find_pgbouncer
from tests.postgres_server import (
    PostgresServer,
    PostgresUnavailable,
    private_server,
    shared_server,
)
from tests.rules_ran import PAGE, STORIES, RulesRan, named_tests


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="run every test, not only the gate's")
    parser.addoption("--durations-into", type=Path, help="write the seconds of each function there")


def pytest_configure(config: pytest.Config) -> None:
    selection = selection_of(config)
    load_profile(selection)
    if "PYTEST_XDIST_WORKER" not in os.environ and not config.option.collectonly:
        named = named_tests(PAGE.read_text("utf-8") + STORIES.read_text("utf-8"))
        config.pluginmanager.register(RulesRan(named, selection))
        if file := config.getoption("--durations-into"):
            config.pluginmanager.register(Durations(file))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["selection"] = selection_of(node.config).value


@pytest.fixture(scope="session")
def postgres_database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of this process's own database on the run's PostgreSQL server."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    temporary = tmp_path_factory.getbasetemp()
    name = worker or "main"
    try:
        with shared_server(temporary.parent if worker else temporary) as server:
            with psycopg.connect(server, autocommit=True) as connection:
                connection.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
            yield server.replace("/postgres?", f"/{name}?")
    except PostgresUnavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def migrated_schemas(postgres_database: str) -> Schemas:
    """PostgreSQL schemas with headway's tables, for one test after the other."""
    return Schemas(postgres_database)


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with headway's tables, to be copied."""
    file = tmp_path_factory.mktemp("migrated") / "headway.db"
    make_tables(f"sqlite:///{file}")
    return file


@pytest.fixture
def postgres_url(postgres_database: str) -> Iterator[str]:
    """SQLAlchemy's URL of an empty PostgreSQL schema; all that is in it goes with the test."""
    name = f"test_{os.urandom(6).hex()}"
    yield create_schema(postgres_database, name).replace("postgresql:", "postgresql+psycopg:")
    drop_schema(postgres_database, name)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of an SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'headway.db'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The URL of a fresh, empty database; the test runs once on each kind."""
    return str(request.getfixturevalue({"sqlite": "sqlite_url"}.get(request.param, "postgres_url")))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not the gate's, mark what needs PostgreSQL, so that `-m postgresql` picks
    it, and put what is long first, so that no process is left alone with it in the end."""
    gate = [item for item in items if belongs_to_the_gate(item)]
    config.stash[COLLECTED] = functions_of(items), functions_of(gate)
    if selection_of(config) is Selection.GATE:
        config.hook.pytest_deselected(items=list(set(items) - set(gate)))
        items[:] = gate
    items[:] = long_ones_first(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1)))
    for item in items:
        chosen = item.callspec.params.values() if hasattr(item, "callspec") else ()
        if "postgres_database" in getattr(item, "fixturenames", ()) or "postgresql" in chosen:
            item.add_marker("postgresql")


LONG_AT_ONCE = 2


def long_ones_first(items: Sequence[pytest.Item], processes: int) -> list[pytest.Item]:
    """The items as pytest-xdist deals them out: one piece for each process, as long as the others.

    The first pieces begin with their share of what is long, which is mostly whole deployments:
    more of them at once would keep each other from working. A file stays together, for it may have
    a broker or much data in common.
    """
    others = [item for item in items if not item.get_closest_marker("long")]
    dealt: list[pytest.Item] = []
    dealt_out = shares(items, min(processes, LONG_AT_ONCE))
    dealt_out += [[] for _ in range(processes - len(dealt_out))]
    for process, long in enumerate(dealt_out):
        room = max((len(items) - len(dealt)) // (processes - process) - len(long), 0)
        dealt += long + others[:room]
        del others[:room]
    return dealt + others


def shares(items: Sequence[pytest.Item], processes: int) -> list[list[pytest.Item]]:
    """What is long, by the time it may take: each file to the process that has the least."""
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("long"):
            files.setdefault(item.path, []).append(item)
    dealt: list[list[pytest.Item]] = [[] for _ in range(processes)]
    for file in sorted(files.values(), key=allowed_seconds, reverse=True):
        min(dealt, key=allowed_seconds).extend(file)
    return dealt


def allowed_seconds(items: Sequence[pytest.Item]) -> float:
    own = [item.get_closest_marker("timeout") for item in items]
    usual = float(items[0].config.getini("timeout")) if items else 0
    return sum(float(one.args[0]) if one else usual for one in own)


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server of this test's own, which it may stop."""
    try:
        with private_server(durable=True) as server:
            yield server
    except PostgresUnavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def pgbouncer_is_there() -> None:
    """For tests that start one; others go through it only if they are told to."""
    try:
        find_pgbouncer()
    except PostgresUnavailable as reason:
        pytest.skip(str(reason))


def refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if (
        report.skipped
        and not hasattr(report, "wasxfail")
        and os.environ.get("HEADWAY_TESTS_NO_SKIP")
    ):
        report.outcome = "failed"
        report.longrepr = f"skipped, and HEADWAY_TESTS_NO_SKIP is set: {report.longrepr}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    refuse_skip(report)
    return report
