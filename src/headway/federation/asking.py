"""Asking many deployments at once, each for so long and all for so long."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime

from headway.domain.azolla.artifacts import (
    ResponseStatus,
    SubstrateQuery,
    SubstrateQueryResponse,
)
from headway.domain.azolla.ids import response_to
from headway.observe import told

MOST_AT_ONCE = 16

Ask = Callable[[SubstrateQuery], tuple[SubstrateQueryResponse, str | None]]
"""Asks one deployment; returns its answer and, if that is none, why in one line."""


@dataclass(frozen=True)
class Asked:
    """A question, its answer, and why there is none."""

    query: SubstrateQuery
    response: SubstrateQueryResponse
    note: str | None = None


@dataclass(frozen=True)
class Patience:
    """How long all questions together may take, in seconds, and how often *meanwhile* is called."""

    budget: float
    pause: float
    meanwhile: Callable[[], None]


def ask_all(queries: Sequence[SubstrateQuery], ask: Ask, patience: Patience) -> list[Asked]:
    """Ask in parallel; whoever has not answered when the budget is over is unavailable."""
    end = time.monotonic() + patience.budget
    pool = ThreadPoolExecutor(min(MOST_AT_ONCE, max(1, len(queries))), "headway-query")
    try:
        futures = [pool.submit(ask, query) for query in queries]
        waiting = set(futures)
        while waiting and (left := end - time.monotonic()) > 0:
            _, waiting = wait(waiting, min(left, patience.pause))
            patience.meanwhile()
        return [_result(*pair, patience.budget) for pair in zip(queries, futures, strict=True)]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _result(
    query: SubstrateQuery,
    future: "Future[tuple[SubstrateQueryResponse, str | None]]",
    budget: float,
) -> Asked:
    if not future.done():
        return unavailable(query, f"no answer within {budget:g} s", query.created_at)
    error = future.exception()
    if error is not None:
        return unavailable(query, told(error), query.created_at)
    return Asked(query, *future.result())


def unavailable(query: SubstrateQuery, note: str, at: datetime) -> Asked:
    """What is written down of a deployment that could not be asked."""
    response = SubstrateQueryResponse(
        response_id=response_to(query.query_id),
        query_id=query.query_id,
        target_azolla_id=query.target_azolla_id,
        status=ResponseStatus.TARGET_UNAVAILABLE,
        created_at=at,
    )
    return Asked(query, response, note)
