"""What a check is, what it is given, and what comes of it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from headway.config import Settings
from headway.store.transaction import Transaction

# So that rows somebody writes anew as fast as they are put right do not keep the doctor for ever.
MOST_PAGES = 1000


class Severity(StrEnum):
    """How bad it is: a broken promise, something that will become one, or advice."""

    ERROR = "error"
    WARNING = "warning"
    HINT = "hint"


@dataclass(frozen=True)
class Look:
    """What every check may use: a transaction, the settings, the lease, and this machine's clock.

    ``tell`` is told how far a check has come that takes a while.
    """

    tx: Transaction
    settings: Settings
    lease: timedelta
    machine_clock: Callable[[], datetime]
    tell: Callable[[str], None] = lambda progress: None

    def ago(self, span: timedelta) -> datetime:
        """So long before now, by the database's clock."""
        return self.tx.now - span


class Patient(Protocol):
    """The database as repairs work on it: each opens short transactions of its own."""

    def reading(self) -> AbstractContextManager[Look]:
        """A look that changes nothing."""

    def writing(self) -> AbstractContextManager[Look]:
        """A look that commits what it changed."""


Find = Callable[[Look], list[str]]
Repair = Callable[[Patient], int]


@dataclass(frozen=True)
class Check:
    """One thing that must not be.

    ``find`` names the rows for a person, ``repair`` returns how many it put right. What may be in
    motion on a busy deployment counts only if it is seen ``twice``, a few seconds apart. What only
    an application's own settings can tell is looked at only if they are known (``by_settings``).
    """

    name: str
    severity: Severity
    sentence: str
    fix: str
    find: Find
    repair: Repair | None = None
    twice: bool = False
    by_settings: bool = False


def page_by_page(repair_page: Callable[[Look], int]) -> Repair:
    """A repair that puts a page right in each transaction, until nothing is left to put right."""

    def repair(patient: Patient) -> int:
        total = 0
        for _ in range(MOST_PAGES):
            with patient.writing() as look:
                done = repair_page(look)
            total += done
            if not done:
                break
        return total

    return repair


@dataclass(frozen=True)
class Finding:
    """What one check found: the rows, a sentence about them, and what puts them right.

    >>> Finding("orphans", Severity.ERROR, "These runs are nobody's.", ("execution 7",), "…").count
    1
    """

    check: str
    severity: Severity
    sentence: str
    rows: tuple[str, ...]
    fix: str
    repairable: bool = False

    @property
    def count(self) -> int:
        """How many rows were found; a check counts up to a thousand."""
        return len(self.rows)
