"""``headway azolla query``: ask another deployment, and see what it says."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import uuid4

import typer

from headway.cli.azolla.registry import checked_peer, registry_of
from headway.cli.serving import counted
from headway.cli.target import Target, load
from headway.cli.terminal import complain, plain, say
from headway.domain.azolla.artifacts import ArtifactType, ResponseStatus, SubstrateQuery
from headway.domain.azolla.filters import filter_of
from headway.domain.azolla.ids import derived
from headway.domain.text import shown
from headway.errors import DefinitionError
from headway.federation.peers import PeerClient

NOT_ANSWERED = 1
LONGEST_LINE = 2000


def query(
    target: Target,
    peer: Annotated[str, typer.Argument(metavar="PEER", help="Which deployment to ask.")],
    artifact_type: Annotated[ArtifactType, typer.Argument(metavar="TYPE", help="What to ask for.")],
    filters: Annotated[
        list[str] | None,
        typer.Option(
            "--filter", metavar="KEY=VALUE", help="Only these; a key given twice means either."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object: response and note.")
    ] = False,
) -> None:
    """Ask a peer for its pause_state, objective or blocker_ref artifacts; one line for each.

    Exits with 1 if it denies it or does not answer.

    Example: headway azolla query shop:hw sales pause_state --filter limit=5
    """
    app = load(target)
    registry = registry_of(app)
    chosen = _filter(filters or ())
    filter_of(artifact_type, chosen)
    asked = SubstrateQuery(
        query_id=derived("query", uuid4()),
        source_azolla_id=registry.own.id,
        target_azolla_id=checked_peer(registry, peer),
        artifact_type=artifact_type,
        filter=chosen,
        created_at=datetime.now(UTC),
    )
    response, note = PeerClient(registry, app.settings.azolla_query_timeout).query(peer, asked)
    if as_json:
        told = {"response": response.model_dump(mode="json"), "note": note}
        typer.echo(json.dumps(told, indent=2))
    else:
        for one in response.results:
            typer.echo(plain(json.dumps(one, ensure_ascii=False), LONGEST_LINE))
    if response.status is not ResponseStatus.OK:
        complain(f"{peer}: {response.status}: {note}")
        raise typer.Exit(NOT_ANSWERED)
    say(f"{peer}: {counted(len(response.results), 'result')}")


def _filter(given: Iterable[str]) -> dict[str, Any]:
    """``reason=GATE_FAILED limit=5`` as a filter; a value that is JSON is read as such."""
    found: dict[str, Any] = {}
    for one in given:
        key, equals, text = one.partition("=")
        if not (key and equals):
            raise DefinitionError(
                f"--filter = {shown(one)}: must be KEY=VALUE; for example --filter limit=10"
            )
        value = _value(text)
        found[key] = [*_listed(found[key]), value] if key in found else value
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
