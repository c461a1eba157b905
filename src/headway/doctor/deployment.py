"""Checks of the servers, their clocks and settings, and of what retention leaves."""

from datetime import timedelta

from headway.doctor.findings import Check, Look, Patient, Severity, page_by_page
from headway.store import examining_database as database
from headway.store import examining_definitions as definitions
from headway.store import retention

MOST_SKEW = timedelta(seconds=1)
BATCH = 1000


def _grace(look: Look) -> timedelta:
    """How long the others have to bury a dead server: one lease unbroken, and a sweep."""
    return look.lease * 2


def _different_leases(look: Look) -> list[str]:
    leases = definitions.published_leases(look.tx)
    if len(set(leases.values())) < 2:
        return []
    return [f"server {key}: {span.total_seconds():g} s" for key, span in sorted(leases.items())]


def _skew(look: Look) -> list[str]:
    before = look.machine_clock()
    theirs = database.clock_of(look.tx)
    after = look.machine_clock()
    ahead = theirs - (before + (after - before) / 2)
    if abs(ahead) <= MOST_SKEW + (after - before):
        return []
    direction = "behind" if ahead > timedelta(0) else "ahead of"
    return [f"this machine is {abs(ahead).total_seconds():.1f} s {direction} the database"]


def _overdue(look: Look) -> list[str]:
    """What two clean-ups in a row have left."""
    settings = look.settings
    late = settings.retention_period + 2 * settings.cleanup_interval
    return definitions.overdue_for_retention(look.tx, look.ago(late))


def _delete_overdue(patient: Patient) -> int:
    place, deleted = None, 0
    while True:
        with patient.writing() as look:
            before = look.ago(look.settings.retention_period)
            page = retention.delete_finished(look.tx, before, BATCH, place)
        deleted, place = deleted + page.deleted, page.next_place
        if place is None:
            return deleted


UNBURIED = Check(
    "unburied-servers",
    Severity.ERROR,
    "The lease of these servers ended long ago, and nobody has buried them.",
    "they are buried; what they ran is then an orphan",
    find=lambda look: definitions.unburied(look.tx, _grace(look)),
    repair=page_by_page(lambda look: definitions.bury_all(look.tx, _grace(look))),
    twice=True,
)
DIFFERENT_LEASES = Check(
    "different-leases",
    Severity.WARNING,
    "Servers run with different leases, so that one may bury another too soon.",
    "set server_lease to the same on all servers",
    find=_different_leases,
)
CLOCK_SKEW = Check(
    "clock-skew",
    Severity.WARNING,
    "This machine's clock differs from the database's; headway goes by the database's, but logs "
    "and jobs go by the machine's.",
    "synchronise the clocks (NTP)",
    find=_skew,
)
RETENTION_BEHIND = Check(
    "retention-behind",
    Severity.WARNING,
    "Finished executions are older than retention_period allows: nobody has cleaned up.",
    "they are deleted; run a server with the manager role",
    find=_overdue,
    repair=_delete_overdue,
    by_settings=True,
)
