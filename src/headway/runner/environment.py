"""What the runs of a pool may use, in the name of one owner."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from headway.config import Settings
from headway.definition.registry import Registry
from headway.domain.execution import Outcome
from headway.observe import Observer
from headway.runner.cancellation import CancellationRegistry
from headway.runner.completions import Completions
from headway.runner.progress import ProgressWriter
from headway.runner.recording import Recording
from headway.runner.threads import in_daemon_thread
from headway.runner.workflow import RunnerEnv
from headway.store import executions
from headway.store.engine import Store
from headway.store.executions import Progress


def env_of(
    owner: str,
    *,
    store: Store,
    registry: Registry,
    settings: Settings,
    observer: Observer,
    cancellations: CancellationRegistry,
    loop: asyncio.AbstractEventLoop,
    call_store: Callable[..., Any],
    on_finished: Callable[[], None],
) -> RunnerEnv:
    """Ends are written in batches, and *on_finished* is told of each batch."""
    recording = Recording(store, owner, observer, settings.retry_policy)

    def write(ended: Mapping[int, Outcome]) -> set[int]:
        recorded = recording(ended)
        on_finished()
        return recorded

    def note(reported: Mapping[int, Progress]) -> None:
        with store.writing() as tx:
            executions.note_progress(tx, owner, reported)

    completions = Completions(write, call_store, observer)
    return RunnerEnv(
        store=store,
        registry=registry,
        owner=owner,
        cancellations=cancellations,
        call_store=call_store,
        call_sync=in_daemon_thread,
        record=completions.record,
        report=ProgressWriter(loop, note, call_store).report,
        observer=observer,
        settings=settings,
        on_queued=on_finished,
        loop=loop,
    )
