"""How somebody is known: by a token, by the session they began with it, or by the user's own app.

Knowing comes before everything else, so each way is refused for a while to an address that has
guessed wrong too often. Tokens have 256 bits; the limit is there to keep guessing cheap for us.
"""

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from fastapi import Request

from headway.web.failures import TooMany
from headway.web.security.identity import Identity, Scope
from headway.web.security.identity import Known as Known
from headway.web.security.origins import LOOPBACK, Hosts, Proxies, client_address
from headway.web.security.pace import Pace
from headway.web.security.remembering import count_wrong, has_ended, seconds_to_wait
from headway.web.security.sessions import Session, Sessions

# Where the gate leaves an Asking in the scope of a request.
ASKING = "headway.asking"

Authenticate = Callable[[Request], Identity | None]

FIRST_OPERATOR = "admin"
BEARER = "bearer "
TRUSTED = 1000


class Tokens(Protocol):
    """Where tokens are kept."""

    def check(self, token: str) -> Known | None:
        """Whose token this is, if it is valid."""

    def still(self, token: int) -> Known | None:
        """Whose token has this id, if it is valid still."""


@dataclass(frozen=True)
class Asking:
    """Whoever asks; what a form of theirs must bring is bound to *bound_to*.

    Without *bound_to* they said who they are in a way no other site can make a browser say it.
    """

    identity: Identity
    session: Session | None = None
    bound_to: str | None = None
    token: int | None = None


class Access:
    """Whom this application lets in.

    *authenticate* is the authentication of an application it is mounted in; then nothing else
    counts. *tokens* is where tokens are looked up, *secret* what sessions are signed with: one of
    its own for every process unless it is given.

    >>> access = Access()
    >>> key = access.start_key()
    >>> access.exchange(key).identity.name, access.exchange(key)
    ('admin', None)
    """

    def __init__(
        self,
        authenticate: Authenticate | None = None,
        *,
        tokens: Tokens | None = None,
        secret: bytes | None = None,
        public_url: str | None = None,
        allowed_hosts: Collection[str] = (),
        trusted_proxies: Collection[str] = (),
        wrong_tries: Pace | None = None,
        writes: Pace | None = None,
    ) -> None:
        self._authenticate = authenticate
        self._tokens = tokens
        self.sessions = Sessions(secret)
        parts = urlsplit(public_url or "")
        self.public_origin = f"{parts.scheme}://{parts.netloc}" if public_url else None
        self.secure = parts.scheme == "https"
        named = {*LOOPBACK, *allowed_hosts, *([parts.hostname] if parts.hostname else [])}
        self.hosts = Hosts(None if authenticate and not allowed_hosts else frozenset(named))
        self.proxies = Proxies.at(trusted_proxies)
        self.writes = writes or Pace(at_once=100, per_second=20)
        self.notes = Pace(at_once=20, per_second=1)
        self._wrong = wrong_tries or Pace(at_once=10, per_second=1 / 6)
        self._start_keys: set[str] = set()
        self._trusted: OrderedDict[bytes, None] = OrderedDict()

    def start_key(self) -> str:
        """A key that begins one session of the first operator, who may do everything."""
        key = secrets.token_urlsafe(24)  # short enough for a line of a terminal
        self._start_keys.add(key)
        return key

    def exchange(self, key: str) -> Session | None:
        """The session that a start key begins, once."""
        if key not in self._start_keys:
            return None
        self._start_keys.discard(key)
        return self.sessions.begin(Identity(FIRST_OPERATOR, frozenset({Scope.ADMIN})))

    def login(self, request: Request, token: str) -> Session | None:
        """The session that a token begins."""
        known = self._checked(request, token)
        return self.sessions.begin(known.identity, known.token) if known else None

    def who(self, request: Request) -> Asking | None:
        """Who asks, if anybody knows them."""
        if self._authenticate is not None:
            return self._as_mounted(request)
        authorization = request.headers.get("authorization", "")
        if authorization:
            return self._by_token(request, authorization)
        return self._by_session(request)

    def still_allows(self, request: Request, asking: Asking, scope: Scope) -> bool:
        """Return whether *asking*, let in with *request* a while ago, has *scope* until now."""
        if asking.token is not None:
            known = self._tokens.still(asking.token) if self._tokens else None
            identity = known.identity if known else None
        else:
            renewed = self.who(request)
            identity = renewed.identity if renewed else None
        return (
            identity is not None and identity.name == asking.identity.name and identity.may(scope)
        )

    def first_use(self, request: Request, key: str) -> Session | None:
        """The session that the key in an address begins; wrong ones are counted."""
        self._refuse_guessing(request)
        session = self.exchange(key)
        if session is None:
            self._count_wrong(request)
        return session

    def address(self, request: Request) -> str:
        """Where *request* comes from."""
        return client_address(request.scope, self.proxies)

    def cookie_name(self, request: Request) -> str:
        """Of its own for each port, since browsers keep one jar for all ports of a host."""
        if self.secure:
            return "__Host-headway"
        _, _, port = request.headers.get("host", "").rpartition(":")
        return f"headway_{port}" if port.isascii() and port.isdigit() else "headway"

    def _as_mounted(self, request: Request) -> Asking | None:
        identity = self._authenticate(request) if self._authenticate else None
        if identity is None:
            return None
        by_bearer = request.headers.get("authorization", "").lower().startswith(BEARER)
        return Asking(identity, None, None if by_bearer else f"mounted {identity.name}")

    def _by_token(self, request: Request, authorization: str) -> Asking | None:
        if not authorization.lower().startswith(BEARER):
            return None
        known = self._checked(request, authorization[len(BEARER) :].strip())
        return Asking(known.identity, token=known.token) if known else None

    def _by_session(self, request: Request) -> Asking | None:
        session = self.sessions.read(request.cookies.get(self.cookie_name(request), ""))
        if session is None or has_ended(request, session):
            return None
        identity = session.identity
        if session.token is not None:
            known = self._tokens.still(session.token) if self._tokens else None
            if known is None:
                return None
            identity = known.identity
        return Asking(identity, session, f"session {session.id}")

    def _checked(self, request: Request, token: str) -> Known | None:
        digest = hashlib.sha256(token.encode()).digest()
        if digest not in self._trusted:
            self._refuse_guessing(request)
        known = self._tokens.check(token) if self._tokens else None
        if known is None:
            self._trusted.pop(digest, None)
            self._count_wrong(request)
            return None
        self._trusted[digest] = None
        if len(self._trusted) > TRUSTED:
            self._trusted.popitem(last=False)
        return known

    def _count_wrong(self, request: Request) -> None:
        self._wrong.take(self.address(request))
        count_wrong(request, self.address(request))

    def _refuse_guessing(self, request: Request) -> None:
        """Refuse whoever was wrong too often: here, or at all web processes together."""
        address = self.address(request)
        seconds = self._wrong.wait(address)
        if not seconds and (seconds := seconds_to_wait(request, address, self._wrong.at_once)):
            self._wrong.take(address)  # soon refused without asking the database
        if seconds:
            raise TooMany("too many wrong tokens from this address; wait a moment", seconds)
