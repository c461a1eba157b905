"""What runs after what: when its edges make a dependent due, and how the builder finds parents.

An edge remembers the newest success of its parent that the child has consumed. Successes are
counted, not timed: the parent's ``success_seq`` is raised with each one, and the child is due
while it is ahead of the edge's ``consumed_seq``. An entry of the child notes what it has seen when
it is queued and again when it is dispatched, and only that is consumed when it ends; a parent
success that arrives while the child runs is therefore still there afterwards. Where no such
overlap occurs, the rule equals comparing the two manifests' last successes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from headway.domain.names import checked_name
from headway.domain.text import shown
from headway.errors import DefinitionError

Join = Literal["all", "any"]
"""Whether a child with several parents waits for a new success of each, or of one of them."""

DependsOn = str | Iterable[str] | None
"""What ``depends_on`` may be: an external id, several, or nothing."""

Items = Iterable[tuple[str, DependsOn]]
"""A batch as the builder's pointers see it: each item's external id and ``depends_on``."""

_NAME_PARENTS = "{}(...) with Item(..., depends_on='extract-1') to name its parent"
_START = "schedule(...) before it"
_NAMED_PARENTS = 5
_JOINS = {"all": all, "any": any}


@dataclass(frozen=True, slots=True)
class EdgeState:
    """One edge as its child is looked at; a *parent* of None was removed.

    >>> EdgeState("extract", parent_success_seq=3, consumed_seq=2).parent_removed
    False
    """

    parent: str | None
    parent_success_seq: int = 0
    consumed_seq: int = 0
    parent_enabled: bool = True

    @property
    def parent_removed(self) -> bool:
        """Whether the parent is gone; the edge stays and holds its child.

        >>> EdgeState(None, consumed_seq=2).parent_removed
        True
        """
        return self.parent is None

    @property
    def seen_seq(self) -> int:
        """The success that an entry of the child queued or dispatched now notes for this edge.

        >>> EdgeState("extract", 3, 2).seen_seq, EdgeState(None, consumed_seq=2).seen_seq
        (3, 2)
        """
        return self.consumed_seq if self.parent_removed else self.parent_success_seq


@dataclass(frozen=True, slots=True)
class EdgeDecision:
    """Whether its edges make a child due, why, and what an entry queued now has *seen*.

    *seen* has one number per edge, in the order of the edges, also when the child is not due: an
    entry with another source (a trigger, say) notes it too.

    >>> EdgeDecision(True, "new success of 'extract'", (3,)).seen
    (3,)
    """

    due: bool
    reason: str
    seen: tuple[int, ...]


def due_by_edges(edges: Sequence[EdgeState], join: Join = "all") -> EdgeDecision:
    """Decide whether the parents have successes that the child has not consumed.

    With *join* "all" every parent must have one; a removed or disabled parent then holds the
    child. With "any" one parent is enough, and removed or disabled ones do not count.

    >>> due_by_edges([EdgeState("extract", parent_success_seq=3, consumed_seq=2)])
    EdgeDecision(due=True, reason="new success of 'extract'", seen=(3,))
    >>> due_by_edges([EdgeState("a", 3, 2), EdgeState("b", 0, 0)]).reason
    "waits for the first success of 'b'"
    """
    holds = [_hold(edge) for edge in edges]
    # Not by the join alone: all of no edges would be true.
    due = bool(holds) and _JOINS[join](hold is None for hold in holds)
    decisive = [(edge, hold) for edge, hold in zip(edges, holds, strict=True) if due is (not hold)]
    reason = _in_words(decisive) or "has no parent"
    if not due and join == "any" and len(edges) > 1:
        reason += " (one is enough)"
    return EdgeDecision(due, reason, tuple(edge.seen_seq for edge in edges))


def _hold(edge: EdgeState) -> str | None:
    """Why this edge does not make its child due, with a place for the parent's name."""
    if edge.parent_removed:
        return "a parent was removed"
    if not edge.parent_enabled:
        return "parent disabled: {}"
    if edge.parent_success_seq > edge.consumed_seq:
        return None
    which = "next" if edge.parent_success_seq else "first"
    return f"waits for the {which} success of {{}}"


def _in_words(decisive: Iterable[tuple[EdgeState, str | None]]) -> str:
    parents: dict[str, list[str]] = {}
    for edge, hold in decisive:
        parents.setdefault(hold or "new success of {}", []).append(shown(edge.parent))
    return "; ".join(text.format(_listed(names)) for text, names in parents.items())


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED_PARENTS
    named = ", ".join(names[:_NAMED_PARENTS])
    return f"{named} and {more} more" if more > 0 else named


def initial_consumed_seq(
    parent_success_seq: int,
    parent_last_success_at: datetime | None,
    child_last_success_at: datetime | None,
) -> int:
    """Return what a new or re-parented edge counts as consumed.

    The rule: every success of the parent not later than the child's last one. The newest decides
    alone. If it is not later, none is, and all are consumed. If it is later, the child is due
    whatever is said about the older ones, and its run consumes them together with it; so "all but
    the newest" stands for the count, which would need the parent's whole history. A child that
    never succeeded has consumed nothing.

    >>> from datetime import UTC
    >>> nine, ten = (datetime(2025, 1, 1, hour, tzinfo=UTC) for hour in (9, 10))
    >>> initial_consumed_seq(7, nine, ten), initial_consumed_seq(7, ten, nine)
    (7, 6)
    """
    if parent_last_success_at is None or child_last_success_at is None:
        return 0
    later = parent_last_success_at > child_last_success_at
    return max(parent_success_seq - later, 0)


