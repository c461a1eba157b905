"""The federation: the operator's page, what was asked for, and what people have noted."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from headway.domain.azolla.artifacts import (
    CaptureBuffer,
    CaptureStatus,
    Objective,
    ObjectiveStatus,
    OutputBundle,
    PauseReason,
    PauseState,
    ResponseStatus,
    RunRecord,
    SessionManifest,
)
from headway.domain.azolla.context import Answer, Context, parse_prompt
from headway.domain.azolla.ranking import Matter, ranked
from headway.domain.paging import (
    DEFAULT_LIMIT,
    Page,
    checked_limit,
    microseconds,
    moment_at,
    page_of,
    place_of,
)
from headway.errors import DefinitionError
from headway.store import events, objectives, workorders
from headway.store.engine import Store
from headway.store.events import KnownEvent
from headway.store.reading import azolla
from headway.store.transaction import Transaction
from headway.store.workorders import Judged

Item = TypeVar("Item")


@dataclass(frozen=True)
class Said:
    """What one deployment said when it was asked: how much of what, or why nothing."""

    azolla_id: str
    answered: bool
    status: str
    notes: tuple[str, ...]
    pause_states: int
    objectives: int


@dataclass(frozen=True)
class Session:
    """A request that was carried out: the page, or why there is none, and what it was made from.

    ``context`` is what was seen when the deployments were asked; None if it was deleted since.
    """

    event_id: str | None
    record: RunRecord
    bundle: OutputBundle
    page: SessionManifest | None
    context: Context | None

    @property
    def matters(self) -> list[Matter]:
        """Everything that waits, over all deployments, the most urgent first."""
        return ranked(self.context) if self.context else []

    @property
    def said(self) -> list[Said]:
        """What every deployment said, those that did not answer first."""
        answers = self.context.answers if self.context else ()
        names = sorted({one.azolla_id for one in answers})
        said = [_said(name, [one for one in answers if one.azolla_id == name]) for name in names]
        return sorted(said, key=lambda one: one.answered)


@dataclass(frozen=True)
class Paused:
    """A pause state with its own id."""

    pause_id: str
    state: PauseState


class Azolla:
    """What a deployment knows of itself and of others.

    >>> History(store).azolla.session().page.prioritized_orientation  # doctest: +SKIP
    ('sales: requeue load-orders',)
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def session(self, event_id: str | None = None) -> Session | None:
        """The newest page, or the one of a request; None if there is none yet."""
        with self._store.reading() as tx:
            judged = workorders.newest_judged(tx, event_id)
            return None if judged is None else _session(tx, judged)

    def building(self) -> str | None:
        """The request that is being carried out just now."""
        with self._store.reading() as tx:
            return workorders.open_event(tx)

    def event(self, event_id: str) -> KnownEvent | None:
        """The request of this id."""
        with self._store.reading() as tx:
            return events.find(tx, event_id)

    def events(
        self, cursor: str | None = None, limit: int = DEFAULT_LIMIT, *, parked: bool = False
    ) -> Page[KnownEvent]:
        """Requests and what has become of them, newest first; *parked* ones only, or all."""
        return self._page(
            lambda tx, after, most: azolla.event_page(tx, after, most, parked=parked),
            lambda one: (one.event.created_at, one.event.event_id),
            cursor,
            limit,
        )

    def captures(
        self,
        cursor: str | None = None,
        limit: int = DEFAULT_LIMIT,
        *,
        status: CaptureStatus | None = None,
    ) -> Page[CaptureBuffer]:
        """Notes of people, newest first."""
        return self._page(
            lambda tx, after, most: azolla.capture_page(tx, after, most, status),
            lambda one: (one.created_at, one.capture_id),
            cursor,
            limit,
        )

    def objectives(
        self,
        cursor: str | None = None,
        limit: int = DEFAULT_LIMIT,
        *,
        status: ObjectiveStatus | None = None,
        done: bool = True,
    ) -> Page[Objective]:
        """What is to be reached, touched last first; without those that are *done* if so asked."""
        return self._page(
            lambda tx, after, most: azolla.objective_page(tx, after, most, status, done),
            lambda one: (one.updated_at, one.objective_id),
            cursor,
            limit,
        )

    def objective(self, objective_id: str) -> Objective | None:
        """One objective with its blockers."""
        with self._store.reading() as tx:
            return objectives.find(tx, objective_id)

    def pause_states(
        self,
        cursor: str | None = None,
        limit: int = DEFAULT_LIMIT,
        *,
        reason: PauseReason | None = None,
    ) -> Page[Paused]:
        """Why work rests and what to do about it, newest first."""
        return self._page(
            lambda tx, after, most: [
                Paused(key, state) for state, key in azolla.pause_page(tx, after, most, reason)
            ],
            lambda one: (one.state.created_at, one.pause_id),
            cursor,
            limit,
        )

    def any_parked(self) -> bool:
        """Whether a request has failed too often and waits for a person."""
        with self._store.reading() as tx:
            return azolla.any_parked(tx)

    def _page(
        self,
        read: Callable[[Transaction, azolla.Place | None, int], list[Item]],
        place: Callable[[Item], tuple[datetime, str]],
        cursor: str | None,
        limit: int,
    ) -> Page[Item]:
        found = place_of(cursor, int, str)
        after = None if found is None else (moment_at(int(str(found[0]))), str(found[1]))
        most = checked_limit(limit)
        with self._store.reading() as tx:
            rows = read(tx, after, most + 1)

        def at(one: Item) -> tuple[int, str]:
            moment, key = place(one)
            return microseconds(moment), key

        return page_of(rows, most, at)


def _said(azolla_id: str, answers: list[Answer]) -> Said:
    refused = [one for one in answers if one.status is not ResponseStatus.OK]
    return Said(
        azolla_id,
        answered=len(refused) < len(answers),
        status=str(refused[0].status if refused else ResponseStatus.OK),
        notes=tuple(f"{one.artifact_type}: {one.note or one.status}" for one in refused),
        pause_states=sum(len(one.pause_states()) for one in answers),
        objectives=sum(len(one.objectives()) for one in answers),
    )


def _session(tx: Transaction, judged: Judged) -> Session:
    order = workorders.find(tx, judged.record.work_order_id)
    snapshot = order and workorders.find_snapshot(tx, order.context_snapshot_id)
    try:
        context = parse_prompt(snapshot.full_prompt_text) if snapshot else None
    except (DefinitionError, ValueError):  # of another version
        context = None
    event_id = context.event_id if context else None
    return Session(event_id, judged.record, judged.bundle, judged.page, context)
