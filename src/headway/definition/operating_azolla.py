"""What somebody notes about a deployment: ``hw.operator("alice").azolla``."""

from typing import Any

from headway.definition.acting import Acting
from headway.domain.actions import Action
from headway.domain.azolla.artifacts import BlockerRef, CaptureBuffer, Objective


class OperatedAzolla:
    """The writing verbs of ``hw.azolla``, each with its row in the audit."""

    def __init__(self, acting: Acting) -> None:
        self._act = acting.act
        self._name = acting.name

    def capture(self, text: str, *, source: str | None = None) -> CaptureBuffer:
        """Leave a note to be sorted later; without *source* it comes from this person.

        >>> hw.operator("alice").azolla.capture("orders look too low")  # doctest: +SKIP
        """
        return self._act(
            Action.CAPTURE,
            self._name,
            lambda on: on.azolla.capture(text, source=self._name if source is None else source),
            lambda one: {"capture": one.capture_id, "text": one.raw_content},
        )

    def mark_processed(self, *capture_ids: str) -> int:
        """Note that captures are dealt with; returns how many were still pending.

        >>> hw.operator("alice").azolla.mark_processed("capture-3f9a1c2b5d6e")  # doctest: +SKIP
        1
        """
        return self._act(
            Action.PROCESS_CAPTURES,
            ", ".join(map(str, capture_ids)),
            lambda on: on.azolla.mark_processed(*capture_ids),
            lambda count: {"count": count} if count else None,
        )

    def objective(self, title: str, **options: Any) -> Objective:
        """Add something to be reached, with the options of ``hw.azolla.objective``.

        >>> hw.operator("alice").azolla.objective("clean up", urgency=3).urgency  # doctest: +SKIP
        3
        """
        return self._act(
            Action.ADD_OBJECTIVE,
            title,
            lambda on: on.azolla.objective(title, **options),
            lambda one: {"objective": one.objective_id} | options,
        )

    def update(self, objective_id: str, *, expected: str | None = None, **values: Any) -> Objective:
        """Change an objective, closing it by ``status="DONE"``; what is left out stays.

        >>> alice = hw.operator("alice")  # doctest: +SKIP
        >>> alice.azolla.update("objective-3f9a1c2b5d6e", status="DONE").status  # doctest: +SKIP
        <ObjectiveStatus.DONE: 'DONE'>
        """
        return self._act(
            Action.UPDATE_OBJECTIVE,
            objective_id,
            lambda on: on.azolla.update(objective_id, expected=expected, **values),
            lambda _: {"set": values},
        )

    def block(self, objective_id: str, kind: str, description: str) -> BlockerRef:
        """Note what an objective waits for.

        >>> alice = hw.operator("alice")  # doctest: +SKIP
        >>> alice.azolla.block("objective-3f9a1c2b5d6e", "USER_INPUT", "which?")  # doctest: +SKIP
        """
        return self._act(
            Action.BLOCK_OBJECTIVE,
            objective_id,
            lambda on: on.azolla.block(objective_id, kind, description),
            lambda one: {"blocker": one.blocker_id, "kind": one.kind, "for": one.description},
        )

    def resolve(self, blocker_id: str) -> None:
        """Note that a blocker is gone.

        >>> hw.operator("alice").azolla.resolve("blocker-3f9a1c2b5d6e")  # doctest: +SKIP
        """
        self._act(
            Action.RESOLVE_BLOCKER,
            blocker_id,
            lambda on: on.azolla.resolve(blocker_id),
            lambda _: {},
        )

    def unpark(self, event_id: str) -> None:
        """Put a parked event back into the line, with all its attempts.

        >>> hw.operator("alice").azolla.unpark("event-3f9a1c2b5d6e")  # doctest: +SKIP
        """
        self._act(Action.UNPARK, event_id, lambda on: on.azolla.unpark(event_id), lambda _: {})