def parents_of(subject: str, depends_on: DependsOn) -> tuple[str, ...]:
    """Return the parents that ``depends_on`` of *subject* names: sorted, for order has no meaning.

    >>> parents_of("load", "extract"), parents_of("load", ["b", "a", "b"]), parents_of("load", None)
    (('extract',), ('a', 'b'), ())
    """
    if depends_on is None:
        return ()
    kind = f"{subject}: depends_on"
    if isinstance(depends_on, str):
        return (checked_name(kind, depends_on),)
    if not isinstance(depends_on, Iterable):
        raise DefinitionError(
            f"{kind} = {shown(depends_on)}: must be an external id or a list of them; "
            "for example 'extract-users'"
        )
    return tuple(sorted({checked_name(kind, one) for one in depends_on}))


@dataclass(frozen=True, slots=True)
class Pointers:
    """Where the fluent builder stands: the *root* of the chain, and the *cursor* on its last link.

    Each method is a call of the builder. It returns the parent (for a batch, the parents of each
    item) and where the builder stands afterwards, or refuses and says what to write instead.

    >>> _, pointers = Pointers().schedule("extract")
    >>> pointers.include("load")
    ('extract', Pointers(root='extract', cursor='load'))
    """

    root: str | None = None
    cursor: str | None = None

    def schedule(self, external_id: str) -> tuple[None, "Pointers"]:
        """Start a chain.

        >>> Pointers().schedule("extract")
        (None, Pointers(root='extract', cursor='extract'))
        """
        return None, Pointers(external_id, external_id)

    def schedule_once(self) -> tuple[None, "Pointers"]:
        """Leave the chain: what runs once has no dependents by position.

        >>> Pointers("extract", "load").schedule_once()
        (None, Pointers(root=None, cursor=None))
        """
        return None, Pointers()

    def schedule_many(self) -> tuple[None, "Pointers"]:
        """Leave the chain: a batch has no single manifest that could be a parent by position.

        >>> Pointers("extract", "load").schedule_many()
        (None, Pointers(root=None, cursor=None))
        """
        return None, Pointers()

    def include(self, external_id: str) -> tuple[str, "Pointers"]:
        """Branch from the root.

        >>> Pointers("extract", "load").include("validate")
        ('extract', Pointers(root='extract', cursor='validate'))
        """
        if self.root is None:
            raise DefinitionError(
                f"{external_id}: include(...) has no schedule(...) before it to depend on; write "
                f"schedule(...).include(...), or {_NAME_PARENTS.format('include_many')}"
            )
        return self.root, Pointers(self.root, external_id)

    def then_include(self, external_id: str) -> tuple[str, "Pointers"]:
        """Go on from the cursor.

        >>> Pointers("extract", "load").then_include("report")
        ('load', Pointers(root='extract', cursor='report'))
        """
        if self.cursor is None:
            one = f"include(...) to come after {shown(self.root)}" if self.root else _START
            raise DefinitionError(
                f"{external_id}: then_include(...) has no single manifest before it to depend on; "
                f"write {one}, or {_NAME_PARENTS.format('then_include_many')}"
            )
        return self.cursor, Pointers(self.root, external_id)

    def include_many(self, items: Items) -> tuple[list[tuple[str, ...]], "Pointers"]:
        """Put each item after the parents it names, or else after the root.

        >>> Pointers("extract", "extract").include_many([("load-0", None), ("load-1", "check")])
        ([('extract',), ('check',)], Pointers(root='extract', cursor=None))
        """
        root = () if self.root is None else (self.root,)
        advice = "or write schedule(...), not a batch, before include_many(...)"
        return _parents_of_each(items, root, advice), Pointers(self.root)

    def then_include_many(self, items: Items) -> tuple[list[tuple[str, ...]], "Pointers"]:
        """Put each item after the parents it names, of which there must be one.

        >>> Pointers("extract").then_include_many([("report-0", ["load-0", "check-0"])])
        ([('check-0', 'load-0')], Pointers(root='extract', cursor=None))
        """
        root = shown(self.root) if self.root else "a schedule(...) before it"
        advice = f"or write include_many(...), which puts it after {root}"
        return _parents_of_each(items, (), advice), Pointers(self.root)


def _parents_of_each(
    items: Items, otherwise: tuple[str, ...], advice: str
) -> list[tuple[str, ...]]:
    parents = []
    for external_id, depends_on in items:
        named = parents_of(external_id, depends_on) or otherwise
        if not named:
            raise DefinitionError(
                f"{external_id}: has no parent; write Item(..., depends_on='extract-1') to name "
                f"one, {advice}"
            )
        parents.append(named)
    return parents
