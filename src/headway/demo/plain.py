"""The demo without a terminal: one line for everything that happens, when it happens."""

import time
from collections.abc import Mapping
from typing import Self

from rich.console import Console

from headway.definition.app import Headway
from headway.domain.text import for_terminal
from headway.observe import Event

VERBS = {
    "execution.started": "started",
    "execution.completed": "completed",
    "execution.failed": "failed",
    "execution.cancelled": "cancelled",
    "execution.handed_back": "handed back",
    "manifest.dead_lettered": "dead letter",
}


class Plain:
    """Prints the events of *app* as lines.

    >>> with Plain(Console(), app) as lines:  # doctest: +SKIP
    ...     lines.say("stopping")
    """

    def __init__(self, console: Console, app: Headway) -> None:
        self._console = console
        self._app = app
        self._began = time.monotonic()
        self._groups = {one.external_id: one.group.name for one in app.declaration().manifests}

    def __enter__(self) -> Self:
        """Begin to print."""
        self._app.observer.subscribe(self._tell)
        self.say("a small ETL on SQLite; Ctrl-C ends")
        return self

    def __exit__(self, *details: object) -> None:
        """Nothing to give back."""

    def refresh(self) -> None:
        """Lines come by themselves."""

    def announce(self, line: str) -> None:
        """Print where the dashboard is."""
        if line:
            self.say(line)

    def say(self, remark: str) -> None:
        """Print *remark* as a line."""
        # One write per line: jobs end in several threads.
        line = f"{time.monotonic() - self._began:6.1f} s  {for_terminal(remark, 300)}"
        self._console.print(line, soft_wrap=True)

    def _tell(self, event: Event) -> None:
        verb = VERBS.get(event.name)
        if verb is not None:
            self.say(f"{verb:<12}{self._subject(event.fields)}")

    def _subject(self, fields: Mapping[str, object]) -> str:
        external_id = str(fields.get("external_id") or f"#{fields.get('execution_id')}")
        group = self._groups.get(external_id, "")
        failure = fields.get("failure")
        return f"{external_id:<18}{group:<11}{failure or ''}".rstrip().replace("\n", " ")
