"""The registry an application names, for the commands that need one."""

from headway.definition.app import Headway
from headway.domain.text import shown
from headway.errors import DefinitionError, SettingsError
from headway.federation.registry import Registry


def registry_path(app: Headway) -> str:
    """The file the application's settings name.

    >>> registry_path(Headway("warehouse", azolla_registry="azolla.toml"))
    'azolla.toml'
    """
    if app.settings.azolla_registry is None:
        raise SettingsError(
            "azolla_registry=None must be the file of the blueprint registry, for example "
            "HEADWAY_AZOLLA_REGISTRY=azolla.toml (docs/reference/membrane.md)"
        )
    return app.settings.azolla_registry


def registry_of(app: Headway) -> Registry:
    """What that file says.

    >>> registry_of(Headway("warehouse", azolla_registry="azolla.toml"))  # doctest: +SKIP
    """
    return Registry.load(registry_path(app))


def checked_peer(registry: Registry, peer_id: str) -> str:
    """*peer_id* if it is in the registry.

    >>> checked_peer(Registry.alone("warehouse"), "sales")
    Traceback (most recent call last):
    headway.errors.DefinitionError: PEER = 'sales': must be a peer of the registry, for example \
one of: none is in it
    """
    if peer_id not in registry.peers:
        known = ", ".join(registry.peers) or "none is in it"
        raise DefinitionError(
            f"PEER = {shown(peer_id)}: must be a peer of the registry, for example one of: {known}"
        )
    return peer_id
