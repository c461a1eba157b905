"""The blueprint registry: what it says, how it can be wrong, and changing it while running."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headway.errors import DefinitionError
from headway.federation.registry import Registry, RegistryFile
from headway.observe import Event, Observer
from tests.federation.sites import (
    EXECUTOR,
    EXECUTORS_KEY,
    KEY,
    NEXT_KEY,
    OWN,
    READER,
    write_registry,
)


def test_a_registry_says_who_may_read_what(tmp_path: Path) -> None:
    registry = Registry.load(write_registry(tmp_path))

    assert registry.own.id == OWN
    assert registry.own.blueprint.name == "task-management"
    assert list(registry.peers) == [READER, EXECUTOR]
    assert registry.peers[READER].url == "http://127.0.0.1:9"
    assert registry.peers[READER].keys == (KEY,)
    assert registry.may_read(READER, "pause_state")
    assert not registry.may_read(READER, "blocker_ref")
    assert not registry.may_read(EXECUTOR, "pause_state")
    assert not registry.may_read("nobody", "pause_state")
    assert registry.may_read(OWN, "objective")
    assert registry.stores("objective")
    assert not registry.stores("blocker_ref")
    assert not registry.stores("workorder")


def test_a_deployment_alone_knows_nobody() -> None:
    registry = Registry.alone("Lager Süd")
    assert (registry.own.id, dict(registry.peers)) == ("Lager Süd", {})
    assert registry.stores("pause_state")


def test_it_cannot_be_changed(tmp_path: Path) -> None:
    registry: Any = Registry.load(write_registry(tmp_path))
    with pytest.raises(TypeError):
        registry.peers["new"] = registry.peers[READER]
    with pytest.raises(AttributeError):
        registry.own.id = "other"


def test_two_keys_the_first_signs_and_both_are_known(tmp_path: Path) -> None:
    keys = {READER: [NEXT_KEY, KEY], EXECUTOR: [EXECUTORS_KEY]}
    peer = Registry.load(write_registry(tmp_path, keys=keys)).peers[READER]
    assert peer.keys[0] == NEXT_KEY
    assert (peer.key("2026-11"), peer.key("2026-12"), peer.key("x")) == (KEY, NEXT_KEY, None)


def test_a_secret_may_stand_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_registry(tmp_path)
    text = file.read_text().replace('secret_file = "sales-2026-11.key"', 'secret_env = "SALES_KEY"')
    file.write_text(text)
    monkeypatch.setenv("SALES_KEY", KEY.secret.decode())
    assert Registry.load(file).peers[READER].keys == (KEY,)
    monkeypatch.delenv("SALES_KEY")
    assert "secret_env SALES_KEY must hold" in problem(file)


def problem(file: Path) -> str:
    with pytest.raises(DefinitionError) as refused:
        Registry.load(file)
    line = str(refused.value)
    assert line.startswith(f"{file}: ")
    assert "\n" not in line
    assert len(line) < 400 + len(str(file))
    assert KEY.secret.decode() not in line
    return line.removeprefix(f"{file}: ")


WRONG = [
    ("version = 1", "version = 2", "version = 2: must be 1"),
    ("version = 1", "version = true", "version = True: must be 1"),
    ("version = 1", "", "version = None: must be 1"),
    ("version = 1", "version = 1\nversion = 1", "is no TOML"),
    ("version = 1", "version =", "is no TOML"),
    ("version = 1", "version = 1\nretries = 3", "retries = 3: is no field here"),
    ('id = "warehouse"', 'id = ""', "azolla.id = '': must be 1 to 64"),
    ('id = "warehouse"', 'id = "ware house"', "azolla.id = 'ware house': must be 1 to 64"),
    ('id = "warehouse"', "id = 7", "azolla.id = 7: must be a text"),
    ('id = "warehouse"', "", "azolla.id: must be there; for example id ="),
    ('id = "warehouse"', 'id = "sales"', "is this deployment itself"),
    ('id = "warehouse"', 'id = "SALES"', "is too like SALES"),
    ("[peers.patches]", "[peers.sales]", "is no TOML"),
    ("[peers.patches]", "[peers.Sales]", "is too like sales"),
    ('["pause_state", "objective"]', '["workorder"]', "must be one of pause_state, objective"),
    ('["pause_state", "objective"]', '"pause_state"', "must be a list"),
    ('blueprint = "code-patch"', 'blueprint = "nothing"', "must be a blueprint of this file"),
    ("http://127.0.0.1:9", "ftp://127.0.0.1", "must be an http or https address"),
    ("http://127.0.0.1:9", "http://", "must be an http or https address"),
    ("http://127.0.0.1:9", "http://a:99999", "must be an http or https address"),
    ("http://127.0.0.1:9", "http://me:hush@host", "= …: must not hold a name or password"),
    ("http://127.0.0.1:9", "http://host/path", "must end after host and port"),
    ("http://127.0.0.1:9", "http://host?x", "must end after host and port"),
    ("http://127.0.0.1:9", "http://host#x", "must end after host and port"),
    ("http://127.0.0.1:9", "http://me@host", "= …: must not hold a name or password"),
    ("http://127.0.0.1:9", "http://a:0", "must be an http or https address"),
    ("http://127.0.0.1:9", "http://\u00e4", "must be an http or https address"),
    ("[peers.sales]", '[peers."sa les"]', "peers.sa les = 'sa les': must be 1 to 64"),
    ('id = "2026-11", ', "", "keys.0.id: must be there"),
    ('secret_file = "sales-2026-11.key"', 'secret_file = "no.key"', "no.key cannot be read"),
    (', secret_file = "sales-2026-11.key"', "", "must name either secret_file or secret_env"),
    ('file = "sales', 'env = "S", secret_file = "sales', "must name either secret_file or"),
    ('secret_file = "sales-2026-11.key"', 'secret = "x"', "is no field here"),
    ('keys = [{ id = "2026-11", secret_file = "sales-2026-11.key" }]', "keys = []", "one or two"),
    ("sales-2026-11.key", "patches-2026-11.key", "has the same secret as a key of sales"),
    ("keys = [{", 'keys = [{ id = "2026-11", secret_file = "sales-2026-11.key" }, {', "differ in"),
]


@pytest.mark.parametrize(("right", "wrong", "said"), WRONG)
def test_every_mistake_is_one_line(tmp_path: Path, right: str, wrong: str, said: str) -> None:
    file = write_registry(tmp_path)
    assert right in file.read_text()
    file.write_text(file.read_text().replace(right, wrong, 1))
    line = problem(file)
    assert said in line
    assert "for example" in line or "make" in line


@pytest.mark.parametrize(
    "secret", ["", "short", "x" * 64, "changeme" * 8, "0123456789" * 4], ids=lambda text: text[:9]
)
def test_a_secret_that_can_be_guessed_is_refused(tmp_path: Path, secret: str) -> None:
    file = write_registry(tmp_path)
    (tmp_path / "sales-2026-11.key").write_text(secret)
    assert "must hold at least 32 random bytes" in problem(file)


def test_a_secret_is_not_too_short_nor_too_long(tmp_path: Path) -> None:
    file, key = write_registry(tmp_path), tmp_path / "sales-2026-11.key"
    secret = KEY.secret.decode()
    assert len(secret) == 32
    key.write_text(secret[:-1])
    assert "secret_file sales-2026-11.key must hold at least 32 random bytes" in problem(file)
    key.write_text(secret * 128)
    assert len(Registry.load(file).peers[READER].keys[0].secret) == 4096
    key.write_text(secret * 128 + "x")
    assert problem(file) == (
        "sales-2026-11.key has more than 4096 bytes; peers.sales.keys: make it with: "
        "headway azolla keygen sales-2026-11.key"
    )


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("http://127.0.0.1:9/", "http://127.0.0.1:9"),
        ("https://sales.example", "https://sales.example"),
    ],
)
def test_an_address_ends_after_host_and_port(tmp_path: Path, written: str, url: str) -> None:
    urls = {READER: written, EXECUTOR: "http://127.0.0.1:8"}
    assert Registry.load(write_registry(tmp_path, urls=urls)).peers[READER].url == url


def test_a_mistake_is_told_with_its_place_value_rule_and_example(tmp_path: Path) -> None:
    file = write_registry(tmp_path)
    whole = file.read_text()
    file.write_text(whole.replace('url = "http://127.0.0.1:9"', "url = 7", 1))
    assert problem(file) == (
        'peers.sales.url = 7: must be a text; for example url = "http://127.0.0.1:8701"'
    )
    file.write_text(whole.replace('blueprint = "code-patch"', 'blueprint = "nothing"', 1))
    assert problem(file) == (
        "peers.patches.blueprint = 'nothing': must be a blueprint of this file "
        "(task-management or code-patch); for example task-management"
    )


def test_a_secret_that_everybody_can_read_is_refused(tmp_path: Path) -> None:
    file = write_registry(tmp_path)
    (tmp_path / "sales-2026-11.key").chmod(0o644)
    assert "must not be open to every user; for example chmod 600" in problem(file)


def test_files_that_are_none(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in problem(tmp_path / "nothing.toml")
    assert "cannot be read: Is a directory" in problem(tmp_path)
    large = tmp_path / "large.toml"
    large.write_bytes(b"#" * (1024 * 1024 + 1))
    assert "has more than 1048576 bytes" in problem(large)
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    assert "is no TOML" in problem(binary)


def test_a_changed_file_is_read_again_and_a_wrong_one_is_told_once(tmp_path: Path) -> None:
    file = write_registry(tmp_path)
    seen: list[Event] = []
    observer = Observer()
    observer.subscribe(seen.append)
    live = RegistryFile(file, observer)
    first = live.current()
    assert live.current() is first

    file.write_text("version = 9")
    assert live.current() is first
    assert live.current() is first
    assert [event.name for event in seen] == ["registry.refused"]
    assert "version = 9: must be 1" in seen[0].fields["error"]

    write_registry(tmp_path, keys={READER: [NEXT_KEY], EXECUTOR: [EXECUTORS_KEY]})
    assert live.current().peers[READER].keys == (NEXT_KEY,)


def test_a_key_that_is_replaced_in_its_own_file_holds_at_once(tmp_path: Path) -> None:
    live = RegistryFile(write_registry(tmp_path), Observer())
    assert live.current().peers[READER].keys == (KEY,)
    (tmp_path / "sales-2026-11.key").write_text(NEXT_KEY.secret.decode())
    assert live.current().peers[READER].keys[0].secret == NEXT_KEY.secret


def test_a_start_with_a_wrong_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError):
        RegistryFile(tmp_path / "nothing.toml", Observer())
