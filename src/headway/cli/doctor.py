"""``headway doctor``: what is not as it should be in the database, and putting it right."""

import textwrap
from collections.abc import Iterator
from contextlib import closing
from typing import Annotated

import typer

from headway.cli.database import open_database, refuse_missing
from headway.cli.db import DatabaseUrl, OptionalTarget, address_of
from headway.cli.output import AsJson, echo_json
from headway.cli.progress import watched
from headway.cli.target import load
from headway.cli.terminal import plain, say
from headway.doctor.examination import Doctor, Report
from headway.doctor.findings import Finding
from headway.store.urls import described, shown

UNHEALTHY = 1
WIDTH = 80
INDENT = " " * 9
ROWS_SHOWN = 10


def doctor(
    target: OptionalTarget = None,
    database_url: DatabaseUrl = None,
    fix: Annotated[bool, typer.Option("--fix", help="Repair what can be repaired safely.")] = False,
    as_json: AsJson = False,
) -> None:
    """Look for what must not be in the database, and say it; exits 1 if something was found.

    With MODULE:APP the application's settings are known, and what depends on them is looked at too.

    Example: headway doctor shop:hw --fix
    """
    settings = None if target is None else load(target).settings
    address = address_of(target, database_url)
    named = bool(target or database_url)
    refuse_missing(address, named=named, by="--database-url URL or MODULE:APP")
    with closing(open_database(address)) as store:
        store.check()
        with watched(f"examining {shown(store.url)}: checks", hidden=as_json) as moved:
            report = Doctor(store, settings, tell=say, progress=moved).examine(fix=fix)
        where = described(address)
    if as_json:
        echo_json(_facts(report))
    else:
        for line in _lines(report, where):
            typer.echo(plain(line))
    if not report.healthy:
        raise typer.Exit(UNHEALTHY)


def _lines(report: Report, where: str) -> Iterator[str]:
    for finding in report.findings:
        yield from _about(finding)
    for name, count in report.repaired.items():
        yield f"repaired {name} ({count})"
    if report.skipped:
        named = ", ".join(report.skipped)
        yield from _wrapped(f"not looked at without MODULE:APP: {named}", "", "  ")
    yield from _wrapped(_verdict(report, where), "", "  ")


def _about(finding: Finding) -> Iterator[str]:
    yield f"{finding.severity:<8} {finding.check} ({finding.count})"
    yield from _wrapped(finding.sentence, INDENT, INDENT)
    for row in finding.rows[:ROWS_SHOWN]:
        yield from _wrapped(f"- {row}", INDENT, INDENT + "  ")
    if finding.count > ROWS_SHOWN:
        yield f"{INDENT}- and {finding.count - ROWS_SHOWN} more; --json lists them"
    label = "--fix: " if finding.repairable else "to do: "
    yield from _wrapped(label + finding.fix, INDENT, INDENT + "  ")


def _wrapped(text: str, first: str, further: str) -> list[str]:
    return textwrap.wrap(
        plain(text),
        WIDTH,
        initial_indent=first,
        subsequent_indent=further,
        break_on_hyphens=False,
    )


def _verdict(report: Report, where: str) -> str:
    if report.healthy:
        return f"healthy: {where}"
    counted = len(report.findings)
    return f"{counted} finding{'' if counted == 1 else 's'}: {where}"


def _facts(report: Report) -> dict[str, object]:
    findings = [
        {
            "check": one.check,
            "severity": one.severity.value,
            "sentence": one.sentence,
            "rows": list(one.rows),
            "fix": one.fix,
            "repairable": one.repairable,
        }
        for one in report.findings
    ]
    return {
        "healthy": report.healthy,
        "findings": findings,
        "repaired": dict(report.repaired),
        "skipped": list(report.skipped),
    }
