"""The statements of a dispatcher's cycle, put together before its first one.

To put them together takes as long as a cycle of a thousand jobs: a process that
starts has its queue to see to. For PostgreSQL, where they go straight to the driver.
"""

from collections.abc import Mapping

from headway.store.dispatching import folding_of
from headway.store.executions import NOBODY_WAITS
from headway.store.glance import glance_of
from headway.store.lane_entries import first_of
from headway.store.lanes import lanes_of
from headway.store.leases import holding
from headway.store.live import counted
from headway.store.locks import TAKE_AND_NOTE
from headway.store.servers import LIVING, ServerProcess, workers_of
from headway.store.shut_groups import noting
from headway.store.starting_all import starting_all
from headway.store.straight import write_down
from headway.store.transaction import Draft


def draft_cycle(process: ServerProcess, first_steps: Mapping[str, str]) -> None:
    """What a process sends that dispatches for itself; another set of workers needs others, which
    are put together when there is one.

    >>> draft_cycle(process, {"load": "read"})  # doctest: +SKIP
    """
    draft, shares = Draft(on_postgresql=True), workers_of(process).shares
    steps = tuple(sorted(first_steps.items()))
    # As they are asked for: what is kept goes by how it is called.
    statements = (
        LIVING,
        lanes_of(draft, False, False, False),
        *(first_of(draft, shares, grouped) for grouped in (True, False)),
        counted(draft),
        holding(True, True, NOBODY_WAITS),
        folding_of(draft, first_steps),
        noting(draft),
        glance_of(draft, shares, True),
        TAKE_AND_NOTE,
        *(starting_all(shares, steps, of_manifests) for of_manifests in (False, True)),
    )
    for statement in statements:
        write_down(statement)
