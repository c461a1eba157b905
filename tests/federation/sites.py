"""Deployments for the tests: their registry files, and requests signed as a peer signs them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlalchemy import func, insert, select

from headway.domain.azolla.artifacts import (
    ArtifactType,
    Objective,
    ObjectiveStatus,
    ObjectiveType,
    PauseReason,
    PauseState,
)
from headway.federation.signing import Key, Request
from headway.store.artifact_rows import to_row
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.store.tables import objective, pause_state, schema
from tests.store.factories import everything

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
OWN = "warehouse"
READER, EXECUTOR = "sales", "patches"
QUERY_PATH, PING_PATH = "/azolla/v1/query", "/azolla/v1/ping"
# What a request may change, and nothing else.
NOTED = ("headway_nonce", "headway_audit")

SECRETS = {
    READER: "qN3mZr8Vt1Kx7Lw5Yb2Hc9Jd4Fg6Sp0A",
    EXECUTOR: "aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV",
    "stranger": "zY9xW8vU7tS6rQ5pO4nM3lK2jI1hG0fE",
    "next": "Mn7Bv6Cx5Zl4Kj3Hg2Fd1Sa0Qw9Er8Ty",
}
KEY = Key("2026-11", SECRETS[READER].encode())
EXECUTORS_KEY = Key("2026-11", SECRETS[EXECUTOR].encode())
NEXT_KEY = Key("2026-12", SECRETS["next"].encode())

BLUEPRINTS = """
[blueprints.task-management]
cross_azolla_reads = ["pause_state", "objective"]
stores = ["pause_state", "objective"]

[blueprints.code-patch]
cross_azolla_reads = []
stores = ["pause_state", "objective", "blocker_ref"]
"""

HeaderList = list[tuple[str, str]]


def write_key(folder: Path, name: str, secret: str) -> str:
    """A key's file, for its owner alone."""
    file = folder / f"{name}.key"
    file.touch(mode=0o600)
    file.write_text(secret + "\n")
    return file.name


def write_registry(
    folder: Path,
    own: str = OWN,
    *,
    urls: Mapping[str, str] | None = None,
    keys: Mapping[str, Sequence[Key]] | None = None,
    blueprints: Mapping[str, str] | None = None,
) -> Path:
    """A registry in *folder* in which *own* knows the peers of *urls*; replaced in one step."""
    addresses = urls or {READER: "http://127.0.0.1:9", EXECUTOR: "http://127.0.0.1:9"}
    shared = keys or {READER: [KEY], EXECUTOR: [EXECUTORS_KEY]}
    kinds = {EXECUTOR: "code-patch"} | dict(blueprints or {})
    lines = ["version = 1", "[azolla]", f'id = "{own}"']
    lines += [f'blueprint = "{kinds.get(own, "task-management")}"', BLUEPRINTS]
    for peer, url in addresses.items():
        listed = ", ".join(
            f'{{ id = "{key.id}", secret_file = "'
            f'{write_key(folder, f"{peer}-{key.id}", key.secret.decode())}" }}'
            for key in shared[peer]
        )
        kind = kinds.get(peer, "task-management")
        lines += [f"[peers.{peer}]", f'url = "{url}"', f'blueprint = "{kind}"']
        lines += [f"keys = [{listed}]"]
    file, new = folder / "azolla.toml", folder / "azolla.toml.new"
    new.write_text("\n".join(lines) + "\n")
    new.replace(file)
    return file


def migrated(url: str, **options: Any) -> Store:
    store = Store(url, **options)
    migrate(store)
    return store


@contextmanager
def opened(url: str, **options: Any) -> Iterator[Store]:
    store = migrated(url, durable=False, **options)
    try:
        yield store
    finally:
        store.close()


def add_pause_state(store: Store, number: int = 1, text: str = "look at the log") -> None:
    paused = PauseState(
        objective_id=f"o{number}",
        azolla_id=OWN,
        reason=PauseReason.GATE_FAILED,
        prioritized_actions=(text,),
        created_at=NOW,
    )
    with store.writing() as tx:
        tx.connection.execute(insert(pause_state).values(to_row(paused, pause_id=f"p{number}")))


def add_objective(store: Store, urgency: int = 3) -> None:
    wanted = Objective(
        objective_id=f"objective-{urgency}",
        azolla_id=OWN,
        title="Ship it",
        acceptance_criteria="",
        objective_type=ObjectiveType.TICKET,
        status=ObjectiveStatus.TODO,
        importance=2,
        urgency=urgency,
        blocked_reason=None,
        blocked_on=(),
        metadata={},
        created_at=NOW,
        updated_at=NOW,
    )
    with store.writing() as tx:
        tx.connection.execute(insert(objective).values(to_row(wanted)))


def counted(store: Store) -> dict[str, int]:
    """The rows of every table."""
    with store.reading() as tx:
        return {
            table.name: tx.connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in schema.sorted_tables
        }


def kept(store: Store) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table that no request may touch."""
    return {name: rows for name, rows in everything(store).items() if name not in NOTED}


def a_query(**changes: Any) -> dict[str, Any]:
    """A query as JSON."""
    fields = {
        "query_id": f"query-{uuid4()}",
        "source_azolla_id": READER,
        "target_azolla_id": OWN,
        "artifact_type": ArtifactType.PAUSE_STATE.value,
        "filter": {},
        "created_at": NOW.isoformat(),
    }
    return fields | changes


@dataclass(frozen=True)
class Asking:
    """A request about to be sent."""

    request: Request
    headers: HeaderList

    @property
    def parts(self) -> tuple[str, str, HeaderList, bytes]:
        return self.request.method, self.request.path, self.headers, self.request.body

    def with_header(self, name: str, value: str | None) -> Asking:
        """One header changed after signing, or left out."""
        others = [(key, old) for key, old in self.headers if key != name]
        return replace(self, headers=others + ([] if value is None else [(name, value)]))

    def sent_as(self, **changes: Any) -> Asking:
        """Method, path or body changed after signing."""
        return replace(self, request=replace(self.request, **changes))


def asking(
    query: Mapping[str, Any] | bytes | None = None,
    *,
    key: Key = KEY,
    at: datetime | None = None,
    **changes: Any,
) -> Asking:
    """A signed request for *query*, or with this body."""
    given = a_query() if query is None else query
    body = given if isinstance(given, bytes) else json.dumps(given).encode()
    moment = int((at or datetime.now(UTC)).timestamp())
    fields: dict[str, Any] = {
        "source": READER,
        "target": OWN,
        "timestamp": moment,
        "nonce": uuid4().hex,
    }
    request = Request(**{"method": "POST", "path": QUERY_PATH, "body": body} | fields | changes)
    return Asking(request, list(request.signed_with(key).items()))
