"""In a sandbox nothing leaves it: what goes to other task servers runs there, and says where to."""

from __future__ import annotations

from collections.abc import Sequence

from headway import Headway, every
from headway.domain.execution import ExecutionState
from headway.testing import Sandbox


class Untouched:
    def submit(self, execution_ids: Sequence[int]) -> None:
        raise AssertionError("a sandbox must not call it")


def test_routed_work_runs_in_the_sandbox_in_virtual_time() -> None:
    hw = Headway("tests")
    ran: list[str] = []
    hw.workflow("train")(lambda: ran.append("train"))
    hw.workflow("load")(lambda: ran.append("load"))
    hw.task_servers.add("gpu", Untouched(), workflows=["train"])
    hw.schedule("train", "train-prices", None, every(hours=1))
    hw.schedule("load", "load-prices", None, every(hours=1))

    with Sandbox(hw) as box:
        box.advance(hours=2)
        servers = {one.external_id: one.task_server for one in box.executions()}
        states = {one.state for one in box.executions()}

    assert sorted(ran) == ["load"] * 3 + ["train"] * 3
    assert servers == {"train-prices": "gpu", "load-prices": "local"}
    assert states == {ExecutionState.COMPLETED}
