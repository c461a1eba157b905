"""Fan-out: two jobs after one, independent of each other. Run it: headway run fan_out:hw"""

from headway import Headway, every

hw = Headway("fan-out", database_url="sqlite:///fan_out.db")


@hw.workflow
def extract() -> None: ...


@hw.workflow
def transform() -> None: ...


@hw.workflow
def validate() -> None: ...


(
    hw.schedule(extract, "extract", every(hours=1), group="etl")
    # Both depend on extract, not on each other.
    .include(transform, "transform", group="etl")
    .include(validate, "validate", group="etl")
)
