"""Whatever is altered after signing, in a request or an answer, is noticed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headway.federation.signing import Claim, Key, Request, answers, sign_answer

ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
keys = st.builds(Key, ids, st.binary(min_size=32, max_size=48))
requests = st.builds(
    Request,
    method=st.sampled_from(["GET", "POST", "PUT"]),
    path=st.sampled_from(["/azolla/v1/query", "/azolla/v1/ping", "/azolla/v1/query?x=1"]),
    body=st.binary(max_size=200),
    source=ids,
    target=ids,
    timestamp=st.integers(0, 10**11 - 1),
    nonce=st.from_regex(r"[A-Za-z0-9_-]{16,64}", fullmatch=True),
)
FIELDS = ["method", "path", "body", "source", "target", "timestamp", "nonce"]


def is_genuine(sent: Request, headers: dict[str, str], key: Key) -> bool:
    claim = Claim.in_headers(headers.items())
    return claim is not None and claim.made_with(key, sent.method, sent.path, sent.body)


@given(requests, keys)
def test_what_was_signed_is_genuine(request: Request, key: Key) -> None:
    assert is_genuine(request, request.signed_with(key), key)


@given(requests, requests, keys, st.sampled_from(FIELDS))
def test_altering_any_part_is_noticed(
    request: Request, other: Request, key: Key, field: str
) -> None:
    altered = replace(request, **{field: getattr(other, field)})
    assume(altered != request)
    headers = altered.signed_with(key) | {"headway-signature": request.signature(key)}
    assert not is_genuine(altered, headers, key)


@given(requests, keys, keys)
def test_another_key_or_another_name_of_it_is_noticed(
    request: Request, key: Key, other: Key
) -> None:
    assume(key != other)
    assert not is_genuine(request, request.signed_with(key), other)
    renamed = request.signed_with(key) | {"headway-key": other.id}
    assume(other.id != key.id)
    assert not is_genuine(request, renamed, key)


@given(requests, keys, st.data())
def test_altering_any_header_is_noticed(request: Request, key: Key, data: st.DataObject) -> None:
    headers = request.signed_with(key)
    name = data.draw(st.sampled_from(sorted(headers)))
    value = data.draw(st.text(max_size=70))
    assume(value != headers[name])
    assert not is_genuine(request, headers | {name: value}, key)


def test_without_a_key_nothing_is_genuine() -> None:
    request = Request("GET", "/", b"", "a", "b", 1, "n" * 16)
    claim = Claim.in_headers(request.signed_with(Key("k", b"\0" * 32)).items())
    assert claim is not None
    assert not claim.made_with(None, "GET", "/", b"")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[
            ("headway-timestamp", text)
            for text in ("", "-1", "1.5", "01", "9" * 12, "\u0661", "1e9")
        ],
        *[("headway-nonce", text) for text in ("", "short", "n" * 65, "n" * 15 + "\n")],
        *[("headway-source", text) for text in ("", "../a", "a b", "ü", "a\n", "-a", "a" * 65)],
        *[("headway-signature", text) for text in ("", "0" * 63, "G" * 64, "A" * 64)],
    ],
)
def test_headers_have_one_form(name: str, value: str) -> None:
    headers = Request("GET", "/", b"", "a", "b", 1, "n" * 16).signed_with(Key("k", b"s" * 32))
    assert Claim.in_headers(headers.items()) is not None
    assert Claim.in_headers((headers | {name: value}).items()) is None


def test_names_of_headers_are_read_in_any_case_but_once() -> None:
    headers = Request("GET", "/", b"", "a", "b", 1, "n" * 16).signed_with(Key("k", b"s" * 32))
    assert Claim.in_headers((key.title(), value) for key, value in headers.items()) is not None
    assert Claim.in_headers([*headers.items(), ("HEADWAY-NONCE", "n" * 16)]) is None


ANSWER: dict[str, Any] = {"status": 200, "body": b"{}", "source": "b", "target": "a"}


@given(
    keys,
    st.sampled_from(sorted(ANSWER)),
    st.one_of(st.integers(100, 599), st.binary(max_size=9), ids),
)
def test_altering_an_answer_is_noticed(key: Key, field: str, value: Any) -> None:
    assume(type(value) is type(ANSWER[field]) and value != ANSWER[field])
    asked = "0" * 64
    headers = sign_answer(key, asked, **ANSWER)
    assert answers(key, asked, headers.items(), **ANSWER)
    assert not answers(key, asked, headers.items(), **ANSWER | {field: value})
    assert not answers(key, "1" * 64, headers.items(), **ANSWER)


def test_a_request_cannot_be_given_back_as_its_own_answer() -> None:
    key = Key("k", b"s" * 32)
    request = Request("POST", "/azolla/v1/query", b"{}", "b", "a", 1, "n" * 16)
    headers = request.signed_with(key)
    assert not answers(key, headers["headway-signature"], headers.items(), **ANSWER)


def test_a_secret_is_never_shown() -> None:
    assert "hush" not in repr(Key("k", b"hush" * 10))
