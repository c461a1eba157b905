"""Steps that another process does not find under their names, as two common mistakes make them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from tests.runner.isolated_jobs import Place

registered: dict[str, Callable[[Place], None]] = {}
"""The functions that a decorator saw, which need not be those the module has in the end."""


def register(function: Callable[[Place], None]) -> Callable[[Place], None]:
    """Stand for ``@hw.workflow(isolated=True)``."""
    registered.setdefault(function.__name__, function)
    return function


def counted(function: Callable[[Place], None]) -> Callable[[Place], None]:
    """A decorator that puts another function in the place of its own."""

    @wraps(function)
    def call(place: Place) -> None:
        function(place)

    return call


@register
def load(place: Place) -> None:
    place.note("first")


@register  # type: ignore[no-redef]
def load(place: Place) -> None:  # noqa: F811
    place.note("second")


@counted
@register
def extract(place: Place) -> None:
    place.note("extracted")


@register
@counted
def found(place: Place) -> None:
    place.note("found")
