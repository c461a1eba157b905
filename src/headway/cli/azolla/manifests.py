"""``headway azolla request-manifest``, ``show``, ``events`` and ``unpark``: the operator's page."""

import time
from typing import Annotated

import typer
from rich.markdown import Markdown

from headway.cli.azolla.desk import AsJson, Limit, echo_rows, on_its_database
from headway.cli.exits import FAILURE
from headway.cli.output import done, echo_json
from headway.cli.target import Target
from headway.cli.terminal import console
from headway.domain.text import for_terminal
from headway.errors import HeadwayError
from headway.store import events, workorders
from headway.store.engine import Store
from headway.store.events import KnownEvent
from headway.store.workorders import Judged

LOOK_AGAIN = 0.25
PAGE_LIMIT = 100_000


def request_manifest(
    target: Target,
    wait: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0.1, help="Wait for the page so long, and print it."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask for the page "where was I, across all deployments?".

    Example: headway azolla request-manifest shop:hw --wait 30
    """
    with on_its_database(target) as (app, store):
        event_id = app.request_manifest()
        app.runtime.store.close()
        if wait is None:
            done(f"requested: {event_id}", {"event_id": event_id}, as_json=as_json)
            if not as_json:
                typer.echo(f"A running headway builds the page: headway azolla show {target}")
            return
        found = _awaited(store, event_id, wait)
        _echo_page_json(found) if as_json else echo_page(found)


def _awaited(store: Store, event_id: str, seconds: float) -> Judged:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with store.reading() as tx:
            found = workorders.newest_judged(tx, event_id)
            known = events.find(tx, event_id)
        if found is not None:
            return found
        if known is not None and known.parked_at is not None:
            raise HeadwayError(
                f"{event_id} is parked after {known.attempts} attempts: {_why(known)}"
            )
        time.sleep(LOOK_AGAIN)
    raise HeadwayError(
        f"no page within {seconds:g} s; is a headway running on this database? headway run"
    )


def show(
    target: Target,
    event: Annotated[
        str | None, typer.Option(metavar="EVENT", help="The page of this request; else the newest.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the newest page, or why there is none.

    Example: headway azolla show shop:hw
    """
    with on_its_database(target) as (_, store), store.reading() as tx:
        found = workorders.newest_judged(tx, event)
    if found is None:
        what = "there is no page yet" if event is None else f"there is no page of {event}"
        raise HeadwayError(f"{what}; ask for one: headway azolla request-manifest {target}")
    _echo_page_json(found) if as_json else echo_page(found)
    if found.page is None:
        raise typer.Exit(FAILURE)


def _echo_page_json(found: Judged) -> None:
    echo_json({"session_manifest": found.page, "run_record": found.record})


def echo_page(found: Judged) -> None:
    """Print a page as people read it; where one cannot look at it, as the text it is.

    >>> echo_page(judged)  # doctest: +SKIP
    """
    if found.page is None:
        typer.echo(f"no page: {found.record.gate_reason}")
        return
    screen, content = console(), for_terminal(found.bundle.content, PAGE_LIMIT)
    if screen.is_terminal:
        screen.print(Markdown(content))
    else:
        typer.echo(content)


def list_events(target: Target, limit: Limit = 20, as_json: AsJson = False) -> None:
    """List what was requested, newest first, and what has become of it.

    Example: headway azolla events shop:hw
    """
    with on_its_database(target) as (_, store), store.reading() as tx:
        found = events.newest(tx, limit)
    if as_json:
        echo_json([_facts(one) for one in found])
        return
    rows = [
        (f"{one.event.created_at:%Y-%m-%d %H:%M:%S}", one.event.event_id, _state(one), _why(one))
        for one in found
    ]
    echo_rows(["requested (UTC)", "event", "state", "why"], rows, "nothing was requested")


def unpark(
    target: Target,
    event: Annotated[str, typer.Argument(metavar="EVENT", help="The id of a parked event.")],
    as_json: AsJson = False,
) -> None:
    """Put a parked event back into the line, with all its attempts.

    Example: headway azolla unpark shop:hw event-3f9a1c2b5d6e
    """
    with on_its_database(target) as (_, store), store.writing() as tx:
        if not events.unpark(tx, event):
            raise HeadwayError(
                f"event {event!r} is not parked; see which are: headway azolla events {target}"
            )
    facts = {"event_id": event, "unparked": True}
    done(f"{event} is back in the line", facts, as_json=as_json)


def _facts(known: KnownEvent) -> dict[str, object]:
    state = {"state": _state(known), "attempts": known.attempts, "error": _why(known) or None}
    return {**known.event.model_dump(mode="json"), **state}


def _state(known: KnownEvent) -> str:
    if known.event.processed:
        return str(known.terminal_reason)
    if known.parked_at is not None:
        return "parked"
    return f"waits, tried {known.attempts} times" if known.attempts else "waits"


def _why(known: KnownEvent) -> str:
    if known.event.processed:
        return ""
    return known.trouble if known.parked_at is not None else known.last_error or ""
