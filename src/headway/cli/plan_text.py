"""A plan as lines: one sign per manifest, one line per field, and what it means for its work."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.text import Text

from headway.cli.terminal import cell
from headway.domain.field_changes import FieldChange
from headway.domain.plan import Change, GroupChange, Plan, Stranded

SHOWN = 20


def show(output: Console, plan: Plan, *, everything: bool) -> None:
    """Print *plan*; of each kind at most twenty, unless *everything* is wanted.

    >>> show(Console(), Plan("shop", unchanged=2), everything=False)
    shop: nothing to change, 2 as declared
    """
    for lines in _sections(plan):
        kept = lines if everything else lines[:SHOWN]
        for block in kept:
            for line in block:
                output.print(line, soft_wrap=True)
        if len(lines) > len(kept):
            left = len(lines) - len(kept)
            output.print(cell(f"  ... and {left} more; --all lists them", "dim"), soft_wrap=True)
    for note in notes(plan):
        output.print(cell(note, "yellow"), soft_wrap=True)
    output.print(cell(summary(plan), "bold"), soft_wrap=True)


def summary(plan: Plan) -> str:
    """The plan in one line.

    >>> summary(Plan("shop", created=(Change("load"),), unchanged=2))
    'shop: 1 to add, 2 as declared'
    """
    counts = (
        (len(plan.created), "to add"),
        (len(plan.changed), "to change"),
        (len(plan.removed), "to remove"),
        (len(plan.kept_back), "to remove only with --allow-removal"),
        (len(plan.groups), "group change" if len(plan.groups) == 1 else "group changes"),
    )
    told = [f"{count} {what}" for count, what in counts if count] or ["nothing to change"]
    return f"{plan.application}: {', '.join(told)}, {plan.unchanged} as declared"


def notes(plan: Plan) -> Iterator[str]:
    """What a person should know before saying yes."""
    if plan.kept_back:
        yield (
            f"removing {len(plan.kept_back)} is removing more than half of what is there: a start "
            "keeps them all, headway apply refuses without --allow-removal"
        )
    if plan.stranded:
        count = sum(one.count for one in plan.stranded)
        entries = "1 queued entry" if count == 1 else f"{count} queued entries"
        yield (
            f"{entries} cannot run with this code; see them: headway queue list; cancel one: "
            f"headway queue cancel {plan.stranded[0].entry_id}"
        )
    if plan.outdated:
        yield (
            "this declaration was applied before and a later one has replaced it: a start leaves "
            "things as they are, headway apply goes back to it"
        )


def _sections(plan: Plan) -> Iterator[Sequence[list[Text]]]:
    yield [_group(one) for one in plan.groups]
    yield [_created(one) for one in plan.created]
    never = _by_manifest(plan.stranded)
    yield [_changed(one, never.pop(one.external_id, ())) for one in plan.changed]
    yield [_removed(one) for one in (*plan.removed, *plan.kept_back)]
    yield [[cell(f"! {key}", "yellow"), *map(_never, some)] for key, some in never.items()]
    yield [
        [cell(f"= {one.subject}  {one.name} {one.value}  kept: operator's value", "cyan"),
         cell(f"    the code says {one.declared}", "dim")]
        for one in plan.kept
    ]  # fmt: skip


def _group(change: GroupChange) -> list[Text]:
    if change.new:
        told = ", ".join(f"{one.name} {one.after}" for one in change.fields)
        return [cell(f"+ group {change.name}  {told}", "green")]
    return [cell(f"~ group {change.name}", "yellow"), *_fields(change.fields)]


def _created(change: Change) -> list[Text]:
    told = ", ".join(
        str(one.after) if one.name == "runs" else f"{one.name} {one.after}" for one in change.fields
    )
    return [cell(f"+ {change.external_id}  {told}", "green")]


def _by_manifest(stranded: Iterable[Stranded]) -> dict[str, list[Stranded]]:
    found: dict[str, list[Stranded]] = {}
    for one in stranded:
        found.setdefault(one.external_id, []).append(one)
    return found


def _never(one: Stranded) -> Text:
    return _work(f"{one.count} queued, cannot run: {one.reason}")


def _changed(change: Change, stranded: Sequence[Stranded]) -> list[Text]:
    lines = [cell(f"~ {change.external_id}", "yellow"), *_fields(change.fields)]
    if left := change.queued - sum(one.count for one in stranded):
        lines.append(_work(f"{left} queued, run as they were queued"))
    lines += map(_never, stranded)
    if change.running:
        lines.append(_work(f"{change.running} running, not touched"))
    return lines


def _removed(change: Change) -> list[Text]:
    lines = [cell(f"- {change.external_id}", "red")]
    if change.queued:
        lines.append(_work(f"{change.queued} queued, to be cancelled"))
    if change.running:
        lines.append(_work(f"{change.running} running, to finish"))
    return lines


def _fields(fields: Sequence[FieldChange]) -> Iterator[Text]:
    for one in fields:
        lost = "" if one.operators is None else f"  (replaces an operator's {one.operators})"
        yield cell(f"    {one.name}: {one.before} -> {one.after}{lost}")
    if not fields:
        yield cell("    nothing visible: written down anew", "dim")


def _work(text: str) -> Text:
    return cell(f"    {text}", "magenta")
