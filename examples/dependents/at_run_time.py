"""Manifests made while everything runs: add_customer(hw.runtime, "acme")."""

from headway import Headway, Item, every
from headway.definition.runtime import Runtime

hw = Headway("at-run-time", database_url="sqlite:///at_run_time.db")


@hw.workflow
def work(name: str) -> None: ...


def add_customer(runtime: Runtime, customer: str) -> None:
    runtime.schedule(work, f"extract-{customer}", customer, every(hours=1), group="extract")
    runtime.schedule_dependent(
        work, f"load-{customer}", customer, depends_on=f"extract-{customer}", group="load"
    )


def add_reports(runtime: Runtime, customers: list[str]) -> int:
    return runtime.schedule_many_dependent(
        work, "report", [Item(one, one, depends_on=f"load-{one}") for one in customers]
    )
