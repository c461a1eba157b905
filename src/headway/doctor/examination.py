"""Going through the checks: look, look again at what may be in motion, repair what is asked for."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from headway.config import Settings
from headway.doctor.checks import CHECKS
from headway.doctor.findings import Check, Finding, Look, Severity
from headway.domain.progress import Progress, unseen
from headway.lease import lease_of
from headway.store.engine import Store
from headway.store.examining_database import NOT_ANSWERED, first_line, missing_tables
from headway.store.migrate import current_version, needed_version
from headway.store.transaction import Transaction

# Longer than a sweep of orphans, so that whatever the deployment sees to itself is seen to.
SECOND_LOOK = 3.0
# One repair may bring up what another mends: a buried server leaves orphans.
ROUNDS = 3

SCHEMA = "schema"
WRONG_SCHEMA = "The schema is not the one this version of headway works with."
PARTS_MISSING = "Parts of the schema are missing, which somebody has dropped."
RESTORE = "restore them from a backup"
MIGRATE = "headway db migrate, or run the headway the database belongs to"


@dataclass(frozen=True)
class Report:
    """What was found, how many rows of each check were repaired, and what was not looked at."""

    findings: tuple[Finding, ...] = ()
    repaired: Mapping[str, int] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool:
        """Whether nothing was found but hints.

        >>> Report().healthy
        True
        """
        return all(one.severity is Severity.HINT for one in self.findings)


class Doctor:
    """Examines one database.

    Without an application its *settings* are not known, and what they decide is not looked at.

    >>> Doctor(store, settings).examine().healthy  # doctest: +SKIP
    True
    """

    def __init__(
        self,
        store: Store,
        settings: Settings | None = None,
        *,
        checks: Sequence[Check] = CHECKS,
        machine_clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        wait: Callable[[float], None] = time.sleep,
        tell: Callable[[str], None] = lambda progress: None,
        progress: Progress = unseen,
    ) -> None:
        self._store = store
        self._settings = settings or Settings()
        self._checks = [one for one in checks if settings is not None or not one.by_settings]
        self._skipped = tuple(one.name for one in checks if one not in self._checks)
        self._machine_clock = machine_clock
        self._wait = wait
        self._tell = tell
        self._progress = progress

    def examine(self, *, fix: bool = False) -> Report:
        """Go through every check; with *fix*, repair what can be repaired and look again."""
        if wrong := self._schema():
            return Report((wrong,), skipped=self._skipped)
        found, repaired = self._findings(), Counter[str]()
        for _ in range(ROUNDS if fix else 0):
            done = self._repaired(found)
            if not done:
                break
            repaired += done
            found = self._findings()
        return Report(found, repaired, self._skipped)

    def _schema(self) -> Finding | None:
        """What has to be right before anything else can be asked."""
        needed = needed_version(self._store)
        with self._store.reading() as tx:
            found = current_version(tx)
            missing = missing_tables(tx) if found == needed else []
        if found != needed:
            rows = (f"version {found or 'none'}, needed {needed}",)
            return Finding(SCHEMA, Severity.ERROR, WRONG_SCHEMA, rows, MIGRATE)
        if missing:
            return Finding(SCHEMA, Severity.ERROR, PARTS_MISSING, tuple(missing), RESTORE)
        return None

    def _findings(self) -> tuple[Finding, ...]:
        found: dict[str, list[str]] = {}
        for number, one in enumerate(self._checks, 1):
            found[one.name] = self._look(one)
            self._progress(number, len(self._checks))
        in_motion = [one for one in self._checks if one.twice and found[one.name]]
        if in_motion:
            self._wait(SECOND_LOOK)
        for one in in_motion:
            seen = {_subject(row) for row in found[one.name]}
            found[one.name] = [row for row in self._look(one) if _subject(row) in seen]
        return tuple(_finding(one, found[one.name]) for one in self._checks if found[one.name])

    def _look(self, check: Check) -> list[str]:
        with self.reading() as look:
            try:
                return check.find(look)
            except NOT_ANSWERED as error:
                return [f"could not be looked at: {first_line(error)}"]

    def _repaired(self, found: Sequence[Finding]) -> Counter[str]:
        names = {one.check for one in found}
        repairs = {one.name: one.repair for one in self._checks if one.repair and one.name in names}
        return +Counter({name: repair(self) for name, repair in repairs.items()})

    @contextmanager
    def reading(self) -> Iterator[Look]:
        """A look that changes nothing, at one moment: nothing is seen half done."""
        with self._store.picturing() as tx:
            yield self._at(tx)

    @contextmanager
    def writing(self) -> Iterator[Look]:
        """A look that commits what it changed."""
        with self._store.writing() as tx:
            yield self._at(tx)

    def _at(self, tx: Transaction) -> Look:
        lease = lease_of(self._store, self._settings.server_lease)
        return Look(tx, self._settings, lease, self._machine_clock, self._tell)


def _subject(row: str) -> str:
    """What a row is about, without what is said of it."""
    return row.partition(": ")[0]


def _finding(check: Check, rows: Sequence[str]) -> Finding:
    repairable = check.repair is not None
    return Finding(check.name, check.severity, check.sentence, tuple(rows), check.fix, repairable)
