"""Sessions: signed, so that every web process with the same secret knows them.

Whoever logged in carries the session in a cookie; nothing about it is stored. It ends with its
time, with the token it was made with, and with logging out, which is what is stored.
"""

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from headway.web.security.identity import Identity, Scope

LIFETIME = 12 * 3600
LONGEST_COOKIE = 2048
SHORTEST_SECRET = 32


@dataclass(frozen=True)
class Session:
    """Somebody who has logged in; *token* is the id of the token it was done with, if any."""

    id: str
    name: str
    scopes: tuple[str, ...]
    until: float
    token: int | None = None

    @property
    def identity(self) -> Identity:
        """Who it is."""
        return Identity(self.name, frozenset(Scope(scope) for scope in self.scopes))


class Sessions:
    """Makes sessions, reads them back, and gives each the token its forms must bring.

    >>> sessions = Sessions(b"s" * 32)
    >>> session = sessions.begin(Identity("ada", {Scope.READ}))
    >>> sessions.read(sessions.cookie(session)) == session
    True
    >>> sessions.read(Sessions(b"t" * 32).cookie(session)) is None
    True
    """

    def __init__(self, secret: bytes | None = None, clock: Callable[[], float] = time.time) -> None:
        secret = secret or secrets.token_bytes(SHORTEST_SECRET)
        self._session_key = _derived(secret, b"session")
        self._csrf_key = _derived(secret, b"csrf")
        self._clock = clock

    def begin(self, identity: Identity, token: int | None = None) -> Session:
        """A new session of *identity*."""
        scopes = tuple(sorted(str(scope) for scope in identity.scopes))
        until = self._clock() + LIFETIME
        return Session(secrets.token_urlsafe(16), identity.name, scopes, until, token)

    def cookie(self, session: Session) -> str:
        """What the browser keeps."""
        told = base64.urlsafe_b64encode(json.dumps(asdict(session)).encode())
        return f"{told.decode()}.{_signed(self._session_key, told)}"

    def read(self, cookie: str) -> Session | None:
        """The session in *cookie*, if it was made with this secret and its time is not over."""
        told, dot, signature = cookie.partition(".")
        if not dot or len(cookie) > LONGEST_COOKIE or not cookie.isascii():
            return None
        if not hmac.compare_digest(signature, _signed(self._session_key, told.encode())):
            return None
        facts = json.loads(base64.urlsafe_b64decode(told))
        session = Session(**facts | {"scopes": tuple(facts["scopes"])})
        return session if session.until > self._clock() else None

    def csrf(self, bound_to: str) -> str:
        """What every form of the session (or person) *bound_to* has to bring."""
        return _signed(self._csrf_key, bound_to.encode())

    def is_csrf(self, bound_to: str, sent: str) -> bool:
        """Whether *sent* is that."""
        return hmac.compare_digest(self.csrf(bound_to).encode(), sent.encode())


def _derived(secret: bytes, purpose: bytes) -> bytes:
    return hmac.digest(secret, b"headway " + purpose, hashlib.sha256)


def _signed(key: bytes, told: bytes) -> str:
    return hmac.new(key, told, hashlib.sha256).hexdigest()
