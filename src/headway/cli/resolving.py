"""Which dead letters are meant, and resolving many of them a batch at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import typer

from headway.cli.asking import agreed
from headway.cli.deployment import Deployment
from headway.cli.listing import Paging, Walk
from headway.cli.output import done
from headway.cli.progress import progress
from headway.cli.serving import counted
from headway.definition.interventions import Resolution, Resolutions
from headway.domain.dead_letter import DeadLetterStatus
from headway.domain.views import DeadLetterFilter
from headway.errors import HeadwayError
from headway.store.urls import described

AT_ONCE = 200
Verbs = tuple[Callable[[int], Resolution], Callable[[Sequence[int]], Resolutions]]
EVERY_ONE = Paging(limit=1, everything=True, after=None)


@dataclass(frozen=True)
class Wanted:
    """The dead letters somebody means: those with these ids, or all that wait of some kind."""

    ids: tuple[int, ...]
    kind: DeadLetterFilter

    def found(self, site: Deployment) -> Sequence[int]:
        """Their ids."""
        pages = site.history.dead_letters.page
        return self.ids or [
            one.id for one in Walk(lambda cursor, most: pages(self.kind, cursor, most), EVERY_ONE)
        ]


def wanted(
    ids: list[int] | None, everything: bool, group: str | None, workflow: str | None
) -> Wanted:
    """What the options mean; ids, or at least one option that says which.

    >>> wanted([7], False, None, None).ids
    (7,)
    """
    by_kind = everything or group is not None or workflow is not None
    if bool(ids) == by_kind:
        raise typer.BadParameter("give ids, or --all, --group or --workflow")
    kind = DeadLetterFilter(DeadLetterStatus.AWAITING_INTERVENTION, group, workflow)
    return Wanted(tuple(ids or ()), kind)


def say_resolved(made: Resolution, letter: int, how: str, *, as_json: bool) -> None:
    """Say what became of one dead letter.

    >>> say_resolved(Resolution(True, "acknowledged"), 7, "acknowledge", as_json=False)
    dead letter 7: acknowledged
    """
    if not made.success:
        raise HeadwayError(made.message)
    facts = {f"{how}d": 1, "asked": 1, "entry": made.entry_id}
    done(f"dead letter {letter}: {made.message}", facts, as_json=as_json)


def resolve(
    site: Deployment,
    letters: Wanted,
    how: str,
    verbs: Verbs,
    *,
    yes: bool,
    as_json: bool,
) -> None:
    """Do it to the letters that are meant, each batch in a transaction of its own.

    >>> resolve(site, wanted([7], False, None, None), "requeue", verbs)  # doctest: +SKIP
    """
    ids, (one, many) = letters.found(site), verbs
    if not ids:
        done(f"0 {how}d: {_none_waits(site, letters.kind)}", _facts(how, 0, 0), as_json=as_json)
        return
    if len(letters.ids) == 1:
        say_resolved(one(ids[0]), ids[0], how, as_json=as_json)
        return
    if len(ids) > 1:
        agreed(f"{how} {counted(len(ids), 'dead letter')}", yes)
    reached = 0
    with progress(f"{how} dead letters", len(ids)) as advance:
        for start in range(0, len(ids), AT_ONCE):
            some = ids[start : start + AT_ONCE]
            reached += many(some).count
            advance(len(some))
    if letters.ids and not reached:
        told = ", ".join(map(str, letters.ids))
        raise HeadwayError(f"dead letter {told}: not found or already resolved")
    left = (
        f"; {len(ids) - reached} were resolved already or not found" if reached < len(ids) else ""
    )
    done(
        f"{reached} {how}d{left}",
        _facts(how, reached, len(ids)),
        as_json=as_json,
    )


def _facts(how: str, reached: int, asked: int) -> dict[str, object]:
    return {f"{how}d": reached, "asked": asked, "entry": None}


def _none_waits(site: Deployment, kind: DeadLetterFilter) -> str:
    """A sentence about finding none; raises if there is no such group either."""
    if kind.group is not None:
        site.history.groups.detail(kind.group)
    named = (("group", kind.group), ("workflow", kind.workflow))
    of = " and ".join(f"{what} {name}" for what, name in named if name is not None)
    letter = f"dead letter of {of}" if of else "dead letter"
    return f"no {letter} waits in {described(site.app.database_url)}"
