"""Requests that may be sent twice and are done once."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from headway.domain.text import shown
from headway.errors import DefinitionError

LONGEST_KEY = 255

_KEY = re.compile(rf"[!-~]{{1,{LONGEST_KEY}}}")


@dataclass(frozen=True)
class Answer:
    """What was answered to a request: a status, a few headers, and a body."""

    status: int
    body: str
    headers: Mapping[str, str] = field(default_factory=dict)


def checked_key(key: object) -> str:
    """The key of a request, as its sender made it up.

    >>> checked_key("8e03978e-40d5-43dd-bc93-6894a57f9324")
    '8e03978e-40d5-43dd-bc93-6894a57f9324'
    """
    if isinstance(key, str) and _KEY.fullmatch(key):
        return key
    raise DefinitionError(
        f"idempotency key = {shown(key)}: must have 1 to {LONGEST_KEY} printable ASCII characters "
        "without spaces; for example a UUID"
    )


def request_digest(method: str, path: str, body: bytes) -> str:
    """What tells one request from another under the same key.

    >>> request_digest("POST", "/api/v1/x", b"{}") == request_digest("POST", "/api/v1/x", b"")
    False
    """
    parts = (method.encode(), path.encode(errors="surrogatepass"), body)
    lengths = b"".join(len(part).to_bytes(8, "big") for part in parts)
    return hashlib.sha256(lengths + b"".join(parts)).hexdigest()
