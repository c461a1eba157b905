"""What people note about a deployment: ``hw.azolla`` of an application."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from headway.domain.azolla.artifacts import (
    BlockerKind,
    BlockerRef,
    CaptureBuffer,
    Objective,
    ObjectiveStatus,
    ObjectiveType,
    PauseReason,
    PauseState,
)
from headway.domain.azolla.entries import (
    ID_LIMIT,
    TEXT_LIMIT,
    TITLE_LIMIT,
    checked_count,
    checked_degree,
    checked_text,
    checked_word,
)
from headway.domain.azolla.filters import MOST_RESULTS, ObjectiveFilter, PauseStateFilter
from headway.domain.names import checked_name
from headway.domain.text import shown
from headway.errors import DefinitionError
from headway.store import captures, events, objectives, substrate
from headway.store.transaction import Transaction
from headway.store.within import Transactions

SHOWN = 200
LEFT: Any = object()


class Azolla:
    """The captures, objectives and pause states of one deployment.

    >>> hw.azolla.objective("clean the staging tables", urgency=3).status  # doctest: +SKIP
    <ObjectiveStatus.NEW: 'NEW'>
    """

    def __init__(self, application: str, store: Transactions) -> None:
        self._application = application
        self._store = store

    @contextmanager
    def _writing(self) -> Iterator[tuple[Transaction, str]]:
        """A transaction, and the id of this deployment, which it has from now on if not before."""
        with self._store.writing() as tx:
            azolla_id = objectives.own_azolla_id(tx)
            if azolla_id is None:
                objectives.ensure_standing(tx, self._application, self._application)
                azolla_id = objectives.own_azolla_id(tx)
            assert azolla_id is not None
            yield tx, azolla_id

    def capture(self, text: str, *, source: str = "operator") -> CaptureBuffer:
        """Leave a note to be sorted later; *source* says where it comes from.

        >>> hw.azolla.capture("orders look too low", source="standup").status  # doctest: +SKIP
        <CaptureStatus.PENDING: 'PENDING'>
        """
        content = checked_text("capture text", text, TEXT_LIMIT, "orders of Monday look too low")
        label = checked_text("capture source", source, TITLE_LIMIT, "standup")
        with self._writing() as (tx, azolla_id):
            one = CaptureBuffer(
                capture_id=_new_id("capture"),
                azolla_id=azolla_id,
                raw_content=content,
                source_label=label,
                created_at=tx.now,
                updated_at=tx.now,
            )
            captures.add(tx, one)
        return one

    def captures(self, *, processed: bool = False, limit: int = SHOWN) -> list[CaptureBuffer]:
        """Notes nobody has dealt with, newest first; with *processed*, the others too.

        >>> len(hw.azolla.captures())  # doctest: +SKIP
        2
        """
        most = checked_count("limit", limit, MOST_RESULTS)
        with self._store.reading() as tx:
            return captures.listed(tx, most, only_pending=not processed)

    def mark_processed(self, *capture_ids: str) -> int:
        """Note that captures are dealt with; returns how many were still pending.

        >>> hw.azolla.mark_processed("capture-3f9a1c2b5d6e")  # doctest: +SKIP
        1
        """
        wanted = [_checked_id("capture", one) for one in capture_ids]
        with self._store.writing() as tx:
            return len(captures.mark_processed(tx, wanted))

    def objective(
        self,
        title: str,
        *,
        objective_id: str | None = None,
        acceptance_criteria: str = "",
        status: str = ObjectiveStatus.NEW,
        importance: int = 0,
        urgency: int = 0,
    ) -> Objective:
        """Add something to be reached; *urgency* and *importance* from 0 to 4, 4 is the most.

        >>> hw.azolla.objective("clean the staging tables", urgency=3).urgency  # doctest: +SKIP
        3
        """
        given = {
            "title": title,
            "status": status,
            "importance": importance,
            "urgency": urgency,
            "acceptance_criteria": acceptance_criteria,
        }
        checked = {name: _checked(name, value) for name, value in given.items()}
        key = _new_id("objective") if objective_id is None else _checked_id("id", objective_id)
        with self._writing() as (tx, azolla_id):
            one = Objective(
                objective_id=key,
                azolla_id=azolla_id,
                objective_type=ObjectiveType.TICKET,
                blocked_reason=None,
                blocked_on=(),
                metadata={},
                created_at=tx.now,
                updated_at=tx.now,
                **checked,
            )
            if not objectives.add(tx, one):
                raise DefinitionError(
                    f"objective id = {shown(key)}: there is one already; leave the id out to get "
                    "a new one"
                )
        return one

    def objectives(self, *, status: str | None = None, limit: int = SHOWN) -> list[Objective]:
        """Objectives with their blockers, those touched last first.

        >>> [one.title for one in hw.azolla.objectives(status="TODO")]  # doctest: +SKIP
        ['clean the staging tables']
        """
        wanted: dict[str, Any] = {"limit": checked_count("limit", limit, MOST_RESULTS)}
        if status is not None:
            wanted["status"] = checked_word("status", status, ObjectiveStatus)
        with self._store.reading() as tx:
            return substrate.objectives(tx, ObjectiveFilter.model_validate(wanted))

    def update(
        self,
        objective_id: str,
        *,
        title: str = LEFT,
        acceptance_criteria: str = LEFT,
        status: str = LEFT,
        importance: int = LEFT,
        urgency: int = LEFT,
        blocked_reason: str | None = LEFT,
        expected: str | None = None,
    ) -> Objective:
        """Change an objective, if it has the version *expected*; what is left out stays.

        Its deadline counts from now on.

        >>> hw.azolla.update("objective-3f9a1c2b5d6e", status="DONE").status  # doctest: +SKIP
        <ObjectiveStatus.DONE: 'DONE'>
        """
        given = {
            "title": title,
            "acceptance_criteria": acceptance_criteria,
            "status": status,
            "importance": importance,
            "urgency": urgency,
            "blocked_reason": blocked_reason,
        }
        values = {key: _checked(key, one) for key, one in given.items() if one is not LEFT}
        if not values:
            raise DefinitionError(
                f"objective {shown(objective_id)}: nothing to change; for example urgency=3"
            )
        with self._store.writing() as tx:
            _check_status(_found(tx, objective_id), values.get("status"))
            objectives.change(tx, objective_id, values, expected)
            return _found(tx, objective_id)

    def block(self, objective_id: str, kind: str, description: str) -> BlockerRef:
        """Note what an objective waits for; it is BLOCKED until that is resolved.

        >>> hw.azolla.block("objective-3f9a1c2b5d6e", "USER_INPUT",
        ...                 "which tables may go?").resolved  # doctest: +SKIP
        False
        """
        example = "which tables may go?"
        one = BlockerRef(
            blocker_id=_new_id("blocker"),
            kind=checked_word("kind", kind, BlockerKind),
            description=checked_text("description", description, TEXT_LIMIT, example),
        )
        with self._store.writing() as tx:
            if not objectives.block(tx, _found(tx, objective_id).objective_id, one):
                raise _no_objective(objective_id)
        return one

    def resolve(self, blocker_id: str) -> None:
        """Note that a blocker is gone; an objective that waits for no other is TODO again.

        >>> hw.azolla.resolve("blocker-3f9a1c2b5d6e")  # doctest: +SKIP
        """
        with self._store.writing() as tx:
            if not objectives.resolve(tx, _checked_id("blocker", blocker_id)):
                raise DefinitionError(
                    f"blocker = {shown(blocker_id)}: there is none of this id; "
                    "`headway azolla objective list` shows them"
                )

    def pause_states(self, *, reason: str | None = None, limit: int = SHOWN) -> list[PauseState]:
        """Why work rests and what to do about it, newest first.

        >>> hw.azolla.pause_states(reason="GATE_FAILED")[0].prioritized_actions  # doctest: +SKIP
        ('look at dead letter 12 of load-users: ValueError: bad row', ...)
        """
        wanted: dict[str, Any] = {"limit": checked_count("limit", limit, MOST_RESULTS)}
        if reason is not None:
            wanted["reason"] = checked_word("reason", reason, PauseReason)
        with self._store.reading() as tx:
            return substrate.pause_states(tx, PauseStateFilter.model_validate(wanted))

    def unpark(self, event_id: str) -> None:
        """Put a parked event back into the line, with all its attempts.

        >>> hw.azolla.unpark("event-3f9a1c2b5d6e")  # doctest: +SKIP
        """
        with self._store.writing() as tx:
            if not events.unpark(tx, checked_name("event", event_id)):
                raise DefinitionError(
                    f"event = {shown(event_id)}: is not parked; `headway azolla events` shows which"
                )


def _checked(field: str, value: object) -> Any:
    if field in ("importance", "urgency"):
        return checked_degree(field, value)
    if field == "status":
        return checked_word(field, value, ObjectiveStatus)
    if field == "title":
        return checked_text(field, value, TITLE_LIMIT, "clean the staging tables")
    if (field == "acceptance_criteria" and value == "") or (
        field == "blocked_reason" and value is None
    ):
        return value
    return checked_text(field, value, TEXT_LIMIT, "no table is older than a week")


def _check_status(objective: Objective, status: ObjectiveStatus | None) -> None:
    standing = objective.objective_type is ObjectiveType.STANDING
    if standing and status not in (None, ObjectiveStatus.IN_PROGRESS):
        raise DefinitionError(
            f"status = {status!s}: the standing objective stays IN_PROGRESS; "
            "for example urgency=3 may be changed"
        )


def _found(tx: Transaction, objective_id: str) -> Objective:
    found = objectives.find(tx, _checked_id("objective", objective_id))
    if found is None:
        raise _no_objective(objective_id)
    return found


def _no_objective(objective_id: str) -> DefinitionError:
    return DefinitionError(
        f"objective = {shown(objective_id)}: there is none of this id; "
        "`headway azolla objective list` shows them"
    )


def _checked_id(kind: str, value: object) -> str:
    name = checked_name(kind, value)
    if len(name) > ID_LIMIT:
        rule = f"must have at most {ID_LIMIT} characters, not {len(name)}"
        raise DefinitionError(f"{kind} = {shown(value)}: {rule}; for example 'clean-staging'")
    return name


def _new_id(kind: str) -> str:
    """Short enough to be typed."""
    return f"{kind}-{uuid4().hex[:12]}"
