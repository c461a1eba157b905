"""What people do about dead letters: ``hw.dead_letters`` of an application."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from headway.definition.registry import Reference, Registry
from headway.domain.dead_letter import DeadLetter
from headway.domain.names import checked_id, checked_name, checked_words
from headway.domain.text import printable, shown
from headway.errors import DefinitionError
from headway.store import dead_letters, resolution
from headway.store.notifications import notify_at_commit
from headway.store.resolution import Letters, Waiting
from headway.store.within import Transactions

NOTE_LIMIT = 2000
AS_IT_FAILED: Any = object()


@dataclass(frozen=True)
class Resolution:
    """What became of the wish to resolve one dead letter.

    ``removed`` says that its manifest was removed, so that nothing can run it again.

    >>> Resolution(True, "requeued as entry 9", entry_id=9).success
    True
    """

    success: bool
    message: str
    entry_id: int | None = None
    removed: bool = False


@dataclass(frozen=True)
class Resolutions:
    """What became of the wish to resolve several.

    >>> Resolutions(2, "2 acknowledged").count
    2
    """

    count: int
    message: str


class DeadLetters:
    """The manifests that failed too often and wait for a person.

    >>> hw.dead_letters.requeue(7)  # doctest: +SKIP
    Resolution(success=True, message='requeued as entry 9', entry_id=9)
    """

    def __init__(self, store: Transactions, registry: Registry) -> None:
        self._store = store
        self._registry = registry

    def awaiting(self) -> list[DeadLetter]:
        """Those that wait, oldest first.

        >>> [letter.external_id for letter in hw.dead_letters.awaiting()]  # doctest: +SKIP
        ['load-orders']
        """
        with self._store.reading() as tx:
            return dead_letters.awaiting(tx)

    def requeue(
        self, letter: int, note: str | None = None, *, input: Any = AS_IT_FAILED
    ) -> Resolution:
        """Run what failed once more and count failures anew; with the input that failed, or
        another one.

        >>> hw.dead_letters.requeue(7, "the server is back").success  # doctest: +SKIP
        True
        """
        text = None
        if input is not AS_IT_FAILED:
            text = self._encoded(checked_id("dead letter", letter), input)
            if text is None:
                return self._not_requeued(letter)
        made = self._requeue([checked_id("dead letter", letter)], note, text)
        if letter not in made:
            return self._not_requeued(letter)
        return Resolution(True, f"requeued as entry {made[letter]}", made[letter])

    def requeue_many(self, letters: Collection[int], note: str | None = None) -> Resolutions:
        """The same for several; those resolved already are left out.

        >>> hw.dead_letters.requeue_many([7, 8]).count  # doctest: +SKIP
        2
        """
        return _several(len(self._requeue(_checked_ids(letters), note)), "requeued")

    def requeue_all(
        self,
        note: str | None = None,
        *,
        group: str | None = None,
        workflow: Reference | None = None,
    ) -> Resolutions:
        """The same for every dead letter that waits, or those of one group or workflow.

        >>> hw.dead_letters.requeue_all(group="nightly").message  # doctest: +SKIP
        '2 requeued'
        """
        return _several(len(self._requeue(self._waiting(group, workflow), note)), "requeued")

    def acknowledge(self, letter: int, note: str | None = None) -> Resolution:
        """Leave it at the failure: the manifest goes on with its next occurrence.

        >>> hw.dead_letters.acknowledge(7, "the table is gone").message  # doctest: +SKIP
        'acknowledged'
        """
        done = self._acknowledge([checked_id("dead letter", letter)], note)
        return Resolution(True, "acknowledged") if done else _not_found(letter)

    def acknowledge_many(self, letters: Collection[int], note: str | None = None) -> Resolutions:
        """The same for several; those resolved already are left out.

        >>> hw.dead_letters.acknowledge_many([7, 8], "known").count  # doctest: +SKIP
        2
        """
        return _several(len(self._acknowledge(_checked_ids(letters), note)), "acknowledged")

    def acknowledge_all(
        self,
        note: str | None = None,
        *,
        group: str | None = None,
        workflow: Reference | None = None,
    ) -> Resolutions:
        """The same for every dead letter that waits, or those of one group or workflow.

        >>> hw.dead_letters.acknowledge_all(workflow="load").count  # doctest: +SKIP
        2
        """
        done = self._acknowledge(self._waiting(group, workflow), note)
        return _several(len(done), "acknowledged")

    def _waiting(self, group: str | None, workflow: Reference | None) -> Waiting:
        named = None if workflow is None else self._registry.find(workflow).name
        return Waiting(None if group is None else checked_name("group", group), named)

    def _not_requeued(self, letter: int) -> Resolution:
        with self._store.reading() as tx:
            external_id = resolution.removed_manifest_of(tx, letter)
        if external_id is None:
            return _not_found(letter)
        removed = f"its manifest {shown(external_id)} was removed"
        then = "if it is declared again, trigger it: headway trigger"
        sentence = f"dead letter {letter} cannot be requeued: {removed}; {then} {external_id}"
        return Resolution(False, sentence, removed=True)

    def _encoded(self, letter: int, input: Any) -> str | None:
        with self._store.reading() as tx:
            found = resolution.workflow_of(tx, letter)
        if found is None:
            return None
        external_id, workflow = found
        return self._registry.find(workflow).input_type.encode(input, external_id)

    def _requeue(
        self, letters: Letters, note: str | None, input: str | None = None
    ) -> dict[int, int]:
        with self._store.writing() as tx:
            made = resolution.requeue(tx, letters, _checked_note(note), input)
            notify_at_commit(tx)
        return made

    def _acknowledge(self, letters: Letters, note: str | None) -> list[int]:
        with self._store.writing() as tx:
            done = resolution.acknowledge(tx, letters, _checked_note(note))
            notify_at_commit(tx)
        return done


def _checked_ids(letters: object) -> list[int]:
    if isinstance(letters, str) or not isinstance(letters, Collection):
        raise DefinitionError(
            f"dead letters = {shown(letters)}: must be a list of ids; for example [7, 8]"
        )
    return [checked_id("dead letter", letter) for letter in letters]


def _checked_note(note: object) -> str | None:
    if note is not None and not isinstance(note, str):
        raise DefinitionError(
            f"note = {shown(note)}: must be text; for example 'the server is back'"
        )
    if note is None:
        return None
    return printable(checked_words("note", note, "the server is back"), NOTE_LIMIT)


def _not_found(letter: int) -> Resolution:
    return Resolution(False, f"dead letter {letter} was not found or is already resolved")


def _several(count: int, done: str) -> Resolutions:
    return Resolutions(count, f"{count} {done}")
