"""Span ids that are known beforehand, on tracers that would make them up."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry.trace import Tracer


class GivenIds:
    """An id generator that hands out the ids it is given, and else asks the usual one."""

    def __init__(self, usual: Any) -> None:
        self._usual = usual
        self._given = threading.local()

    @classmethod
    def on(cls, tracer: Tracer) -> "GivenIds":
        """The ids of *tracer*, which is headway's own; one that makes up none ignores them."""
        current = getattr(tracer, "id_generator", None)
        if isinstance(current, cls):
            return current
        ids = cls(current)
        if current is not None:
            tracer.id_generator = ids  # type: ignore[attr-defined]
        return ids

    @contextmanager
    def given(self, trace_id: int, span_id: int) -> Iterator[None]:
        """The span started in this block, in this thread, has these ids."""
        self._given.ids = (trace_id, span_id)
        try:
            yield
        finally:
            self._given.ids = None

    def generate_trace_id(self) -> int:
        """Called by the SDK for a span without a parent."""
        ids = getattr(self._given, "ids", None)
        return int(ids[0] if ids else self._usual.generate_trace_id())

    def generate_span_id(self) -> int:
        """Called by the SDK for every span."""
        ids = getattr(self._given, "ids", None)
        return int(ids[1] if ids else self._usual.generate_span_id())

    def __getattr__(self, name: str) -> Any:
        """Whatever else a version of the SDK asks an id generator for."""
        return getattr(self._usual, name)
