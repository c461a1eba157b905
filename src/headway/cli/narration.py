"""What happens, as log lines for people. Only the command configures logging, never the library."""

import logging
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from headway.cli.terminal import LINE_LIMIT, first_line, plain
from headway.domain.dead_letter import DeadLetter
from headway.domain.text import TRACEBACK_LIMIT, for_terminal
from headway.observe import Event

logger = logging.getLogger("headway.cli")

ENDS = {
    "execution.completed": (logging.INFO, "completed", "in"),
    "execution.failed": (logging.WARNING, "failed", "after"),
    "execution.cancelled": (logging.WARNING, "cancelled", "after"),
    "execution.handed_back": (logging.WARNING, "handed back", "after"),
    "execution.refused": (logging.WARNING, "refused", "after"),
}
ADVICE = {
    "declaration.outdated": "outdated",
    "declaration.kept_back": "kept back",
    "declaration.waiting": "waiting",
}
CONDITIONS: dict[str, tuple[int, str, Callable[[dict[str, Any]], str]]] = {
    "service.unhealthy": (logging.ERROR, "unhealthy", lambda told: "; ".join(told["reasons"])),
    "service.healthy": (
        logging.WARNING,
        "healthy",
        lambda told: f"again, after {told['seconds']:.1f} s",
    ),
    "service.worn_out": (
        logging.ERROR,
        "worn out",
        lambda told: "half of the slots are taken by jobs that do not stop; start it again",
    ),
    "service.database_lost": (logging.ERROR, "unusable", lambda told: told["error"]),
    "database.waiting": (
        logging.WARNING,
        "waiting",
        lambda told: (
            f"for the database at {told['database']}: {told['reason']}; "
            "the start goes on when it answers"
        ),
    ),
    "execution.stuck": (
        logging.WARNING,
        "stuck",
        lambda told: f"{_label(told)} does not stop, and keeps its slot until it does",
    ),
    "worker.abandoned": (
        logging.WARNING,
        "not stopped",
        lambda told: "jobs that ignore being cancelled end here",
    ),
    "queue.stranded": (
        logging.WARNING,
        "cannot run",
        lambda told: (
            f"{told['count']} queued entries of workflow {told['workflow']}, first entry "
            f"{told['entry_id']}: {told['reason']}; cancel: headway queue cancel {told['entry_id']}"
        ),
    ),
    "workflow.unimportable": (
        logging.WARNING,
        "cannot run",
        lambda told: f"every run fails: {told['reason']}",
    ),
    "azolla.failed": (
        logging.WARNING,
        "no page",
        lambda told: f"a requested manifest failed in {told['step']}: {told['error']}",
    ),
    "azolla.parked": (
        logging.ERROR,
        "put aside",
        lambda told: (
            f"request {told['event']} after {told['attempts']} attempts: {told['error']}; "
            "put it back with headway azolla unpark"
        ),
    ),
}
TOLD = (
    *ENDS,
    *ADVICE,
    "execution.started",
    "manifest.dead_lettered",
    "declaration.applied",
    *CONDITIONS,
    "loop.failed",
)
LETTERS_TOLD = 5
SAME_TROUBLE = 60.0


