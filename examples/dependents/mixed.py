"""Fan-out and chain mixed: the two pointers. Run it: headway run mixed:hw"""

from headway import Headway, every

hw = Headway("mixed", database_url="sqlite:///mixed.db")


@hw.workflow
def work(name: str) -> None:
    print(name)


(
    hw.schedule(work, "extract", "extract", every(hours=1), group="etl")
    .include(work, "transform", "transform", group="etl")  # after extract, the root
    .then_include(work, "load", "load", group="etl")  # after transform, the cursor
    .include(work, "validate", "validate", group="etl")  # after extract again
    .then_include(work, "notify", "notify", group="etl")  # after validate
)
