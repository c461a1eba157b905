"""Every statement this process sends, by the thread that sends it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, event


@contextmanager
def sent_statements() -> Iterator[list[tuple[str, str]]]:
    """Thread and text of each, in their order, for as long as the block lasts."""
    sent: list[tuple[str, str]] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if not statement.startswith("BEGIN"):  # PostgreSQL's driver sends its own unseen
            sent.append((threading.current_thread().name, statement))

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(Engine, "before_cursor_execute", note)
