"""docs/reference/membrane.md says what the code does: filter keys, codes, limits, registry."""

from __future__ import annotations

import re
from pathlib import Path

from headway.domain.azolla.artifacts import ArtifactType
from headway.domain.azolla.filters import FILTERS, MOST_RESULTS, MOST_VALUES, Filter
from headway.domain.azolla.wire import DEEPEST
from headway.federation import membrane, peers
from headway.federation.registry import Registry
from headway.federation.signing import VERSION
from headway.store import audit, nonces
from headway.web.connections import HEADER_SECONDS, MOST_CONNECTIONS, MOST_PER_ADDRESS
from headway.web.membrane import (
    BODY_SECONDS,
    CONNECTION_SECONDS,
    CONNECTIONS,
    MOST_AT_ONCE,
)
from tests.federation.sites import SECRETS, write_key

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "membrane.md"
TEXT = PAGE.read_text("utf-8")


def documented_keys() -> dict[str, set[str]]:
    _, _, table = TEXT.partition("## Filter keys")
    found: dict[str, set[str]] = {}
    kind = ""
    for first, keys in re.findall(r"^\| (.*?) ?\| (`.+?`) \| .+ \|$", table, re.M):
        kind = first.strip("` ") or kind
        found.setdefault(kind, set()).update(re.findall(r"`(\w+)`", keys))
    return found


def test_every_filter_key_is_documented() -> None:
    common = set(Filter.model_fields)
    own = {kind.value: set(FILTERS[kind].model_fields) - common for kind in ArtifactType}
    assert documented_keys() == {"all": common, **own}


def test_every_code_is_documented() -> None:
    assert set(re.findall(r'\{"code": "(\w+)"\}', TEXT)) == {code.value for code in membrane.Code}


def test_the_limits_are_these() -> None:
    kib, mib = 1024, 1024 * 1024
    seconds = f"{HEADER_SECONDS:g}"
    assert HEADER_SECONDS == BODY_SECONDS
    for said in (
        f"{membrane.LARGEST_REQUEST // kib} KiB",
        f"{seconds} s each to arrive",
        f"{membrane.LONGEST_READING.total_seconds():g} s, in a transaction that cannot write",
        f"{MOST_RESULTS} artifacts, {membrane.LARGEST_ANSWER // mib} MiB",
        f"| {MOST_CONNECTIONS}, of one address {MOST_PER_ADDRESS}, one request each; ",
        f"| {MOST_AT_ONCE} at once, of which {CONNECTIONS} are answered at once; ",
        f"each is over after {CONNECTION_SECONDS:g} s",
        f"{peers.LARGEST_ANSWER // mib} MiB, and `azolla_query_timeout`",
        f"at most {MOST_VALUES} of them",
        f"nested at most {DEEPEST}",
        f"At most {nonces.BELIEVED.total_seconds():g} s from the database's clock",
        f"`{VERSION}`",
    ):
        assert said in TEXT, said
    assert (audit.QUERIES_KEPT, nonces.KEPT.total_seconds()) == (10_000, 300)


def test_the_registry_of_the_page_is_a_registry(tmp_path: Path) -> None:
    found = re.search(r"```toml\n(.+?)```", TEXT, re.S)
    assert found
    (tmp_path / "azolla.toml").write_text(found.group(1))
    write_key(tmp_path, "sales", SECRETS["sales"])
    registry = Registry.load(tmp_path / "azolla.toml")
    assert (registry.own.id, list(registry.peers)) == ("warehouse", ["sales"])
