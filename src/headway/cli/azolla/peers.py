"""``headway azolla peers`` and ``ping``: whom this deployment knows, and who of them answers."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated

import typer
from rich.table import Table

from headway.cli.azolla.registry import checked_peer, registry_of
from headway.cli.output import AsJson, echo_json
from headway.cli.target import Target, load
from headway.cli.terminal import cell, console, plain
from headway.federation.peers import PeerClient, Ping
from headway.federation.registry import Blueprint, Registry

UNREACHED = 1


def peers(target: Target, as_json: AsJson = False) -> None:
    """List the deployments in the registry, this one first: address, blueprint, keys.

    Example: headway azolla peers shop:hw
    """
    registry = registry_of(load(target))
    if as_json:
        echo_json([_facts(None, registry.own.id, registry.own.blueprint), *_known(registry)])
        return
    table = Table(box=None, pad_edge=False)
    for title in ("AZOLLA", "ADDRESS", "KEYS", "BLUEPRINT", "READS", "STORES"):
        table.add_column(title)
    own = registry.own
    table.add_row(*map(cell, (own.id, "this deployment", "", *_told(own.blueprint))))
    for peer in registry.peers.values():
        keys = ", ".join(key.id for key in peer.keys)
        table.add_row(*map(cell, (peer.id, peer.url, keys, *_told(peer.blueprint))))
    console().print(table)


def ping(
    target: Target,
    peer: Annotated[
        str | None, typer.Argument(metavar="PEER", help="Only this one, not all of them.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask peers whether they answer, know this deployment and are who they should be.

    Exits with 1 if one does not.

    Example: headway azolla ping shop:hw sales
    """
    app = load(target)
    registry = registry_of(app)
    chosen = [checked_peer(registry, peer)] if peer is not None else list(registry.peers)
    client = PeerClient(registry, app.settings.azolla_query_timeout)
    answered = [client.ping(one) for one in chosen]
    if as_json:
        echo_json(answered)
    for one in () if as_json else answered:
        typer.echo(plain(f"{one.peer_id}: {_how_it_went(one)}"))
    if any(one.note is not None for one in answered):
        raise typer.Exit(UNREACHED)


def _known(registry: Registry) -> Iterator[dict[str, object]]:
    for peer in registry.peers.values():
        yield _facts(peer.url, peer.id, peer.blueprint)


def _facts(address: str | None, azolla: str, blueprint: Blueprint) -> dict[str, object]:
    return {
        "azolla": azolla,
        "address": address,
        "blueprint": blueprint.name,
        "reads": sorted(blueprint.cross_azolla_reads),
        "stores": sorted(blueprint.stores),
    }


def _told(blueprint: Blueprint) -> tuple[str, str, str]:
    reads = ", ".join(sorted(blueprint.cross_azolla_reads)) or "nothing"
    return blueprint.name, reads, ", ".join(sorted(blueprint.stores)) or "nothing"


def _how_it_went(ping: Ping) -> str:
    if ping.ahead is None:
        return ping.note or "did not answer"
    side = "behind" if ping.ahead < timedelta(0) else "ahead of"
    return f"answers; its clock is {abs(ping.ahead).total_seconds():.1f} s {side} ours"
