"""Two applications on one database: whoever's dispatcher leads, work goes where it should."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from headway import Headway, every
from headway.executor import Executor
from headway.history import History
from headway.service import Service
from headway.store.engine import Store
from headway.store.migrate import migrate
from tests.builders import Recorder

RUNS = 5


class Threads:
    """A task server that runs what it gets in threads of this process."""

    def __init__(self, executor: Executor, pool: ThreadPoolExecutor) -> None:
        self._executor = executor
        self._pool = pool

    def submit(self, execution_ids: Sequence[int]) -> None:
        for execution_id in execution_ids:
            self._pool.submit(self._executor.run, execution_id)


def application(url: str, name: str, *workflows: str) -> Headway:
    intervals = {"manager_polling_interval": "0.5s", "dispatcher_polling_interval": "0.5s"}
    hw = Headway(name, database_url=url, worker_count=2, **intervals)
    for workflow in workflows:
        hw.workflow(workflow)(lambda: None)
        for number in range(RUNS):
            hw.schedule(workflow, f"{workflow}-{number}", None, every(hours=1), group=workflow)
    return hw


def test_each_sends_its_own_and_leaves_the_others_alone(database_url: str) -> None:
    store = Store(database_url)
    migrate(store)
    shop = application(database_url, "shop", "sell")
    lab = application(database_url, "lab", "train", "measure", "tidy")
    here, there = Recorder(shop.observer), Recorder(lab.observer)
    with Executor(lab) as executor, ThreadPoolExecutor(2) as pool:
        lab.task_servers.add(
            "gpu", Threads(executor, pool), workflows=["train"], groups=["measure"]
        )
        services = [Service(shop), Service(lab)]
        for service in services:
            service.start()
        try:
            here.wait_for("execution.completed", RUNS)
            there.wait_for("execution.completed", 3 * RUNS)
        finally:
            for service in services:
                service.stop()

    ended = History(store).executions.all()
    store.close()
    assert {str(one.state) for one in ended} == {"completed"}
    assert len(ended) == 4 * RUNS
    sent = {one.workflow: one.task_server for one in ended}
    assert sent == {"sell": "local", "train": "gpu", "measure": "gpu", "tidy": "local"}
