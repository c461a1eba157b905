"""A warehouse whose extracts run on Celery workers, and whose checks stay with headway."""

import os

from celery import Celery

from headway import Group, Headway, every
from headway.celery import CeleryServer, install

hw = Headway("warehouse")
app = Celery("warehouse", broker=os.environ.get("BROKER_URL", "redis://localhost:6379/0"))
app.conf.worker_prefetch_multiplier = 1  # what waits, waits in the broker and not in one worker


@hw.workflow
def extract(table: str) -> None:
    print(f"extracting {table}", flush=True)


@hw.workflow
async def check(table: str) -> None:
    print(f"checking {table}", flush=True)


hw.task_servers.add("celery", CeleryServer(app), workflows=[extract])
install(app, hw)

for table in ("orders", "users"):
    group = Group("extract", max_active_jobs=1)
    chain = hw.schedule(extract, f"extract-{table}", table, every(seconds=30), group=group)
    chain.then_include(check, f"check-{table}", table, group="check")
