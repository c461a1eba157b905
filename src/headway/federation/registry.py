"""The blueprint registry: who this deployment is, whom it knows, and who may read what.

Frozen values; :mod:`headway.federation.registry_file` reads them from a file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from headway.domain.azolla.artifacts import ArtifactType
from headway.errors import DefinitionError
from headway.federation.registry_file import (
    EXAMPLES,
    BlueprintEntry,
    RegistryEntry,
    read_registry,
    read_secret,
    refuse,
)
from headway.federation.signing import Key
from headway.observe import Observer

Marks = tuple[tuple[int, int, int, int], ...]


@dataclass(frozen=True)
class Blueprint:
    """A kind of deployment: what it may read elsewhere, and what it stores itself.

    >>> Blueprint("code-patch", frozenset(), frozenset(ArtifactType)).cross_azolla_reads
    frozenset()
    """

    name: str
    cross_azolla_reads: frozenset[ArtifactType]
    stores: frozenset[ArtifactType]


@dataclass(frozen=True)
class Own:
    """This deployment itself."""

    id: str
    blueprint: Blueprint


@dataclass(frozen=True)
class Peer:
    """Another deployment: where it answers, and the one or two keys shared with it.

    The first key signs what is sent to it; what comes from it may be signed with either.
    """

    id: str
    url: str
    blueprint: Blueprint
    keys: tuple[Key, ...]

    def key(self, key_id: str) -> Key | None:
        """The key of this name, if it is valid."""
        return next((key for key in self.keys if key.id == key_id), None)


@dataclass(frozen=True)
class Registry:
    """Everybody known, in one version of the file.

    >>> Registry.alone("warehouse").own.id
    'warehouse'
    """

    own: Own
    peers: Mapping[str, Peer] = field(default_factory=lambda: MappingProxyType({}))
    files: tuple[Path, ...] = field(default=(), repr=False, compare=False)

    @classmethod
    def load(cls, path: str | Path) -> "Registry":
        """The registry in the file at *path*, or a DefinitionError that names what is wrong in it.

        >>> Registry.load("nothere.toml")
        Traceback (most recent call last):
        headway.errors.DefinitionError: nothere.toml: cannot be read: No such file or directory; \
name the file of the blueprint registry, for example azolla.toml
        """
        file = Path(path)
        return _registry(file, read_registry(file))

    @classmethod
    def alone(cls, azolla_id: str) -> "Registry":
        """A deployment that knows nobody else."""
        everything = frozenset(ArtifactType)
        return cls(Own(azolla_id, Blueprint("task-management", everything, everything)))

    def blueprint_of(self, azolla_id: str) -> Blueprint | None:
        """The blueprint of a known deployment, this one included.

        >>> Registry.alone("warehouse").blueprint_of("sales") is None
        True
        """
        if azolla_id == self.own.id:
            return self.own.blueprint
        peer = self.peers.get(azolla_id)
        return None if peer is None else peer.blueprint

    def may_read(self, source: str, artifact_type: str) -> bool:
        """Whether the blueprint of *source* lists this type among what it reads elsewhere.

        >>> Registry.alone("warehouse").may_read("sales", "objective")
        False
        """
        blueprint = self.blueprint_of(source)
        return blueprint is not None and artifact_type in blueprint.cross_azolla_reads

    def stores(self, artifact_type: str) -> bool:
        """Whether this deployment stores artifacts of this type.

        >>> Registry.alone("warehouse").stores("workorder")
        False
        """
        return artifact_type in self.own.blueprint.stores


class RegistryFile:
    """The registry as it is now: keys are added and revoked without a restart.

    A file that has become wrong is told once as ``registry.refused``; the last right one stays.

    >>> RegistryFile("azolla.toml", Observer()).current()  # doctest: +SKIP
    """

    def __init__(self, path: str | Path, observer: Observer) -> None:
        self._path = Path(path)
        self._observer = observer
        self._told = ""
        self._state: tuple[Marks, Registry] = self._read()

    def current(self) -> Registry:
        """What the file says, read again if it or a key's file has changed."""
        seen, registry = self._state
        if _marks(registry) == seen:
            return registry
        try:
            self._state = self._read()
        except DefinitionError as error:
            self._tell(str(error))
        return self._state[1]

    def _read(self) -> tuple[Marks, Registry]:
        # Marked before it is read: what changes in between is read once more.
        marks = _marks(Registry.load(self._path))
        return marks, Registry.load(self._path)

    def _tell(self, problem: str) -> None:
        if problem != self._told:
            self._told = problem
            self._observer.emit("registry.refused", error=problem)


def _marks(registry: Registry) -> Marks:
    return tuple(_mark(file) for file in registry.files)


def _mark(file: Path) -> tuple[int, int, int, int]:
    try:
        found = file.stat()
    except OSError:
        return (0, 0, 0, 0)
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _registry(file: Path, entry: RegistryEntry) -> Registry:
    known = {name: _blueprint(name, one) for name, one in entry.blueprints.items()}
    own = Own(entry.azolla.id, _known(file, known, "azolla.blueprint", entry.azolla.blueprint))
    peers = {
        name: Peer(
            name,
            one.url,
            _known(file, known, f"peers.{name}.blueprint", one.blueprint),
            tuple(Key(key.id, read_secret(file, f"peers.{name}.keys", key)) for key in one.keys),
        )
        for name, one in entry.peers.items()
    }
    _check_names(file, own.id, peers)
    _check_secrets(file, peers)
    secrets = (key.secret_file for one in entry.peers.values() for key in one.keys)
    files = (file, *(file.parent / name for name in secrets if name is not None))
    return Registry(own, MappingProxyType(peers), files)


def _blueprint(name: str, entry: BlueprintEntry) -> Blueprint:
    return Blueprint(name, frozenset(entry.cross_azolla_reads), frozenset(entry.stores))


def _known(file: Path, known: Mapping[str, Blueprint], where: str, name: str) -> Blueprint:
    if name not in known:
        among = " or ".join(known) or "none is declared"
        example = next(iter(known), EXAMPLES["blueprints"])
        raise refuse(file, where, name, f"must be a blueprint of this file ({among})", example)
    return known[name]


def _check_names(file: Path, own: str, peers: Mapping[str, Peer]) -> None:
    taken = {own.casefold(): own}
    for name in peers:
        other = taken.setdefault(name.casefold(), name)
        if name == own:
            raise refuse(file, f"peers.{name}", name, "is this deployment itself", "sales")
        if other != name:
            raise refuse(file, f"peers.{name}", name, f"is too like {other}", "sales")


def _check_secrets(file: Path, peers: Mapping[str, Peer]) -> None:
    """A secret that two peers know would let either speak for the other."""
    owners: dict[bytes, str] = {}
    for peer in peers.values():
        if len({key.id for key in peer.keys}) < len(peer.keys):
            ids = ", ".join(key.id for key in peer.keys)
            raise refuse(file, f"peers.{peer.id}.keys", ids, "must differ in their ids", "2026-12")
        for key in peer.keys:
            other = owners.setdefault(key.secret, peer.id)
            if other != peer.id:
                rule = f"has the same secret as a key of {other}; make one with azolla keygen"
                raise refuse(file, f"peers.{peer.id}.keys", key.id, rule, f"{peer.id}.key")
