"""What may be read of a deployment: which artifacts fit, in which order, and how much of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from headway.domain.azolla import ids
from headway.domain.azolla.artifacts import (
    BlockerKind,
    BlockerRef,
    Objective,
    ObjectiveStatus,
    ObjectiveType,
    PauseReason,
    PauseState,
)
from headway.domain.azolla.entries import standing
from headway.domain.azolla.filters import (
    BlockerRefFilter,
    Filter,
    ObjectiveFilter,
    PauseStateFilter,
)
from headway.store import objectives, pause_states, resolution, substrate
from headway.store.engine import Store
from headway.store.tables import dead_letter
from tests.store.factories import NOON, Clock, dead_letter_for, declare, rows_of

MINUTE = timedelta(minutes=1)


def a_pause(objective_id: str, minutes: int, **changes: Any) -> PauseState:
    fields: dict[str, Any] = {
        "objective_id": objective_id,
        "azolla_id": "warehouse",
        "reason": PauseReason.GATE_FAILED,
        "prioritized_actions": ("look at it", "mend it"),
        "created_at": NOON + minutes * MINUTE,
    }
    return PauseState(**fields | changes)


def a_ticket(objective_id: str, minutes: int, **changes: Any) -> Objective:
    fields = {
        "objective_id": objective_id,
        "objective_type": ObjectiveType.TICKET,
        "status": ObjectiveStatus.TODO,
        "updated_at": NOON + minutes * MINUTE,
    }
    return standing("warehouse", "clean the tables", NOON).model_copy(update=fields | changes)


def write(store: Store, *pauses: tuple[str, PauseState]) -> None:
    with store.writing() as tx:
        pause_states.add(tx, pauses)


def read(store: Store, wanted: Filter, **options: Any) -> list[Any]:
    with store.reading() as tx:
        return list(substrate.read(tx, wanted, **options))


def objectives_of(store: Store, **wanted: Any) -> list[str]:
    return [one.objective_id for one in read(store, ObjectiveFilter(**wanted))]


def test_pause_states_are_filtered_newest_first(store: Store) -> None:
    pauses = [
        ("p1", a_pause("a", 1)),
        ("p2", a_pause("b", 2, reason=PauseReason.RUN_COMPLETE)),
        ("p3", a_pause("b", 2)),
    ]
    write(store, *pauses)
    newest = [pauses[place][1] for place in (2, 1, 0)]
    assert read(store, PauseStateFilter()) == newest
    assert read(store, PauseStateFilter(limit=2)) == newest[:2]
    assert read(store, PauseStateFilter(objective_id=("a",))) == newest[2:]
    assert read(store, PauseStateFilter(reason=(PauseReason.RUN_COMPLETE,))) == newest[1:2]
    assert read(store, PauseStateFilter(created_after=NOON + MINUTE)) == newest[:2]
    assert read(store, PauseStateFilter(created_after=NOON + 2 * MINUTE)) == []


def test_unsettled_leaves_out_pages_letters_that_were_resolved_and_tickets_touched_since(
    store: Store, clock: Clock
) -> None:
    declare(store, "waiting", "resolved")
    for name in ("waiting", "resolved"):
        dead_letter_for(store, name)
    waiting, resolved = (row["id"] for row in rows_of(store, dead_letter))
    with store.writing() as tx:
        resolution.acknowledge(tx, [resolved], None)
        for one in (a_ticket("touched", 5), a_ticket("untouched", 1)):
            objectives.add(tx, one)
        objectives.ensure_standing(tx, "warehouse", "warehouse")
        objectives.change(tx, "standing", {"urgency": 1})
    pauses = {
        ids.pause_of_letter(waiting): a_pause("standing", -5),
        ids.pause_of_letter(resolved): a_pause("standing", -6),
        f"{ids.PAGE}-1": a_pause("standing", 3),
        "touched": a_pause("touched", 3),
        "untouched": a_pause("untouched", 3),
        "standing": a_pause("standing", -4),
    }
    write(store, *pauses.items())
    assert len(read(store, PauseStateFilter())) == 6
    assert read(store, PauseStateFilter(unsettled=True)) == [
        pauses["untouched"],
        pauses["standing"],
        pauses[ids.pause_of_letter(waiting)],
    ]


def test_objectives_are_filtered_touched_last_first(store: Store) -> None:
    with store.writing() as tx:
        for one in (
            a_ticket("a", 1, urgency=3, importance=1),
            a_ticket("b", 2, urgency=1, importance=3, status=ObjectiveStatus.NEW),
            a_ticket("c", 2, urgency=4, importance=4),
        ):
            objectives.add(tx, one)
        objectives.ensure_standing(tx, "warehouse", "warehouse")
    assert objectives_of(store) == ["c", "b", "a", "standing"]
    assert objectives_of(store, limit=1) == ["c"]
    assert objectives_of(store, objective_id=("a", "standing")) == ["a", "standing"]
    assert objectives_of(store, status=(ObjectiveStatus.NEW,)) == ["b"]
    assert objectives_of(store, objective_type=(ObjectiveType.STANDING,)) == ["standing"]
    assert objectives_of(store, min_urgency=3) == ["c", "a"]
    assert objectives_of(store, min_importance=3) == ["c", "b"]
    assert objectives_of(store, updated_after=NOON + MINUTE) == ["c", "b"]
    assert read(store, ObjectiveFilter(objective_id=("a",))) == [
        a_ticket("a", 1, urgency=3, importance=1)
    ]


def test_blockers_are_filtered_and_come_with_their_objective(store: Store) -> None:
    blockers = [
        BlockerRef(blocker_id="b2", kind=BlockerKind.USER_INPUT, description="which?"),
        BlockerRef(blocker_id="b1", kind=BlockerKind.EXTERNAL_SYSTEM, description="away"),
    ]
    with store.writing() as tx:
        objectives.add(tx, a_ticket("a", 1))
        for one in blockers:
            objectives.block(tx, "a", one)
        objectives.resolve(tx, "b1")
    b2, b1 = blockers[0], blockers[1].model_copy(update={"resolved": True})
    assert read(store, BlockerRefFilter()) == [b1, b2]
    assert read(store, BlockerRefFilter(limit=1)) == [b1]
    assert read(store, BlockerRefFilter(blocker_id=("b2",))) == [b2]
    assert read(store, BlockerRefFilter(kind=(BlockerKind.EXTERNAL_SYSTEM,))) == [b1]
    assert read(store, BlockerRefFilter(resolved=True)) == [b1]
    assert read(store, BlockerRefFilter(resolved=False)) == [b2]
    [objective] = read(store, ObjectiveFilter())
    assert objective.blocked_on == (b2, b1), "in the order in which they came"


def test_what_has_more_bytes_than_may_be_read_is_refused(store: Store) -> None:
    write(store, *((f"p{number}", a_pause("a", number)) for number in range(25)))
    assert len(read(store, PauseStateFilter(), most_bytes=10_000)) == 25
    with pytest.raises(substrate.TooMuch, match=r"^more than 1000 bytes of text$"):
        read(store, PauseStateFilter(), most_bytes=1000)
    assert len(read(store, PauseStateFilter(limit=2), most_bytes=1000)) == 2


def test_what_is_no_artifact_cannot_be_read(store: Store) -> None:
    with pytest.raises(TypeError, match=r"^no artifacts for Filter$"):
        read(store, Filter())
