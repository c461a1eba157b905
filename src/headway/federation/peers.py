"""Asking other deployments, and believing only what they really said.

Whatever a peer does, :class:`PeerClient` answers within its time and memory, and never raises.
"""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pydantic import AwareDatetime, ValidationError

from headway.domain.azolla.artifacts import (
    Artifact,
    ArtifactType,
    BlockerRef,
    Id,
    Objective,
    PauseState,
    ResponseStatus,
    SubstrateQuery,
    SubstrateQueryResponse,
)
from headway.domain.azolla.filters import MOST_RESULTS
from headway.domain.azolla.ids import response_to
from headway.domain.azolla.wire import Unreadable, read_json, write_json
from headway.federation.exchange import NoAnswer, Received, exchange
from headway.federation.membrane import PING, QUERY, Code
from headway.federation.registry import Peer, Registry
from headway.federation.signing import SIGNATURE, Request, answers

TIMEOUT = timedelta(seconds=5)
LARGEST_ANSWER = 4 * 1024 * 1024

KINDS: Mapping[ArtifactType, type[Artifact]] = {
    ArtifactType.PAUSE_STATE: PauseState,
    ArtifactType.OBJECTIVE: Objective,
    ArtifactType.BLOCKER_REF: BlockerRef,
}
_MEANINGS = {
    Code.DENIED: "it does not know this deployment, or not by this key",
    Code.STALE: "its clock and ours differ by more than 60 s",
    Code.REPLAYED: "it has seen this request before",
    Code.TOO_LARGE: "more than it sends at once; ask for less",
    Code.UNAVAILABLE: "it cannot read its own database in time",
}


class Pong(Artifact):
    """What a peer answers to a ping: who it is, and what its clock says."""

    azolla_id: Id
    at: AwareDatetime


@dataclass(frozen=True)
class Ping:
    """How a ping went: the difference of the clocks, or a note why there was no answer."""

    peer_id: str
    ahead: timedelta | None = None
    note: str | None = None


class _NotUsable(Exception):
    """No answer to go by, why, and what becomes of the query."""

    def __init__(
        self, note: str, status: ResponseStatus = ResponseStatus.TARGET_UNAVAILABLE
    ) -> None:
        super().__init__(note)
        self.note, self.status = note, status


class PeerClient:
    """Asks the peers of one registry.

    >>> client = PeerClient(Registry.alone("warehouse"))
    >>> client.ping("sales").note
    'is not in the registry'
    """

    def __init__(
        self,
        registry: Registry,
        timeout: timedelta = TIMEOUT,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._registry = registry
        self._timeout = timeout
        self._clock = clock

    def query(
        self, peer_id: str, query: SubstrateQuery
    ) -> tuple[SubstrateQueryResponse, str | None]:
        """The peer's answer, and a note in one line if it is none or a refusal.

        Results are believed only as artifacts of the type that was asked for.
        """
        try:
            body = self._ask(peer_id, QUERY, write_json(query.model_dump(mode="json")))
            response = _response(query, peer_id, body)
        except _NotUsable as problem:
            return self._instead(query, peer_id, problem.status), problem.note
        if response.status is ResponseStatus.DENIED:
            return response, f"{query.artifact_type} is not for us, or not stored there"
        return response, None

    def ping(self, peer_id: str) -> Ping:
        """Whether the peer answers, knows us and is who it should be."""
        before = self._clock()
        try:
            pong = _pong(peer_id, self._ask(peer_id, PING, b""))
        except _NotUsable as problem:
            return Ping(peer_id, note=problem.note)
        return Ping(peer_id, ahead=pong.at - (before + (self._clock() - before) / 2))

    def _ask(self, peer_id: str, route: tuple[str, str], body: bytes) -> bytes:
        """The body of a signed answer to just this request."""
        peer = self._registry.peers.get(peer_id)
        if peer is None:
            raise _NotUsable("is not in the registry")
        request = self._request(peer, route, body)
        headers = request.signed_with(peer.keys[0])
        try:
            received = exchange(
                *(request.method, peer.url, request.path, headers, body),
                within=self._timeout,
                most_bytes=LARGEST_ANSWER,
            )
        except NoAnswer as reason:
            raise _NotUsable(str(reason)) from None
        if received.status != 200:
            raise _refusal(received)
        genuine = answers(
            *(peer.keys[0], headers[SIGNATURE], received.headers),
            status=received.status,
            body=received.body,
            source=peer.id,
            target=self._registry.own.id,
        )
        if not genuine:
            raise _NotUsable("its answer is not signed by it for this request")
        return received.body

    def _request(self, peer: Peer, route: tuple[str, str], body: bytes) -> Request:
        now = int(self._clock().timestamp())
        return Request(*route, body, self._registry.own.id, peer.id, now, secrets.token_urlsafe(24))

    def _instead(
        self, query: SubstrateQuery, peer_id: str, status: ResponseStatus
    ) -> SubstrateQueryResponse:
        return SubstrateQueryResponse(
            response_id=response_to(query.query_id),
            query_id=query.query_id,
            target_azolla_id=peer_id,
            status=status,
            created_at=self._clock(),
        )


def _refusal(received: Received) -> _NotUsable:
    """A code need not be signed: whoever could forge it could as well cut the wire."""
    if 300 <= received.status < 400:
        return _NotUsable("redirects, and redirects are not followed")
    try:
        code = Code(read_json(received.body[:4096])["code"])
    except (ValueError, TypeError, LookupError):
        return _NotUsable(f"answered with HTTP status {received.status}")
    told = f"{code}: {_MEANINGS[code]}"
    if code is Code.UNAVAILABLE:
        return _NotUsable(told)
    return _NotUsable(told, ResponseStatus.DENIED)


def _response(query: SubstrateQuery, peer_id: str, body: bytes) -> SubstrateQueryResponse:
    try:
        response = SubstrateQueryResponse.model_validate(read_json(body))
        results = tuple(_believed(query.artifact_type, one) for one in response.results)
    except (Unreadable, ValidationError):
        raise _NotUsable("its answer is no substrate_query_response for this type") from None
    if (response.query_id, response.target_azolla_id) != (query.query_id, peer_id):
        raise _NotUsable("its answer is for another query")
    if response.status is ResponseStatus.TARGET_UNAVAILABLE:
        raise _NotUsable("says it is not available")
    if len(results) > MOST_RESULTS or (results and response.status is not ResponseStatus.OK):
        raise _NotUsable("its answer has more results than it may")
    return response.model_copy(update={"results": results})


def _believed(kind: ArtifactType, given: Mapping[str, object]) -> dict[str, object]:
    return KINDS[kind].model_validate(given).model_dump(mode="json")


def _pong(peer_id: str, body: bytes) -> Pong:
    try:
        pong = Pong.model_validate(read_json(body))
    except (Unreadable, ValidationError):
        raise _NotUsable("its answer is no answer to a ping") from None
    if pong.azolla_id != peer_id:
        raise _NotUsable("answers for somebody else")
    return pong
