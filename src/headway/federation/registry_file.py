"""The registry's TOML file: its form, its secrets, and one line for everything wrong with it."""

import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from headway.domain.azolla.artifacts import ArtifactType
from headway.domain.text import clause, shown
from headway.errors import DefinitionError
from headway.federation.signing import AZOLLA_ID

SHORTEST_SECRET = 32
FEWEST_CHARACTERS = 12
LARGEST_FILE = 1024 * 1024
LARGEST_SECRET = 4096

EXAMPLES: dict[str, str] = {
    "version": "version = 1",
    "azolla": '[azolla] with id = "warehouse" and blueprint = "task-management"',
    "id": 'id = "warehouse"',
    "blueprint": 'blueprint = "task-management"',
    "blueprints": "[blueprints.task-management]",
    "cross_azolla_reads": 'cross_azolla_reads = ["pause_state", "objective"]',
    "stores": 'stores = ["pause_state", "objective", "blocker_ref"]',
    "peers": "[peers.sales]",
    "url": 'url = "http://127.0.0.1:8701"',
    "keys": 'keys = [{ id = "2026-11", secret_file = "sales.key" }]',
    "secret_file": 'secret_file = "sales.key"',
    "secret_env": 'secret_env = "SALES_KEY"',
}
_RULES = {
    "missing": "must be there",
    "extra_forbidden": "is no field here",
    "literal_error": "must be 1, the version this headway reads",
    "enum": "must be one of pause_state, objective, blocker_ref",
    "too_short": "must have one or two",
    "too_long": "must have one or two",
    "string_type": "must be a text",
    "tuple_type": "must be a list",
    "dict_type": "must be a table",
    "model_type": "must be a table",
}


def _azolla_id(value: str) -> str:
    if not AZOLLA_ID.fullmatch(value):
        raise ValueError("must be 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-'")
    return value


def _url(value: str) -> str:
    try:
        parts = urlsplit(value)
        fine = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        fine = False
    if not fine or not re.fullmatch(r"[!-~]+", value):
        raise ValueError("must be an http or https address")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not hold a name or password; the keys say who asks")
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError("must end after host and port")
    return f"{parts.scheme}://{parts.netloc}"


AzollaId: TypeAlias = Annotated[str, AfterValidator(_azolla_id)]


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class OwnEntry(_Entry):
    """``[azolla]``."""

    id: AzollaId
    blueprint: AzollaId


class BlueprintEntry(_Entry):
    """``[blueprints.NAME]``."""

    cross_azolla_reads: tuple[ArtifactType, ...]
    stores: tuple[ArtifactType, ...]


class KeyEntry(_Entry):
    """One of a peer's ``keys``."""

    id: AzollaId
    secret_file: str | None = None
    secret_env: str | None = None

    @model_validator(mode="after")
    def _one_place(self) -> "KeyEntry":
        if (self.secret_file is None) == (self.secret_env is None):
            raise ValueError("must name either secret_file or secret_env")
        return self


class PeerEntry(_Entry):
    """``[peers.NAME]``."""

    url: Annotated[str, AfterValidator(_url)]
    blueprint: AzollaId
    keys: Annotated[tuple[KeyEntry, ...], Field(min_length=1, max_length=2)]


class RegistryEntry(_Entry):
    """The whole file."""

    version: Literal[1]
    azolla: OwnEntry
    blueprints: dict[AzollaId, BlueprintEntry]
    peers: dict[AzollaId, PeerEntry] = Field(default_factory=dict)


def read_registry(file: Path) -> RegistryEntry:
    """What the file says, checked field by field."""
    advice = "name the file of the blueprint registry, for example azolla.toml"
    content, _ = _content(file, file, advice, LARGEST_FILE)
    try:
        given = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DefinitionError(
            f"{file}: is no TOML: {told}; for example {EXAMPLES['version']}"
        ) from None
    version = given.get("version")
    if type(version) is not int or version != 1:
        # Said before anything else: in another version the rest may mean something else.
        raise refuse(file, "version", version, _RULES["literal_error"], "1")
    try:
        return RegistryEntry.model_validate(given)
    except ValidationError as error:
        raise _explained(file, error) from None


def read_secret(file: Path, where: str, key: KeyEntry) -> bytes:
    """The secret of a key, from its own file beside the registry, or from the environment."""
    if key.secret_env is not None:
        secret = os.environ.get(key.secret_env, "").encode(errors="surrogateescape").strip()
        place = f"secret_env {key.secret_env}"
    else:
        beside = file.parent / str(key.secret_file)
        advice = f"{where}: make it with: headway azolla keygen {beside.name}"
        content, mode = _content(file, beside, advice, LARGEST_SECRET)
        if mode & stat.S_IRWXO:
            raise refuse(file, where, beside.name, "must not be open to every user", "chmod 600")
        secret, place = content.strip(), f"secret_file {beside.name}"
    if len(secret) < SHORTEST_SECRET or len(set(secret)) < FEWEST_CHARACTERS:
        rule = f"must hold at least {SHORTEST_SECRET} random bytes"
        raise DefinitionError(
            f"{file}: {where}: {place} {rule}; make one with: headway azolla keygen"
        )
    return secret


def refuse(file: Path, where: str, value: object, rule: str, example: str) -> DefinitionError:
    """The one line for a wrong value."""
    return DefinitionError(f"{file}: {where} = {shown(value)}: {rule}; for example {example}")


def _content(file: Path, wanted: Path, advice: str, most: int) -> tuple[bytes, int]:
    """The bytes of a file and who may read it, asked of the same open file."""
    told = f"{file}: " if wanted == file else f"{file}: {wanted.name} "
    try:
        with wanted.open("rb") as opened:
            content, mode = opened.read(most + 1), os.fstat(opened.fileno()).st_mode
    except OSError as error:
        raise DefinitionError(f"{told}cannot be read: {error.strerror}; {advice}") from None
    if len(content) > most:
        raise DefinitionError(f"{told}has more than {most} bytes; {advice}")
    return content, mode


def _explained(file: Path, error: ValidationError) -> DefinitionError:
    first = error.errors(include_url=False)[0]
    path = [str(part) for part in first["loc"] if part != "[key]"]
    rule = _RULES.get(first["type"], clause(first["msg"].removeprefix("Value error, ")))
    example = next((EXAMPLES[part] for part in reversed(path) if part in EXAMPLES), "version = 1")
    value = "" if first["type"] == "missing" else f" = {_safely(first['input'])}"
    return DefinitionError(f"{file}: {'.'.join(path)}{value}: {rule}; for example {example}")


def _safely(value: Any) -> str:
    """What may hold a secret is not shown: a table, or an address with a password."""
    return shown(value) if isinstance(value, str | int) and "@" not in str(value) else "…"
