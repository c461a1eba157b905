"""Where a request comes from: which proxies are believed, and which pages are our own."""

from __future__ import annotations

import pytest
from fastapi import Request

from headway.web.security.origins import Hosts, Proxies, client_address, host_name, is_same_origin

PROXIES = Proxies.at(["10.0.0.0/8", "2001:db8::1"])


@pytest.mark.parametrize(
    ("peer", "told", "client"),
    [
        ("192.0.2.1", [], "192.0.2.1"),
        ("192.0.2.1", ["198.51.100.7"], "192.0.2.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.7"], "198.51.100.7"),
        ("2001:db8::1", ["198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", ["203.0.113.9, 198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", ["203.0.113.9", "198.51.100.7, 10.0.0.2"], "198.51.100.7"),
        ("10.0.0.1", ["198.51.100.7", "10.0.0.2"], "198.51.100.7"),
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("10.0.0.1", ["198.51.100.7, unknown"], "10.0.0.1"),
        ("10.0.0.1", [""], "10.0.0.1"),
    ],
)
def test_the_client_is_the_nearest_address_that_is_no_proxy_of_ours(
    peer: str, told: list[str], client: str
) -> None:
    headers = [(b"x-forwarded-for", one.encode()) for one in told]
    scope = {"client": (peer, 5), "headers": [(b"forwarded", b"for=192.0.2.66"), *headers]}
    assert client_address(scope, PROXIES) == client


def test_a_connection_without_an_address_is_unknown() -> None:
    headers = [(b"x-forwarded-for", b"198.51.100.7")]
    assert client_address({"client": None, "headers": headers}, PROXIES) == "unknown"


@pytest.mark.parametrize(
    ("address", "trusted"),
    [("10.255.0.1", True), ("11.0.0.1", False), ("2001:db8::2", False), ("unknown", False)],
)
def test_a_proxy_is_trusted_by_its_address(address: str, trusted: bool) -> None:
    assert PROXIES.trust(address) is trusted


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("Headway.Example.COM.", "headway.example.com"),
        ("headway.example.com:8700", "headway.example.com"),
        ("[2001:DB8::1]:8700", "2001:db8::1"),
        ("headway.example.com:", None),
        ("headway.example.com:99999", None),
        ("ada@headway.example.com", None),
        ("headway.example.com/x", None),
        ("[::1", None),
        ("é.example.com", None),
        ("", None),
    ],
)
def test_a_host_is_a_name_and_maybe_a_port(host: str, name: str | None) -> None:
    assert host_name(host) == name


def test_without_names_of_its_own_an_application_answers_to_every_host() -> None:
    assert Hosts(None).know("anything.example.com") is True
    assert Hosts(frozenset({"headway.example.com"})).know("anything.example.com") is False


OWN = {"host": "headway:8700", "origin": "http://headway:8700"}
PUBLIC = "https://headway.example.com"


@pytest.mark.parametrize(
    ("headers", "same"),
    [
        (OWN, True),
        (OWN | {"origin": "https://headway:8700"}, True),
        (OWN | {"origin": PUBLIC}, True),
        (OWN | {"origin": PUBLIC, "sec-fetch-site": "same-origin"}, True),
        (OWN | {"origin": PUBLIC, "sec-fetch-site": "same-site"}, False),
        (OWN | {"origin": "http://headway.example.com"}, False),
        (OWN | {"origin": "http://headway"}, False),
        (OWN | {"sec-fetch-site": "none"}, False),
        (OWN | {"origin": "null"}, False),
        (OWN | {"origin": "null", "sec-fetch-site": "same-origin"}, True),
        ({"host": "headway:8700", "sec-fetch-site": "same-origin"}, True),
        ({"host": "headway:8700"}, False),
    ],
)
def test_a_form_is_ours_if_the_browser_says_so(headers: dict[str, str], same: bool) -> None:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    assert is_same_origin(Request({"type": "http", "headers": raw}), PUBLIC) is same
