"""``headway preview``: the coming runs, computed from the declaration alone."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from headway.cli.output import AsJson, echo_json
from headway.cli.target import Target, load
from headway.cli.terminal import cell, console
from headway.config import Settings
from headway.definition.app import Headway
from headway.domain.manifest import Manifest
from headway.domain.preview import ComingRun, coming_runs, how_it_runs
from headway.domain.timing import Timing
from headway.domain.wall_clock import zone

CLOCK = "%a %Y-%m-%d %H:%M:%S %Z"


def preview(
    target: Target,
    days: Annotated[int, typer.Option(min=1, max=3660, help="How far to look ahead.")] = 7,
    limit: Annotated[
        int, typer.Option(min=1, metavar="N", help="Most runs shown of each manifest.")
    ] = 10,
    as_json: AsJson = False,
) -> None:
    """List the coming runs of every manifest, as if it were declared now; no database is opened.

    Example: headway preview shop:hw --days 1
    """
    app = load(target)
    now = datetime.now(UTC).replace(microsecond=0)
    until = now + timedelta(days=days)
    manifests = app.declaration().manifests
    if as_json:
        echo_json([_facts(app, manifest, now, until, limit) for manifest in manifests])
        return
    output = console()
    for manifest in manifests:
        _show(output, app, manifest, now, until, limit)
    counted = f"{len(manifests)} manifest{'' if len(manifests) == 1 else 's'}"
    span = "the next day" if days == 1 else f"the next {days} days"
    _line(output, cell(f"{counted}, {span} from {_clock(now, UTC)}, if every run takes no time"))


def _show(
    output: Console, app: Headway, manifest: Manifest, now: datetime, until: datetime, limit: int
) -> None:
    _line(output, Text.assemble(cell(manifest.external_id, "bold"), cell("  "), _words(manifest)))
    off = _switched_off(app, manifest)
    if off or manifest.parents:
        _note(output, off)
        return
    timing = _timing(app.settings, manifest)
    runs = list(islice(coming_runs(timing, manifest.external_id, now, until), limit + 1))
    for run in runs[:limit]:
        first = run is runs[0] and timing.schedule.kind in ("interval", "cron")
        _line(output, cell(f"  {'   '.join(_told(run, timing, now, first))}"))
    if not runs and manifest.schedule.kind != "none":
        _note(output, f"no run before {_clock(until, zone(timing.zone_name) or UTC)}")
    if len(runs) > limit:
        _note(output, f"and more; --limit {limit * 10} shows more of them")


def _facts(
    app: Headway, manifest: Manifest, now: datetime, until: datetime, limit: int
) -> dict[str, object]:
    key, timing = manifest.external_id, _timing(app.settings, manifest)
    runs: list[ComingRun] = []
    if not (_switched_off(app, manifest) or manifest.parents):
        runs = list(islice(coming_runs(timing, key, now, until), limit))
    return {"external_id": key, "schedule": _words(manifest).plain, "runs": runs}


def _words(manifest: Manifest) -> Text:
    words = how_it_runs(manifest)
    time = manifest.time
    if time.variance:
        words += f", up to {time.variance} later"
    if time.exclusions:
        excluded = "; ".join(f"{one.describe()} ({one.then})" for one in time.exclusions)
        words += f", not {excluded}"
    return cell(words, "cyan")


def _switched_off(app: Headway, manifest: Manifest) -> str:
    if not manifest.enabled:
        return "switched off: enabled=False"
    group = app.declaration().groups.get(manifest.group.name)
    return f"switched off with its group {group.name}" if group and not group.enabled else ""


def _timing(settings: Settings, manifest: Manifest) -> Timing:
    return manifest.time.timing(
        manifest.schedule, settings.default_misfire_policy, settings.default_misfire_threshold
    )


def _told(run: ComingRun, timing: Timing, now: datetime, first: bool) -> Iterator[str]:
    """The start on the manifest's own clock, then in UTC, then why it is not the nominal time."""
    own = zone(timing.zone_name) or UTC
    yield _clock(run.at, own)
    if timing.zone_name != "UTC":
        yield _clock(run.at, UTC)
    if first:
        yield "first run, at once" if run.at == now else "first run"
    elif run.moved:
        yield f"for {_clock(run.stands_for, own)}"


def _clock(moment: datetime, shown_in: tzinfo) -> str:
    return moment.astimezone(shown_in).strftime(CLOCK)


def _note(output: Console, text: str) -> None:
    if text:
        _line(output, cell(f"  {text}", "dim"))


def _line(output: Console, text: Text) -> None:
    output.print(text, soft_wrap=True)
