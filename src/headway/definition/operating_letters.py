"""Resolving dead letters in somebody's name: ``hw.operator("alice").dead_letters``."""

from collections.abc import Callable, Collection
from typing import Any

from headway.definition.acting import Acting
from headway.definition.interventions import AS_IT_FAILED, DeadLetters, Resolution, Resolutions
from headway.definition.registry import Reference
from headway.domain.actions import Action


class OperatedDeadLetters:
    """The verbs of ``hw.dead_letters``, each with its row in the audit.

    A wish that reached no letter has changed nothing and is not noted.
    """

    def __init__(self, acting: Acting) -> None:
        self._acting = acting

    def requeue(
        self, letter: int, note: str | None = None, *, input: Any = AS_IT_FAILED
    ) -> Resolution:
        """Run what failed once more and count failures anew.

        >>> hw.operator("alice").dead_letters.requeue(7).success  # doctest: +SKIP
        True
        """
        other = None if input is AS_IT_FAILED else True
        return self._one(
            Action.REQUEUE,
            letter,
            lambda letters: letters.requeue(letter, note, input=input),
            {"note": note, "other_input": other},
        )

    def acknowledge(self, letter: int, note: str | None = None) -> Resolution:
        """Leave it at the failure: the manifest goes on with its next occurrence.

        >>> hw.operator("alice").dead_letters.acknowledge(7, "known").message  # doctest: +SKIP
        'acknowledged'
        """
        return self._one(
            Action.ACKNOWLEDGE,
            letter,
            lambda letters: letters.acknowledge(letter, note),
            {"note": note},
        )

    def requeue_many(self, letters: Collection[int], note: str | None = None) -> Resolutions:
        """The same for several; those resolved already are left out.

        >>> hw.operator("alice").dead_letters.requeue_many([7, 8]).count  # doctest: +SKIP
        2
        """
        return self._several(
            Action.REQUEUE,
            "several",
            lambda own: own.requeue_many(letters, note),
            {"letters": _listed(letters), "note": note},
        )

    def acknowledge_many(self, letters: Collection[int], note: str | None = None) -> Resolutions:
        """The same for several; those resolved already are left out.

        >>> hw.operator("alice").dead_letters.acknowledge_many([7, 8]).count  # doctest: +SKIP
        2
        """
        return self._several(
            Action.ACKNOWLEDGE,
            "several",
            lambda own: own.acknowledge_many(letters, note),
            {"letters": _listed(letters), "note": note},
        )

    def requeue_all(
        self,
        note: str | None = None,
        *,
        group: str | None = None,
        workflow: Reference | None = None,
    ) -> Resolutions:
        """The same for every dead letter that waits, or those of one group or workflow.

        >>> hw.operator("alice").dead_letters.requeue_all(group="nightly").count  # doctest: +SKIP
        2
        """
        return self._several(
            Action.REQUEUE,
            "all",
            lambda own: own.requeue_all(note, group=group, workflow=workflow),
            self._chosen(group, workflow) | {"note": note},
        )

    def acknowledge_all(
        self,
        note: str | None = None,
        *,
        group: str | None = None,
        workflow: Reference | None = None,
    ) -> Resolutions:
        """The same for every dead letter that waits, or those of one group or workflow.

        >>> hw.operator("alice").dead_letters.acknowledge_all("known").count  # doctest: +SKIP
        2
        """
        return self._several(
            Action.ACKNOWLEDGE,
            "all",
            lambda own: own.acknowledge_all(note, group=group, workflow=workflow),
            self._chosen(group, workflow) | {"note": note},
        )

    def _one(
        self,
        action: Action,
        letter: int,
        verb: Callable[[DeadLetters], Resolution],
        facts: dict[str, object],
    ) -> Resolution:
        return self._acting.act(
            action,
            letter,
            lambda on: verb(on.dead_letters),
            lambda done: {"entry": done.entry_id} | facts if done.success else None,
        )

    def _several(
        self,
        action: Action,
        subject: str,
        verb: Callable[[DeadLetters], Resolutions],
        facts: dict[str, object],
    ) -> Resolutions:
        return self._acting.act(
            action,
            subject,
            lambda on: verb(on.dead_letters),
            lambda done: {"count": done.count} | facts if done.count else None,
        )

    def _chosen(self, group: str | None, workflow: Reference | None) -> dict[str, object]:
        named = None if workflow is None else self._acting.runtime.name_of(workflow)
        return {"group": group, "workflow": named}


def _listed(letters: object) -> object:
    return list(letters) if isinstance(letters, Collection) else letters
