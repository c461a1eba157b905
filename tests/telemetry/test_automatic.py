"""OTEL_* variables are enough: ``headway run`` sends to the collector they name."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from headway import Headway
from headway.store.engine import Store
from headway.telemetry import automatic
from headway.telemetry.automatic import export_if_wanted, wanted
from headway.telemetry.otel import OpenTelemetry
from tests.builders import eventually
from tests.surface.command_line import finish, start


class Collector(ThreadingHTTPServer):
    """What OTLP over HTTP is sent to."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Taking)
        self.taken: list[tuple[str, bytes]] = []


class _Taking(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.taken.append((self.path, body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        thread = Thread(target=collector.serve_forever)
        thread.start()
        yield collector
        collector.shutdown()
        thread.join()


PROGRAM = """
from headway import Headway, every
hw = Headway("shop", database_url="sqlite:///shop.db")

@hw.workflow
def count_stock() -> None: ...

hw.schedule(count_stock, "count-a", None, every(hours=1))
"""


def test_headway_run_sends_to_the_collector_the_environment_names(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop.py").write_text(PROGRAM, "utf-8")
    address = f"http://127.0.0.1:{collector.server_address[1]}"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
    running = start(tmp_path, "run", "shop:hw")
    spans = ("enqueue count_stock", "dispatch count_stock", "run count_stock", "step count_stock")

    def sent() -> bytes:
        return b"".join(body for path, body in list(collector.taken) if path == "/v1/traces")

    try:
        eventually(lambda: all(name.encode() in sent() for name in spans))
    finally:
        running.terminate()
        code, _, err = finish(running)
    assert code == 0, err
    assert b"shop" in sent(), "the service is called like the application"
    measured = b"".join(body for path, body in collector.taken if path == "/v1/metrics")
    assert b"headway.run.duration" in measured, "what is left is sent at the end"


NAMES_ITSELF = """
import os
from opentelemetry import trace
from headway.telemetry.exporting import SERVICE, _set_up

_set_up("shop")
print(trace.get_tracer_provider().resource.attributes[SERVICE], flush=True)
os._exit(0)  # there is no collector to say goodbye to
"""


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({}, "shop"),
        ({"OTEL_SERVICE_NAME": "warehouse"}, "warehouse"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=warehouse"}, "warehouse"),
    ],
)
def test_the_service_is_called_as_the_environment_says_or_else_like_the_application(
    variables: dict[str, str], name: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NAMES_ITSELF],
        env={key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
        | variables,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == name, done.stderr


PROVIDES_ITSELF = """
import os
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from headway import Headway
from headway.store.engine import Store
from headway.telemetry.exporting import export
from headway.telemetry.otel import OpenTelemetry

own = TracerProvider()
trace.set_tracer_provider(own)
hw, store = Headway(), Store("sqlite:///headway.db")
export(hw, store)
export(hw, store)
subscribed = sum(isinstance(one, OpenTelemetry) for one in hw.observer.subscribers)
print(trace.get_tracer_provider() is own, subscribed, flush=True)
os._exit(0)
"""


def test_providers_that_the_application_has_set_up_are_used(tmp_path: Path) -> None:
    environ = {key: one for key, one in os.environ.items() if not key.startswith("OTEL_")}
    done = subprocess.run(
        [sys.executable, "-c", PROVIDES_ITSELF],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "True 1", done.stderr


def test_only_a_collector_that_is_named_switches_it_on() -> None:
    assert wanted({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"})
    assert wanted({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://127.0.0.1:4318/v1/metrics"})
    assert not wanted({"OTEL_EXPORTER_OTLP_ENDPOINT": ""})
    assert not wanted({"OTEL_SERVICE_NAME": "shop"})
    named = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}
    assert not wanted(named | {"OTEL_SDK_DISABLED": "TRUE"})


def test_an_application_that_has_seen_to_it_itself_is_left_alone(sqlite_url: str) -> None:
    app, store = Headway(database_url=sqlite_url), Store(sqlite_url)
    app.observer.subscribe(OpenTelemetry())
    before = app.observer.subscribers
    assert export_if_wanted(app, store, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})
    store.close()
    assert app.observer.subscribers == before


def test_without_the_packages_it_says_how_to_get_them_and_goes_on(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(automatic, "find_spec", lambda name: None)
    app, store = Headway(database_url=sqlite_url), Store(sqlite_url)
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    with caplog.at_level("INFO", logger="headway"):
        assert not export_if_wanted(app, store, {})
        assert caplog.messages == []
        assert not export_if_wanted(app, store, environ)
    store.close()
    assert "pip install 'headway-scheduler[otel]'" in caplog.text


def test_running_imports_nothing_of_it_unless_asked() -> None:
    program = "import headway.cli.serving, sys; print([n for n in sys.modules if 'opentel' in n])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
