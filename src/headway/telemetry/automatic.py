"""Whether the environment asks for OpenTelemetry; looked up without importing any of it."""

import importlib
import logging
from collections.abc import Mapping
from importlib.util import find_spec

from headway.definition.app import Headway
from headway.store.engine import Store

logger = logging.getLogger("headway")

ENDPOINTS = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
)


def wanted(environ: Mapping[str, str]) -> bool:
    """Whether a collector is named and OpenTelemetry is not switched off.

    >>> wanted({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"})
    True
    >>> wanted({})
    False
    """
    off = environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    return not off and any(environ.get(name) for name in ENDPOINTS)


def export_if_wanted(app: Headway, store: Store, environ: Mapping[str, str]) -> bool:
    """Send traces and metrics of *app* if the environment asks for it; whether it does.

    >>> export_if_wanted(app, store, os.environ)  # doctest: +SKIP
    False
    """
    if not wanted(environ):
        return False
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.exporter") is None:
        logger.info("OTEL_* is set, but nothing is sent: pip install 'headway-scheduler[otel]'")
        return False
    importlib.import_module("headway.telemetry.exporting").export(app, store)
    return True
