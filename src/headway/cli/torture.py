"""``headway torture``: kills, pauses and restarts, and whether everything held."""

import random
import signal
from pathlib import Path
from typing import Annotated

import typer

from headway.torture.facts import Facts
from headway.torture.invariants import INVARIANTS, SHOWN, breaches
from headway.torture.mutations import checked
from headway.torture.outages import activations_that_waited, starts_that_waited
from headway.torture.plan import Plan
from headway.torture.processes import noticed_after
from headway.torture.run import torture as run_torture
from headway.torture.simulation import simulate as play

FAILURE = 1


def torture(
    minutes: Annotated[
        float, typer.Option(min=0.5, max=240, help="How long there are load and faults.")
    ] = 5.0,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Draw the same faults again. Default: a new one.")
    ] = None,
    together: Annotated[
        bool, typer.Option("--together", help="Have ten processes that do everything.")
    ] = False,
    database_url: Annotated[
        str | None,
        typer.Option(
            help="A PostgreSQL database for this alone, instead of a server of our own; "
            "it is not restarted then."
        ),
    ] = None,
    simulate: Annotated[
        int | None,
        typer.Option(
            metavar="STORIES",
            min=1,
            help="Play seeded stories on SQLite with a virtual clock instead, without processes.",
        ),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the evidence and the log in this new folder."),
    ] = None,
    mutation: Annotated[
        str | None,
        typer.Option("--break", metavar="NAME", help="Break headway on purpose; must be noticed."),
    ] = None,
) -> None:
    """Kill, pause and restart a deployment on PostgreSQL, and check that everything holds.

    Nothing may be lost, done twice or over a limit through kill -9, SIGSTOP and restarts.

    Example: headway torture --minutes 1 --seed 7
    """
    if simulate is not None:
        _simulate(simulate)
        return
    # Whoever ends it, its server and its processes end with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    plan = Plan(_drawn(seed), minutes, together=together)
    _judge(run_torture(plan, typer.echo, database_url, checked(mutation), keep))


def _drawn(seed: int | None) -> int:
    chosen = random.SystemRandom().randrange(10**6) if seed is None else seed
    typer.echo(f"seed {chosen}")
    return chosen


def _judge(found: Facts) -> None:
    typer.echo(_summary(found))
    broken, seed = breaches(found), found.plan.seed
    for name, told in broken.items():
        typer.echo(f"BROKEN {name}: {len(told)}")
        for sentence in told[:SHOWN]:
            typer.echo(f"  {sentence}")
    if broken:
        typer.echo(f"seed {seed}: {len(broken)} of {len(INVARIANTS)} invariants do not hold")
        raise typer.Exit(FAILURE)
    typer.echo(f"seed {seed}: all {len(INVARIANTS)} invariants hold")


def _simulate(stories: int) -> None:
    refused = 0
    for seed in range(stories):
        broken, late = play(seed)
        refused += late
        if broken:
            typer.echo(f"story {seed}: " + "; ".join(broken[:SHOWN]))
            raise typer.Exit(FAILURE)
        if seed % 50 == 49:
            typer.echo(f"{seed + 1} stories, {refused} late writes refused")
    typer.echo(f"all {stories} stories ended well; {refused} late writes were refused")


def _summary(facts: Facts) -> str:
    counted = {what: len(facts.noted(what)) for what in ("killed", "stopped", "terminated", "down")}
    ended = sum(1 for line in facts.noted("fault") if line.words[0] == "session_ended")
    waits = sorted(noticed_after(facts))
    noticed = f", noticed after {waits[int(0.99 * (len(waits) - 1))]:.1f} s (p99)" if waits else ""
    return (
        f"{len(facts.executions)} executions; {counted['killed']} killed{noticed}, "
        f"{counted['stopped']} stopped, {counted['terminated']} told to end, "
        f"{counted['down']} restarts of the database, for which {len(starts_that_waited(facts))} "
        f"starts and {len(activations_that_waited(facts))} activations waited, "
        f"{ended} sessions ended; "
        f"{len(facts.noted('execution.refused'))} late writes refused"
    )
