"""A batch after a batch, one to one. Run it: headway run bulk:hw"""

from pydantic import BaseModel

from headway import Headway, Item, every

hw = Headway("bulk", database_url="sqlite:///bulk.db")


class Partition(BaseModel):
    partition: int


@hw.workflow
def extract(job: Partition) -> None: ...


@hw.workflow
def load(job: Partition) -> None: ...


(
    hw.schedule_many(
        extract,
        "extract",
        (Item(i, Partition(partition=i)) for i in range(100)),
        every(minutes=30),
    ).include_many(
        load,
        "load",
        (Item(i, Partition(partition=i), depends_on=f"extract-{i}") for i in range(100)),
    )
)
# Creates extract-0 to extract-99 in the group "extract", and load-0 to load-99 in "load".
