"""What a process that runs says of each event: one log line, its level, and no line twice."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from headway.cli.narration import Narrator, configure_logging, tell_dead_letters
from headway.domain.dead_letter import DeadLetter, DeadLetterStatus
from headway.observe import Event

RUN = {"execution_id": 7, "external_id": "load-users"}
TOLD: list[tuple[str, dict[str, Any], str, str]] = [
    ("execution.started", RUN, "INFO", "started     load-users #7"),
    ("execution.completed", RUN, "INFO", "completed   load-users #7"),
    (
        "execution.failed",
        RUN | {"failure": "load: ValueError: no\nrows"},
        "WARNING",
        "failed      load-users #7: load: ValueError: no rows",
    ),
    ("execution.cancelled", RUN, "WARNING", "cancelled   load-users #7"),
    ("execution.handed_back", RUN, "WARNING", "handed back load-users #7"),
    ("execution.refused", RUN, "WARNING", "refused     load-users #7"),
    (
        "execution.stuck",
        RUN,
        "WARNING",
        "stuck       load-users #7 does not stop, and keeps its slot until it does",
    ),
    (
        "execution.stuck",
        {"execution_id": 7, "external_id": None},
        "WARNING",
        "stuck       a job #7 (ad-hoc run) does not stop, and keeps its slot until it does",
    ),
    (
        "manifest.dead_lettered",
        {"external_id": "load-users"},
        "ERROR",
        "dead letter load-users waits for a person",
    ),
    (
        "declaration.applied",
        {"created": 3, "changed": 0, "removed_manifests": 1},
        "INFO",
        "declared    3 created, 1 removed manifests",
    ),
    ("declaration.applied", {"created": 0}, "INFO", "declared    nothing"),
    ("declaration.outdated", {"advice": "go back"}, "WARNING", "outdated    go back"),
    (
        "declaration.kept_back",
        {"count": 4, "advice": "allow it"},
        "WARNING",
        "kept back   4 removals: allow it",
    ),
    ("declaration.waiting", {"advice": "be patient"}, "WARNING", "waiting     be patient"),
    (
        "service.unhealthy",
        {"reasons": ["no lease", "no loop"]},
        "ERROR",
        "unhealthy   no lease; no loop",
    ),
    ("service.healthy", {"seconds": 2.34}, "WARNING", "healthy     again, after 2.3 s"),
    (
        "service.worn_out",
        {},
        "ERROR",
        "worn out    half of the slots are taken by jobs that do not stop; start it again",
    ),
    ("service.database_lost", {"error": "it is gone"}, "ERROR", "unusable    it is gone"),
    (
        "database.waiting",
        {"database": "postgresql://db/x", "reason": "refused"},
        "WARNING",
        "waiting     for the database at postgresql://db/x: refused; "
        "the start goes on when it answers",
    ),
    ("worker.abandoned", {}, "WARNING", "not stopped jobs that ignore being cancelled end here"),
    (
        "queue.stranded",
        {"count": 2, "workflow": "load", "entry_id": 5, "reason": "no field"},
        "WARNING",
        "cannot run  2 queued entries of workflow load, first entry 5: no field; "
        "cancel: headway queue cancel 5",
    ),
    (
        "workflow.unimportable",
        {"reason": "no module"},
        "WARNING",
        "cannot run  every run fails: no module",
    ),
    (
        "loop.failed",
        {"loop": "manager", "error": "OSError: no"},
        "ERROR",
        "trouble     the manager tries again after OSError: no",
    ),
]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[list[tuple[str, str]]]:
    """Level and text of what was told, read at the end of a test."""
    told: list[tuple[str, str]] = []

    class Listening(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append((record.levelname, record.getMessage()))

    listening = Listening()
    with caplog.at_level(logging.INFO, "headway.cli"):
        logging.getLogger("headway.cli").addHandler(listening)
        yield told
        logging.getLogger("headway.cli").removeHandler(listening)


@pytest.mark.parametrize(
    ("name", "fields", "level", "line"), TOLD, ids=[f"{one[0]}-{n}" for n, one in enumerate(TOLD)]
)
def test_each_event_is_one_line(
    lines: list[tuple[str, str]], name: str, fields: dict[str, Any], level: str, line: str
) -> None:
    Narrator()(Event(name, fields))
    assert lines == [(level, line)]


@pytest.mark.parametrize(
    ("end", "how"),
    [
        ("completed", "completed   load-users #7 in "),
        ("failed", "failed      load-users #7 after "),
        ("cancelled", "cancelled   load-users #7 after "),
        ("handed_back", "handed back load-users #7 after "),
    ],
)
def test_an_end_says_how_long_it_took(lines: list[tuple[str, str]], end: str, how: str) -> None:
    narrator = Narrator()
    narrator(Event("execution.started", RUN))
    narrator(Event(f"execution.{end}", RUN | {"external_id": "another name"}))

    _, (_, line) = lines
    assert line.startswith(how) and line.endswith("0.0 s")


def test_other_events_are_not_told(lines: list[tuple[str, str]]) -> None:
    Narrator()(Event("execution.step", RUN))
    assert lines == []


def test_a_trouble_of_all_loops_is_told_once_until_the_service_is_healthy(
    lines: list[tuple[str, str]],
) -> None:
    narrator = Narrator()
    lost = {"error": "connection refused", "database": "postgresql://db/x"}
    for loop in ("manager", "dispatcher", "manager"):
        narrator(Event("loop.failed", lost | {"loop": loop, "error": f"refused to {loop}"}))
    assert lines == [("ERROR", "trouble     the manager tries again after refused to manager")]

    narrator(Event("service.healthy", {"seconds": 1.0}))
    narrator(Event("loop.failed", lost | {"loop": "dispatcher"}))
    assert lines[2:] == [
        ("ERROR", "trouble     the dispatcher tries again after connection refused")
    ]


def test_troubles_of_other_kinds_are_told_each(lines: list[tuple[str, str]]) -> None:
    narrator = Narrator()
    for loop, error in (("manager", "a"), ("manager", "b"), ("worker", "a"), ("manager", "a")):
        narrator(Event("loop.failed", {"loop": loop, "error": error}))
    assert [line.split("the ")[1] for _, line in lines] == [
        "manager tries again after a",
        "manager tries again after b",
        "worker tries again after a",
    ]


def a_letter(number: int) -> DeadLetter:
    at = datetime(2026, 1, 5, 12, tzinfo=UTC)
    status = DeadLetterStatus.AWAITING_INTERVENTION
    return DeadLetter(number, number, f"load-{number}", status, at, "failed once", 1, None, None)


@pytest.mark.parametrize(("count", "more"), [(5, []), (6, ["and 1 more"])])
def test_the_first_five_dead_letters_are_told_by_name(
    lines: list[tuple[str, str]], count: int, more: list[str]
) -> None:
    tell_dead_letters([a_letter(number) for number in range(count)])
    since = f"{datetime(2026, 1, 5, 12, tzinfo=UTC).astimezone():%Y-%m-%d %H:%M:%S %Z}"
    named = [f"load-{n} waits for a person since {since}: failed once" for n in range(5)]
    assert lines == [("WARNING", f"dead letter {text}") for text in [*named, *more]]


@pytest.fixture
def logged(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[[], list[str]]]:
    """The lines on stderr; afterwards logging is as it was."""
    root, own = logging.getLogger(), logging.getLogger("headway")
    levels, handlers, hook = (root.level, own.level), root.handlers[:], threading.excepthook
    yield lambda: capsys.readouterr().err.splitlines()
    root.handlers[:], threading.excepthook = handlers, hook
    root.setLevel(levels[0])
    own.setLevel(levels[1])


@pytest.mark.parametrize(
    ("quiet", "verbose", "told"),
    [
        (False, False, ["headway WARNING", "headway INFO", "other WARNING", "other INFO"]),
        (True, False, ["headway WARNING", "other WARNING"]),
        (
            False,
            True,
            ["headway WARNING", "headway INFO", "headway DEBUG", "other WARNING", "other INFO"],
        ),
    ],
)
def test_how_much_is_logged(
    logged: Callable[[], list[str]], quiet: bool, verbose: bool, told: list[str]
) -> None:
    configure_logging(quiet=quiet, verbose=verbose)
    for name in ("headway", "other"):
        for level in (logging.WARNING, logging.INFO, logging.DEBUG):
            logging.getLogger(name).log(level, "%s %s", name, logging.getLevelName(level))

    lines = logged()
    assert [line.split(None, 3)[3] for line in lines] == told
    assert lines[0].split()[2:] == ["WARNING", "headway", "WARNING"]


def test_one_of_several_processes_says_which(
    logged: Callable[[], list[str]],
) -> None:
    configure_logging(quiet=False, verbose=False, several=True)
    record = logging.LogRecord("headway.cli", logging.INFO, "", 0, "up\x1b[31m", (), None)
    record.process = 4711
    logging.getLogger().handle(record)
    date, time, *rest = logged()[0].split()
    assert datetime.fromisoformat(f"{date} {time}")
    assert rest == ["4711", "INFO", r"up\x1b[31m"]


def test_what_the_narrator_tells_the_library_does_not_say_again(
    logged: Callable[[], list[str]],
) -> None:
    configure_logging(quiet=False, verbose=True)
    library = logging.getLogger("headway")
    for name in ("execution.failed", "loop.failed", "declaration.outdated", "execution.other"):
        library.warning("%s execution_id=7", name)
    logging.getLogger("headway.cli").warning("%s by the narrator", "execution.failed")
    try:
        raise ValueError("my subscriber")
    except ValueError:
        library.exception("%s is also told where a subscriber fails", "execution.failed")

    lines = logged()
    told = [line.split()[3] for line in lines if " WARNING " in line]
    assert told == ["execution.other", "execution.failed"]
    assert lines[-1] == "ValueError: my subscriber"


def test_a_thread_that_fails_is_one_line(
    logged: Callable[[], list[str]],
) -> None:
    configure_logging(quiet=False, verbose=False)

    def fail() -> None:
        raise ValueError("no rows\nin it")

    thread = threading.Thread(target=fail, name="counting")
    thread.start()
    thread.join()
    [line] = logged()
    assert line.endswith(" ERROR   trouble     counting ended: no rows")
