"""Hints on SQLite, which has no notifications: who writes to a file tells who works on it here.

Other processes on the same file find it by polling.
"""

from collections.abc import Callable
from pathlib import Path

from sqlalchemy import URL

Listener = Callable[[str], None]

_HUNG: dict[Path, tuple[Listener, ...]] = {}


def hang(url: URL, listener: Listener) -> Callable[[], None]:
    """Call *listener* with every topic told of this file; returns what ends that.

    >>> heard = []
    >>> from sqlalchemy import make_url
    >>> end = hang(make_url("sqlite:///headway.db"), heard.append)
    >>> ring(make_url("sqlite:///headway.db"), "dispatcher"); end()
    >>> ring(make_url("sqlite:///headway.db"), "manager")
    >>> heard
    ['dispatcher']
    """
    file = _file(url)
    _HUNG[file] = (*_HUNG.get(file, ()), listener)

    def take_down() -> None:
        left = tuple(one for one in _HUNG.get(file, ()) if one is not listener)
        _HUNG.pop(file, None)
        if left:
            _HUNG[file] = left

    return take_down


def ring(url: URL, topic: str) -> None:
    """Tell everybody who works on this file in this process."""
    for listener in _HUNG.get(_file(url), ()):
        listener(topic)


def _file(url: URL) -> Path:
    return Path(url.database or "").absolute()
