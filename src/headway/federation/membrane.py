"""The exchange membrane: what this deployment tells others, and whom.

A request is authenticated first: signed by the peer it names, for this deployment, now, and once.
Then three checks in order: the source is known, its blueprint reads this type of artifact
elsewhere, this deployment stores it. Then the filter. Whatever fails is DENIED, and nothing says
why. What passes is read in a transaction that cannot write, within limits of time, rows and bytes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from pydantic import AwareDatetime, ValidationError

from headway.domain.azolla.artifacts import (
    Artifact,
    ArtifactType,
    Id,
    ResponseStatus,
    SubstrateQuery,
    SubstrateQueryResponse,
)
from headway.domain.azolla.filters import Filter, filter_of
from headway.domain.azolla.ids import response_to
from headway.domain.azolla.wire import Unreadable, read_json, write_json
from headway.errors import DefinitionError
from headway.federation.registry import Registry
from headway.federation.signing import Claim, Key, sign_answer
from headway.observe import Observer, told
from headway.store import audit, nonces, substrate
from headway.store.engine import Store, ended_by_timeout
from headway.store.limits import reading_within
from headway.store.transaction import Transaction

QUERY = ("POST", "/azolla/v1/query")
PING = ("GET", "/azolla/v1/ping")

LARGEST_REQUEST = 64 * 1024
LARGEST_ANSWER = 2 * 1024 * 1024
LONGEST_READING = timedelta(seconds=2)


class Code(StrEnum):
    """All that somebody whose request is not taken gets to know."""

    DENIED = "DENIED"
    STALE = "STALE"
    REPLAYED = "REPLAYED"
    TOO_LARGE = "TOO_LARGE"
    UNAVAILABLE = "TARGET_UNAVAILABLE"


REFUSED, AWAY = 403, 503


@dataclass(frozen=True)
class Answer:
    """An HTTP answer; the body is JSON."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def saying(cls, code: Code) -> "Answer":
        """Nothing but a code.

        >>> Answer.saying(Code.STALE).body
        b'{"code":"STALE"}'
        """
        status = AWAY if code is Code.UNAVAILABLE else REFUSED
        return cls(status, write_json({"code": code.value}))


class AskedFor(Artifact):
    """A query whose type of artifact may be unknown here."""

    query_id: Id
    source_azolla_id: Id
    target_azolla_id: Id
    artifact_type: Id
    filter: dict[str, Any]
    created_at: AwareDatetime


class _Refused(Exception):
    def __init__(self, code: Code) -> None:
        super().__init__(code.value)
        self.code = code


