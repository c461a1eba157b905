"""The optional parts of headway, and the sentence a user sees when one is missing."""

from importlib.util import find_spec

from headway.errors import MissingExtra

EXTRAS: dict[str, tuple[tuple[str, ...], str]] = {
    "postgres": (("psycopg",), "a PostgreSQL database"),
    "web": (("fastapi", "jinja2", "uvicorn"), "the dashboard and REST API"),
    "federation": (("fastapi", "jinja2", "uvicorn"), "answering other deployments"),
    "celery": (("celery",), "the Celery task server"),
    "prometheus": (("prometheus_client",), "metrics for Prometheus"),
    "otel": (("opentelemetry",), "OpenTelemetry"),
    "holidays": (("holidays",), "public-holiday calendars"),
}


def require(extra: str) -> None:
    """Raise :class:`MissingExtra` unless every package of *extra* is installed.

    >>> require("postgres")
    """
    packages, purpose = EXTRAS[extra]
    if any(find_spec(package) is None for package in packages):
        raise MissingExtra(extra, purpose)
