"""Dead letters."""

from headway.domain.dead_letter import DeadLetter
from headway.domain.paging import DEFAULT_LIMIT, Page, checked_limit, cursor_at, numbers_of
from headway.domain.views import DeadLetterDetail, DeadLetterFilter, DeadLetterOverview
from headway.errors import HeadwayError
from headway.store import dead_letters as letters
from headway.store.engine import Store
from headway.store.reading import dead_letters

EVERYTHING = DeadLetterFilter()


class DeadLetterNotFound(HeadwayError, LookupError):
    """No dead letter has this id.

    >>> str(DeadLetterNotFound(7))
    'dead letter = 7: there is none of this id; for example one that the list of them shows'
    """

    def __init__(self, letter_id: object) -> None:
        super().__init__(
            f"dead letter = {letter_id!r}: there is none of this id; "
            "for example one that the list of them shows"
        )


class DeadLetters:
    """Manifests that wait, or have waited, for a person.

    >>> History(store).dead_letters.page().items  # doctest: +SKIP
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def page(
        self,
        filters: DeadLetterFilter = EVERYTHING,
        cursor: str | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> Page[DeadLetterOverview]:
        """Dead letters, newest first."""
        place = numbers_of(cursor, 1)
        before = None if place is None else place[0]
        with self._store.reading() as tx:
            items, stopped = dead_letters.page(tx, filters, before, checked_limit(limit))
        return Page(tuple(items), cursor_at(stopped) if stopped else None)

    def detail(self, letter_id: int) -> DeadLetterDetail:
        """Everything about one; raises :class:`DeadLetterNotFound` if there is none."""
        with self._store.reading() as tx:
            found = dead_letters.detail(tx, letter_id)
        if found is None:
            raise DeadLetterNotFound(letter_id)
        return found

    def awaiting(self) -> list[DeadLetter]:
        """All that wait for a person, oldest first: for tests and small deployments."""
        with self._store.reading() as tx:
            return letters.awaiting(tx)