class Narrator:
    """A subscriber that tells every event a person cares about in one log line.

    >>> narrator = Narrator()
    >>> narrator(Event("execution.started", {"execution_id": 7, "external_id": "load-users"}))
    >>> narrator.running
    1
    """

    def __init__(self) -> None:
        self._started: dict[int, tuple[str, float]] = {}
        self._troubles: dict[object, float] = {}
        self._telling = threading.Lock()  # several loops fail at the same moment

    @property
    def running(self) -> int:
        """How many jobs this process is running."""
        return len(self._started)

    def __call__(self, event: Event) -> None:
        """Tell *event*."""
        fields = event.fields
        if event.name == "execution.started":
            self._start(fields)
        elif event.name in ENDS:
            self._end(event.name, fields)
        elif event.name == "manifest.dead_lettered":
            _log(logging.ERROR, "dead letter", f"{fields['external_id']} waits for a person")
        elif event.name == "declaration.applied":
            told = {what.replace("_", " "): count for what, count in fields.items() if count}
            changes = ", ".join(f"{count} {what}" for what, count in told.items())
            _log(logging.INFO, "declared", changes or "nothing")
        elif event.name in ADVICE:
            number = f"{fields['count']} removals: " if "count" in fields else ""
            _log(logging.WARNING, ADVICE[event.name], f"{number}{fields['advice']}")
        elif event.name in CONDITIONS:
            if event.name == "service.healthy":
                self._troubles.clear()
            level, verb, sentence = CONDITIONS[event.name]
            _log(level, verb, sentence(fields))
        elif event.name == "loop.failed":
            with self._telling:
                self._trouble(fields)

    def _start(self, fields: dict[str, Any]) -> None:
        label = _label(fields)
        self._started[fields["execution_id"]] = (label, time.monotonic())
        _log(logging.INFO, "started", label)

    def _trouble(self, fields: dict[str, Any]) -> None:
        """Tell a trouble once, until it has not come for a minute.

        All loops suffer of the same database, and that is one trouble.
        """
        trouble = fields.get("database") or (fields["loop"], fields["error"])
        now = time.monotonic()
        self._troubles = {one: at for one, at in self._troubles.items() if now - at < SAME_TROUBLE}
        if trouble not in self._troubles:
            again = f"the {fields['loop']} tries again after {fields['error']}"
            _log(logging.ERROR, "trouble", again)
        self._troubles[trouble] = now

    def _end(self, name: str, fields: dict[str, Any]) -> None:
        level, verb, preposition = ENDS[name]
        number = fields["execution_id"]
        unseen = (_label(fields), None)
        label, began = self._started.pop(number, unseen)
        if began is not None:
            label += f" {preposition} {time.monotonic() - began:.1f} s"
        failure = fields.get("failure")
        _log(level, verb, f"{label}: {failure}" if failure else label)


def tell_dead_letters(letters: Sequence[DeadLetter]) -> None:
    """Warn of manifests that wait for a person already, the first few by name.

    >>> tell_dead_letters(History(store).dead_letters.awaiting())  # doctest: +SKIP
    """
    for letter in letters[:LETTERS_TOLD]:
        since = f"{letter.dead_lettered_at.astimezone():%Y-%m-%d %H:%M:%S %Z}"
        told = f"{letter.external_id} waits for a person since {since}: {letter.reason}"
        _log(logging.WARNING, "dead letter", told)
    if len(letters) > LETTERS_TOLD:
        _log(logging.WARNING, "dead letter", f"and {len(letters) - LETTERS_TOLD} more")


def silence_abandoned_jobs() -> None:
    """What ``worker.abandoned`` tells in one line, asyncio would tell of each task once more.

    >>> silence_abandoned_jobs()  # doctest: +SKIP
    """
    logging.getLogger("asyncio").addFilter(
        lambda record: not str(record.msg).startswith("Task was destroyed")
    )


def configure_logging(*, quiet: bool, verbose: bool, several: bool = False) -> None:
    """Send log lines to stderr: warnings only if *quiet*, headway's every event if *verbose*.

    One of *several* processes says which by its id.

    >>> configure_logging(quiet=False, verbose=True)  # doctest: +SKIP
    """
    handler = logging.StreamHandler(sys.stderr)
    process = "%(process)d " if several else ""
    handler.setFormatter(_Printable(f"%(asctime)s {process}%(levelname)-7s %(message)s"))
    handler.addFilter(_not_told_already)
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.WARNING if quiet else logging.INFO)
    if verbose:
        logging.getLogger("headway").setLevel(logging.DEBUG)
    threading.excepthook = _log_failed_thread


class _Printable(logging.Formatter):
    default_msec_format = None

    def format(self, record: logging.LogRecord) -> str:
        return for_terminal(super().format(record), TRACEBACK_LIMIT)


def _not_told_already(record: logging.LogRecord) -> bool:
    """The library logs some events itself; those the narrator tells need not come twice."""
    arguments = record.args if isinstance(record.args, tuple) else ()
    is_event = record.name == "headway" and not record.exc_info and bool(arguments)
    return not (is_event and arguments[0] in TOLD)


def _label(fields: dict[str, Any]) -> str:
    """A run by its manifest; one without a manifest by its workflow and its entry, if known."""
    name, number = fields.get("external_id"), fields["execution_id"]
    if name:
        return f"{name} #{number}"
    entry = f" of entry {fields['entry_id']}" if "entry_id" in fields else ""
    return f"{fields.get('workflow') or 'a job'} #{number} (ad-hoc run{entry})"


def _log(level: int, verb: str, text: str) -> None:
    logger.log(level, "%-11s %s", verb, plain(text, LINE_LIMIT))


def _log_failed_thread(failed: threading.ExceptHookArgs) -> None:
    if failed.exc_value is not None:
        name = failed.thread.name if failed.thread else "a thread"
        logger.error("%-11s %s ended: %s", "trouble", name, first_line(failed.exc_value))
