"""Who may act, and what was answered to requests that may come again."""

from sqlalchemy import Column, Index, Integer, Table, Text, text

from headway.store.tables.base import id_column, schema
from headway.store.tables.columns import mapped, moment, one_of, text_
from headway.store.types import Instant

token = Table(
    "headway_token",
    schema,
    id_column(),
    text_("name"),
    text_("prefix"),
    text_("sha256"),
    text_("scope"),
    moment("created_at"),
    text_("created_by"),
    Column("expires_at", Instant),
    Column("last_used_at", Instant),
    Column("revoked_at", Instant),
    one_of("token", "scope", "read operate admin"),
    Index("headway_token_of_prefix", "prefix", unique=True),
    Index(
        "headway_token_of_name",
        "name",
        unique=True,
        postgresql_where=text("revoked_at IS NULL"),
        sqlite_where=text("revoked_at IS NULL"),
    ),
    sqlite_autoincrement=True,
)

idempotency = Table(
    "headway_idempotency",
    schema,
    Column("actor", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    text_("digest"),
    Column("status", Integer),
    mapped("headers"),
    Column("body", Text),
    moment("created_at"),
    Index("headway_idempotency_oldest", "created_at"),
)

logout = Table(
    "headway_logout",
    schema,
    Column("session_id", Text, primary_key=True),
    moment("until"),
    Index("headway_logout_oldest", "until"),
)

wrong_try = Table(
    "headway_wrong_try",
    schema,
    Column("minute", Instant, primary_key=True),
    Column("address", Text, primary_key=True),
    Column("tries", Integer, nullable=False),
)
