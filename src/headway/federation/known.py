"""Whom the blueprint registry names, as people look at it: without keys, and without failing."""

from dataclasses import dataclass

from headway.definition.app import Headway
from headway.errors import DefinitionError
from headway.federation.registry import Blueprint, Peer, Registry

NO_REGISTRY = (
    "No blueprint registry is set up, so this deployment asks nobody but itself. "
    "Write one and name it in azolla_registry."
)


@dataclass(frozen=True)
class KnownPeer:
    """A deployment in the registry; ``url`` is None for this one itself."""

    id: str
    url: str | None
    blueprint: str
    reads: tuple[str, ...]
    stores: tuple[str, ...]
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Known:
    """This deployment and its peers, or what keeps them from being known."""

    own: KnownPeer | None = None
    peers: tuple[KnownPeer, ...] = ()
    trouble: str | None = None


def known_peers(app: Headway) -> Known:
    """What the registry of *app* says.

    >>> known_peers(Headway("warehouse")).trouble == NO_REGISTRY
    True
    """
    if app.settings.azolla_registry is None:
        return Known(trouble=NO_REGISTRY)
    try:
        registry = Registry.load(app.settings.azolla_registry)
    except DefinitionError as error:
        return Known(trouble=str(error))
    own = _known(registry.own.id, None, registry.own.blueprint)
    return Known(own, tuple(_peer(peer) for peer in registry.peers.values()))


def _peer(peer: Peer) -> KnownPeer:
    return _known(peer.id, peer.url, peer.blueprint, tuple(key.id for key in peer.keys))


def _known(
    azolla_id: str, url: str | None, blueprint: Blueprint, keys: tuple[str, ...] = ()
) -> KnownPeer:
    reads = tuple(sorted(map(str, blueprint.cross_azolla_reads)))
    stores = tuple(sorted(map(str, blueprint.stores)))
    return KnownPeer(azolla_id, url, blueprint.name, reads, stores, keys)
