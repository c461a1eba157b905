"""A whole batch after one manifest. Run it: headway run bulk_fan_out:hw"""

from pydantic import BaseModel

from headway import Headway, Item, every

hw = Headway("bulk-fan-out", database_url="sqlite:///bulk_fan_out.db")


class ExtractInput(BaseModel):
    mode: str


class Partition(BaseModel):
    partition: int


@hw.workflow
def extract(job: ExtractInput) -> None: ...


@hw.workflow
def load(job: Partition) -> None: ...


(
    hw.schedule(
        extract, "extract-all", ExtractInput(mode="full"), every(hours=1), group="extract"
    ).include_many(load, "load", (Item(i, Partition(partition=i)) for i in range(10)))
)
