"""Many manifests at once, which PostgreSQL takes by COPY, are written like each alone."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from typing import Any

from sqlalchemy import text

from headway.domain.manifest import Manifest
from headway.domain.retry import RetryPolicy
from headway.domain.schedule import cron, once
from headway.domain.time_options import TimeOptions
from headway.store import removal
from headway.store.bulk import COPY_FROM, LOOKED_OVER_FROM
from headway.store.engine import Store
from headway.store.tables import manifest, manifest_state
from tests.store.factories import a_declaration, a_manifest, apply, rows_of

WICKED = ("a\\b", "\\N", "\\.", "ключ", "🚀", "'", '"', "%s", "a\\tb")


def test_many_at_once_are_written_like_each_alone(store: Store) -> None:
    """By COPY on PostgreSQL, whose text has signs of its own for tabs, ends of lines and NULL."""
    moment = datetime(2030, 1, 1, 12, 30, 0, 250000, tzinfo=timezone(timedelta(hours=5)))
    others: list[dict[str, Any]] = [
        {"schedule": cron("*/5 * * * *", "Europe/Berlin"), "priority": 3, "enabled": False},
        {"schedule": once(moment), "timeout": timedelta(minutes=3), "batch": "\\N"},
        {"retry": RetryPolicy(timedelta(seconds=1.5), 3.0, timedelta(minutes=2), 0.25)},
        {"time": TimeOptions(variance=timedelta(seconds=9), tz="Asia/Tokyo")},
    ]
    items = [
        a_manifest(f"{name}-{number}", input=json.dumps({"text": name + "\t\n\r"}), **terms)
        for number in range(COPY_FROM // len(WICKED))
        for name, terms in zip(WICKED, itertools.cycle(others), strict=False)
    ]
    raw = [a_manifest(f"raw-{number}", input="a\tb\nc\rd\\e") for number in range(COPY_FROM)]
    assert len(items) < COPY_FROM < len(items) + len(raw)
    apply(store, a_declaration(*items))
    alone = written_by_name(store, items)
    with store.writing() as tx:
        removal.remove(tx, [row["id"] for row in rows_of(store, manifest)])
    assert apply(store, a_declaration(*items, *raw)).created == len(items) + len(raw)
    assert written_by_name(store, items) == alone
    found = written_by_name(store, raw)
    assert {row["input"] for row in found.values()} == {"a\tb\nc\rd\\e"}
    assert len(rows_of(store, manifest_state)) == 2 * len(items) + len(raw)


def written_by_name(store: Store, items: Iterable[Manifest]) -> dict[str, dict[str, Any]]:
    """What the manifests of these names that are there have in their columns, but for their ids."""
    names = {item.external_id for item in items}
    return {
        row["external_id"]: {name: value for name, value in row.items() if name != "id"}
        for row in rows_of(store, manifest)
        if row["external_id"] in names and row["removed_at"] is None
    }


def test_postgresql_knows_at_once_how_many_there_are(store: Store) -> None:
    """Until it has looked it plans as if there were none; SQLite counts on nothing of the kind."""
    apply(store, a_declaration(*(a_manifest(f"one-{n}") for n in range(LOOKED_OVER_FROM))))
    if store.on_postgresql:
        counted = text("SELECT reltuples FROM pg_class WHERE oid = CAST(:name AS regclass)")
        with store.reading() as tx:
            for table in (manifest, manifest_state):
                found = tx.connection.execute(counted, {"name": table.name}).scalar_one()
                assert found == LOOKED_OVER_FROM
