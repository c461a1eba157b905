"""The runs of a pool: begun in their order, and known until their end is on record."""

import asyncio
from collections.abc import Callable, Collection

from headway.domain.execution import Execution
from headway.observe import Observer
from headway.runner.in_turn import InTurn
from headway.runner.outcome import failed
from headway.runner.state import RunnerEnv
from headway.runner.workflow import run_claimed
from headway.workflow import FAILURES


class Runs:
    """What is *running* by its id; *on_end* is told how many have ended.

    >>> Runs(loop, observer, print).start(env, [execution])  # doctest: +SKIP
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, observer: Observer, on_end: Callable[[int], None]
    ) -> None:
        self.running: dict[int, Execution] = {}
        self._observer = observer
        self._on_end = on_end
        self._in_turn = InTurn(loop, self._run)

    def start(self, env: RunnerEnv, started: Collection[Execution]) -> None:
        """Run these; called in the loop."""
        self.running.update((one.id, one) for one in started)
        self._in_turn.start([(env, one) for one in started])

    def written(self, handed_in: Collection[int], recorded: set[int]) -> None:
        """Their ends are on record, but for those that were no longer ours."""
        for lost in set(handed_in) - recorded:
            if one := self.running.get(lost):
                self._observer.emit("execution.refused", **one.told())
        self._leave(handed_in)

    def _leave(self, ended: Collection[int]) -> None:
        for execution_id in ended:
            self.running.pop(execution_id, None)
        self._on_end(len(ended))

    async def _run(self, started: tuple[RunnerEnv, Execution]) -> None:
        """Run it to its end, and hand that in to be recorded."""
        env, execution = started
        handed_in = False
        try:
            await run_claimed(execution, env)
            handed_in = True
        except FAILURES as error:
            self._observer.loop_failed("worker", error)
            await env.record(execution.id, failed("RunWorkflow", error))
            handed_in = True
        finally:
            if not handed_in:
                self._leave([execution.id])