class Membrane:
    """Answers requests of peers from one store, by one version of the registry.

    >>> membrane = Membrane(store, Registry.load("azolla.toml"), observer)      # doctest: +SKIP
    >>> membrane.answer("POST", "/azolla/v1/query", headers, body).status        # doctest: +SKIP
    200
    """

    def __init__(
        self,
        store: Store,
        registry: Registry,
        observer: Observer,
        *,
        longest_reading: timedelta = LONGEST_READING,
        largest_answer: int = LARGEST_ANSWER,
    ) -> None:
        self._store = store
        self._registry = registry
        self._observer = observer
        self._longest_reading = longest_reading
        self._largest_answer = largest_answer

    def answer(
        self, method: str, path: str, headers: Sequence[tuple[str, str]], body: bytes
    ) -> Answer:
        """The answer to a request, whatever it is; never raises for what somebody sent."""
        claim = Claim.in_headers(headers)
        try:
            key = self._authenticated(claim, method, path, body)
        except _Refused as refused:
            self._tell_refused(claim, refused.code)
            return Answer.saying(refused.code)
        except Exception as error:  # what a stranger learns of it is that there is no answer
            return self._away(error)
        assert claim is not None
        return self._signed(self._answer_peer(claim.source, (method, path), body), claim, key)

    def read(self, query: SubstrateQuery) -> SubstrateQueryResponse:
        """What this deployment itself finds in its own substrate, within the same limits.

        A type it does not store, or a filter that is none, is DENIED; too much is unavailable.
        """
        own = self._registry.own.id
        wanted = _filter(query.artifact_type, query.filter)
        if wanted is None or not self._registry.stores(query.artifact_type):
            return _response(query.query_id, own, ResponseStatus.DENIED)
        try:
            return self._found(query.query_id, wanted)
        except substrate.TooMuch:
            return _response(query.query_id, own, ResponseStatus.TARGET_UNAVAILABLE)

    def _authenticated(self, claim: Claim | None, method: str, path: str, body: bytes) -> Key:
        if len(body) > LARGEST_REQUEST:
            raise _Refused(Code.TOO_LARGE)
        if claim is None or (method, path) not in (QUERY, PING):
            raise _Refused(Code.DENIED)
        peer = self._registry.peers.get(claim.source)
        key = None if peer is None else peer.key(claim.key_id)
        genuine = claim.made_with(key, method, path, body)
        if key is None or not genuine or claim.target != self._registry.own.id:
            raise _Refused(Code.DENIED)
        self._take(claim)
        return key

    def _take(self, claim: Claim) -> None:
        """Each request once, by whichever server of this deployment it comes."""
        sent_at = datetime.fromtimestamp(claim.timestamp, UTC)
        with self._store.briefly() as tx:
            taken = nonces.take(tx, claim.source, claim.nonce, sent_at)
        if taken is not nonces.Taken.NEW:
            raise _Refused(Code(taken))

    def _answer_peer(self, source: str, route: tuple[str, str], body: bytes) -> Answer:
        try:
            if route == PING:
                return self._pong()
            return self._answer_query(source, body)
        except _Refused as refused:
            self._audit(source, "unreadable", refused.code)
            return Answer.saying(refused.code)
        except Exception as error:
            return self._away(error)

    def _pong(self) -> Answer:
        with self._store.reading() as tx:
            now = tx.now
        return Answer(200, write_json({"azolla_id": self._registry.own.id, "at": now.isoformat()}))

    def _answer_query(self, source: str, body: bytes) -> Answer:
        asked = _asked(body)
        try:
            response = self._response(source, asked)
            encoded = write_json(response.model_dump(mode="json"))
            if len(encoded) > self._largest_answer:
                raise substrate.TooMuch
        except substrate.TooMuch:
            self._audit(source, asked.artifact_type, Code.TOO_LARGE)
            return Answer.saying(Code.TOO_LARGE)
        self._audit(source, asked.artifact_type, response.status, len(response.results))
        return Answer(200, encoded)

    def _response(self, source: str, asked: AskedFor) -> SubstrateQueryResponse:
        wanted = self._allowed(source, asked)
        if wanted is None:
            return _response(asked.query_id, self._registry.own.id, ResponseStatus.DENIED)
        return self._found(asked.query_id, wanted)

    def _allowed(self, source: str, asked: AskedFor) -> Filter | None:
        """The filter to read by, if the source may ask for this here."""
        own, kind = self._registry.own.id, asked.artifact_type
        speaks_for_itself = asked.source_azolla_id == source and asked.target_azolla_id == own
        if not speaks_for_itself or self._registry.blueprint_of(source) is None:
            return None
        if not self._registry.may_read(source, kind) or not self._registry.stores(kind):
            return None
        return _filter(ArtifactType(kind), asked.filter)

    def _found(self, query_id: str, wanted: Filter) -> SubstrateQueryResponse:
        with reading_within(self._store, self._longest_reading) as tx:
            found = substrate.read(tx, wanted, self._largest_answer)
            now = tx.now
        results = tuple(one.model_dump(mode="json") for one in found)
        return _response(query_id, self._registry.own.id, ResponseStatus.OK, results, now)

    def _audit(self, source: str, kind: str, outcome: str, results: int = 0) -> None:
        with self._store.briefly() as tx:
            _note(tx, source, kind, outcome, results)
        self._observer.emit(
            "membrane.answered", source=source, artifact_type=kind, status=outcome, results=results
        )

    def _signed(self, answer: Answer, claim: Claim, key: Key) -> Answer:
        headers = sign_answer(
            key,
            claim.signature,
            status=answer.status,
            body=answer.body,
            source=self._registry.own.id,
            target=claim.source,
        )
        return Answer(answer.status, answer.body, headers)

    def _tell_refused(self, claim: Claim | None, code: Code) -> None:
        """Not in the database: strangers must not be able to write into it."""
        source = None if claim is None else claim.source
        self._observer.emit("membrane.refused", source=source, code=code.value)

    def _away(self, error: Exception) -> Answer:
        slow = ended_by_timeout(error) or "interrupted" in str(getattr(error, "orig", ""))
        reason = "the reading took too long" if slow else told(error)
        self._observer.emit("membrane.unavailable", error=reason)
        return Answer.saying(Code.UNAVAILABLE)


def _asked(body: bytes) -> AskedFor:
    try:
        return AskedFor.model_validate(read_json(body))
    except (Unreadable, ValidationError):
        raise _Refused(Code.DENIED) from None


def _filter(kind: ArtifactType, given: Mapping[str, Any]) -> Filter | None:
    try:
        return filter_of(kind, given)
    except DefinitionError:
        return None


def _note(tx: Transaction, source: str, kind: str, outcome: str, results: int) -> None:
    audit.note_query(tx, source, kind, outcome if not results else f"{outcome}, {results} results")


def _response(
    query_id: str,
    own: str,
    status: ResponseStatus,
    results: tuple[dict[str, Any], ...] = (),
    now: datetime | None = None,
) -> SubstrateQueryResponse:
    return SubstrateQueryResponse(
        response_id=response_to(query_id),
        query_id=query_id,
        target_azolla_id=own,
        status=status,
        results=results,
        created_at=now or datetime.now(UTC),
    )
