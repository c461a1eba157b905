"""The application of one of the demo's deployments; which one, its process is told.

``headway run`` and ``headway azolla serve`` load it as ``headway.demo.federation.site:hw``.
"""

import os
from collections.abc import Callable
from datetime import timedelta

from headway.definition.app import Headway
from headway.domain.schedule import every
from headway.run import Run

SITE = "DEMO_SITE"
WAREHOUSE, SALES, MILL, HARBOUR = "warehouse", "sales", "mill", "harbour"

hw = Headway(
    os.environ.get(SITE, WAREHOUSE),
    default_max_retries=1,
    default_retry_delay=timedelta(seconds=1),
)


@hw.workflow
def count_stock(run: Run) -> None:
    """Goes well, and leaves something for a person to do."""
    run.hand_over("compare the 3 shelves whose stock differs", "then close the count")


@hw.workflow
def load_orders() -> None:
    """Never goes well."""
    raise ValueError("order 1042 has no customer")


@hw.workflow
def grind() -> None:
    """Never goes well either, but nobody outside gets to know."""
    raise RuntimeError("the stone is broken")


JOBS: dict[str, tuple[str, Callable[..., None]]] = {
    WAREHOUSE: ("count-stock", count_stock),
    SALES: ("load-orders", load_orders),
    MILL: ("grind", grind),
}

if hw.name in JOBS:
    external_id, workflow = JOBS[hw.name]
    hw.schedule(workflow, external_id, None, every(hours=24))
