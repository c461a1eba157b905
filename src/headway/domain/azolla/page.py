"""The page itself: headway's own deterministic builder, and what any builder returns."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from headway.domain.azolla.artifacts import PauseSummary
from headway.domain.azolla.context import Answer, Context
from headway.domain.azolla.ranking import Matter, ranked
from headway.domain.text import printable
from headway.errors import DefinitionError

MOST_LINES = 5
LINE_LIMIT = 300
SHOWN_MATTERS = 50


@dataclass(frozen=True)
class Page:
    """What a builder makes of a snapshot: what to do first, and the whole page in Markdown.

    >>> Page(orientation=("sales: requeue load-orders",), content="# Where was I?").title
    'Where was I?'
    """

    orientation: tuple[str, ...]
    content: str
    title: str = "Where was I?"

    def __post_init__(self) -> None:
        lines = tuple(self.orientation)
        if isinstance(self.orientation, str) or not 1 <= len(lines) <= MOST_LINES:
            raise DefinitionError(
                f"Page orientation = {self.orientation!r}: must be 1 to {MOST_LINES} lines; for "
                "example ('sales: requeue load-orders',)"
            )
        if not all(isinstance(line, str) and line.strip() for line in lines):
            raise DefinitionError(
                f"Page orientation = {lines!r}: every line must be a text that says something"
            )
        object.__setattr__(self, "orientation", lines)


def page_of(returned: object) -> Page:
    """What a builder returned, as a page; of a text the first lines are the orientation.

    >>> page_of("requeue load-orders\\nthen look at the rest").orientation
    ('requeue load-orders', 'then look at the rest')
    """
    if isinstance(returned, Page):
        return returned
    if not isinstance(returned, str):
        raise DefinitionError(
            f"manifest builder returned {type(returned).__name__}: must be a Page or a str; for "
            "example Page(orientation=('requeue load-orders',), content='…')"
        )
    lines = (line.strip(" \t#*-") for line in returned.splitlines())
    return Page(tuple(line[:LINE_LIMIT] for line in lines if line)[:MOST_LINES], returned)


def build_page(context: Context) -> Page:
    """The page for *context*: the same for the same, and nothing that is not in it."""
    matters = ranked(context)
    lines = [_line(matter) for matter in matters[:MOST_LINES]] or [_nothing(context)]
    return Page(tuple(lines), "\n".join(_markdown(context, lines, matters)))


def summary_of(context: Context) -> tuple[PauseSummary, ...]:
    """Every pause state that was seen, by deployment, newest first."""
    return tuple(
        PauseSummary(
            source_azolla_id=answer.azolla_id,
            objective_id=one.objective_id,
            reason=one.reason,
            prioritized_actions=one.prioritized_actions,
        )
        for answer in context.answers
        for one in answer.pause_states()
    )


def not_answered(context: Context) -> list[str]:
    """A sentence for every question that was not answered, with the status and the reason."""
    answered = context.answered()
    return [
        f"{one.azolla_id} {_how_little(one, answered)}: {one.status}"
        f"{f' ({printable(one.note, LINE_LIMIT)})' if one.note else ''}"
        for one in context.refusals()
    ]


def _how_little(refusal: Answer, answered: Sequence[str]) -> str:
    if refusal.azolla_id in answered:
        return f"did not show any {refusal.artifact_type}"
    return "did not answer"


def _line(matter: Matter) -> str:
    return f"{matter.azolla_id}: {matter.actions[0]}"[:LINE_LIMIT]


def _nothing(context: Context) -> str:
    if context.pending_captures:
        return f"{context.azolla_id}: sort {_captures(context)}; nothing else waits"
    if context.refusals():
        return f"{context.azolla_id}: look at who did not answer; nothing waits where one could see"
    return f"{context.azolla_id}: carry on; nothing waits anywhere"


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)


def _captures(context: Context) -> str:
    count = context.pending_captures
    return f"{count} capture{'' if count == 1 else 's'}"


def _markdown(context: Context, lines: Sequence[str], matters: list[Matter]) -> Iterator[str]:
    yield "# Where was I?"
    yield f"\nAs seen by {context.azolla_id} at {_utc(context.asked_at):%Y-%m-%d %H:%M:%S} UTC."
    yield "\n## Do first\n"
    yield from (f"{number}. {line}" for number, line in enumerate(lines, 1))
    yield "\n## Who answered\n"
    answered = context.answered()
    yield from (f"- {name}: {_what(context, name)}" for name in answered)
    yield from (f"- {sentence}" for sentence in not_answered(context))
    yield from _waiting(answered, matters)
    if context.pending_captures:
        yield "\n## Captures\n"
        yield f"- {_captures(context)} of {context.azolla_id} not sorted yet"


def _what(context: Context, azolla_id: str) -> str:
    own = [one for one in context.answers if one.azolla_id == azolla_id]
    pauses = sum(len(one.pause_states()) for one in own)
    objectives = sum(len(one.objectives()) for one in own)
    return f"{_count(pauses, 'pause state')}, {_count(objectives, 'objective')}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _waiting(names: Iterable[str], matters: list[Matter]) -> Iterator[str]:
    shown = matters[:SHOWN_MATTERS]
    for name in sorted({*names, *(one.azolla_id for one in shown)}):
        own = [one for one in shown if one.azolla_id == name]
        if not own:
            continue
        yield f"\n## {name}\n"
        for matter in own:
            yield f"- {matter.actions[0]} (since {_utc(matter.since):%Y-%m-%d %H:%M} UTC)"
            yield from (f"  - {action}" for action in matter.actions[1:])
    if len(matters) > len(shown):
        yield f"\n{len(matters) - len(shown)} more are not shown."
