"""Who asks, and who answers: requests and answers signed with a key that two deployments share.

A signature is HMAC-SHA256 over lines of text. A request's lines are the protocol's version, method,
path, the body's SHA-256, source, target, timestamp, nonce and the key's id: none of them can be
changed, and the request cannot be sent to anybody else. An answer's lines hold the request's own
signature, so that it answers this request and no other.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

VERSION = "headway-azolla-1"
NOBODY = b"\0" * 32

SOURCE, TARGET = "headway-source", "headway-target"
TIMESTAMP, NONCE = "headway-timestamp", "headway-nonce"
KEY, SIGNATURE = "headway-key", "headway-signature"

AZOLLA_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_FORMS = {
    SOURCE: AZOLLA_ID,
    TARGET: AZOLLA_ID,
    TIMESTAMP: re.compile(r"0|[1-9][0-9]{0,10}", re.ASCII),
    NONCE: re.compile(r"[A-Za-z0-9_-]{16,64}", re.ASCII),
    KEY: AZOLLA_ID,
    SIGNATURE: re.compile(r"[0-9a-f]{64}", re.ASCII),
}
_OF_ANSWERS = (SOURCE, TARGET, KEY, SIGNATURE)

Headers = Iterable[tuple[str, str]]


@dataclass(frozen=True)
class Key:
    """A secret two deployments share, and the name they call it by.

    >>> Key("2026-11", b"not shown")
    Key(id='2026-11')
    """

    id: str
    secret: bytes = field(repr=False)


@dataclass(frozen=True)
class Request:
    """What a request's signature covers."""

    method: str
    path: str
    body: bytes
    source: str
    target: str
    timestamp: int
    nonce: str

    def signed_with(self, key: Key) -> dict[str, str]:
        """The headers that go with it.

        >>> asked = Request("GET", "/azolla/v1/ping", b"", "a", "b", 1767225600, "n" * 16)
        >>> headers = asked.signed_with(Key("k1", b"s" * 32))
        >>> claim = Claim.in_headers(headers.items())
        >>> claim.made_with(Key("k1", b"s" * 32), "GET", "/azolla/v1/ping", b"")
        True
        >>> claim.made_with(Key("k1", b"s" * 32), "POST", "/azolla/v1/ping", b"")
        False
        """
        return {
            SOURCE: self.source,
            TARGET: self.target,
            TIMESTAMP: str(self.timestamp),
            NONCE: self.nonce,
            KEY: key.id,
            SIGNATURE: self.signature(key),
        }

    def signature(self, key: Key) -> str:
        """The signature itself."""
        return _hmac(
            key.secret,
            "request",
            self.method,
            self.path,
            hashlib.sha256(self.body).hexdigest(),
            self.source,
            self.target,
            str(self.timestamp),
            self.nonce,
            key.id,
        )


@dataclass(frozen=True)
class Claim:
    """What the headers of a request say; believed only once the signature fits."""

    source: str
    target: str
    timestamp: int
    nonce: str
    key_id: str
    signature: str

    @classmethod
    def in_headers(cls, headers: Headers) -> "Claim | None":
        """The claim, if each header stands there once and in its form.

        >>> Claim.in_headers([("Headway-Source", "a")]) is None
        True
        """
        said = _said(headers, _FORMS)
        if said is None:
            return None
        return cls(
            said[SOURCE],
            said[TARGET],
            int(said[TIMESTAMP]),
            said[NONCE],
            said[KEY],
            said[SIGNATURE],
        )

    def made_with(self, key: Key | None, method: str, path: str, body: bytes) -> bool:
        """Whether whoever has *key* signed exactly this; without one, only the time is spent."""
        used = Key(self.key_id, NOBODY if key is None else key.secret)
        asked = Request(
            method, path, body, self.source, self.target, self.timestamp, self.nonce
        ).signature(used)
        same = hmac.compare_digest(asked, self.signature)
        return same and key is not None and key.id == self.key_id


def sign_answer(
    key: Key, asked: str, *, status: int, body: bytes, source: str, target: str
) -> dict[str, str]:
    """The headers of the answer to the request whose signature was *asked*.

    >>> key, asked = Key("k1", b"s" * 32), "0" * 64
    >>> headers = sign_answer(key, asked, status=200, body=b"{}", source="b", target="a")
    >>> answers(key, asked, headers.items(), status=200, body=b"{}", source="b", target="a")
    True
    >>> answers(key, "1" * 64, headers.items(), status=200, body=b"{}", source="b", target="a")
    False
    """
    return {
        SOURCE: source,
        TARGET: target,
        KEY: key.id,
        SIGNATURE: _of_answer(key, asked, status, body, source, target),
    }


def answers(
    key: Key, asked: str, headers: Headers, *, status: int, body: bytes, source: str, target: str
) -> bool:
    """Whether *source*, and nobody else, answered just this request with this."""
    said = _said(headers, _OF_ANSWERS)
    if said is None or (said[SOURCE], said[TARGET], said[KEY]) != (source, target, key.id):
        return False
    right = _of_answer(key, asked, status, body, source, target)
    return hmac.compare_digest(right, said[SIGNATURE])


def _of_answer(key: Key, asked: str, status: int, body: bytes, source: str, target: str) -> str:
    digest = hashlib.sha256(body).hexdigest()
    return _hmac(key.secret, "answer", asked, str(status), digest, source, target, key.id)


def _hmac(secret: bytes, *lines: str) -> str:
    text = "\n".join((VERSION, *lines))
    return hmac.new(secret, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def _said(headers: Headers, wanted: Iterable[str]) -> dict[str, str] | None:
    """The wanted headers by lower-case name; None if one is missing, twice or malformed."""
    names = frozenset(wanted)
    said: dict[str, str] = {}
    for name, value in headers:
        lower = name.lower()
        if lower not in names:
            continue
        if lower in said or not _FORMS[lower].fullmatch(value):
            return None
        said[lower] = value
    return said if len(said) == len(names) else None
