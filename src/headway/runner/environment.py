"""What the runs of a pool may use, in the name of one owner."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headway.config import Settings
from headway.definition.registry import Registry
from headway.domain.execution import Ended, Execution, Outcome
from headway.observe import Observer
from headway.runner.cancellation import CancellationRegistry
from headway.runner.completions import Completions, OnUnwritten, OnWritten
from headway.runner.progress import ProgressWriter
from headway.runner.recording import Recording
from headway.runner.state import RunnerEnv
from headway.runner.threads import in_daemon_thread
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
    on_finished: Callable[[bool], None],
    on_written: OnWritten | None,
    on_unwritten: OnUnwritten,
    is_stopping: Callable[[], bool],
) -> RunnerEnv:
    """Ends are written in batches, and *on_finished* is told of each batch whether runs of
    manifests were among them: of others nobody but the dispatcher wants to know.

    A run waits until its end is written, unless *on_written* is called then.
    """

    def tell(recorded: Sequence[Ended | Execution]) -> None:
        on_finished(any(one.manifest_id is not None for one in recorded))

    write = Recording(store, owner, observer, settings.retry_policy, tell, settings.max_crashes)

    def note(reported: Mapping[int, Progress]) -> None:
        with store.writing() as tx:
            executions.note_progress(tx, owner, reported)

    completions = Completions(write, call_store, observer, on_written, on_unwritten)

    async def hand_in(execution_id: int, outcome: Outcome) -> None:
        completions.hand_in(execution_id, outcome)

    return RunnerEnv(
        store=store,
        registry=registry,
        owner=owner,
        cancellations=cancellations,
        call_store=call_store,
        call_sync=in_daemon_thread,
        record=completions.record if on_written is None else hand_in,
        report=ProgressWriter(loop, note, call_store).report,
        observer=observer,
        settings=settings,
        on_queued=lambda: on_finished(True),
        loop=loop,
        is_stopping=is_stopping,
    )
