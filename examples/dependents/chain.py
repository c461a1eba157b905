"""A chain: what is transformed has been extracted. Run it: headway run chain:hw"""

from pydantic import BaseModel

from headway import Headway, every

hw = Headway("chain", database_url="sqlite:///chain.db")


class ExtractInput(BaseModel):
    source: str


class TransformInput(BaseModel):
    format: str


@hw.workflow
def extract(job: ExtractInput) -> None:
    print("extracting from", job.source)


@hw.workflow
def transform(job: TransformInput) -> None:
    print("transforming to", job.format)


(
    hw.schedule(
        extract, "extract-data", ExtractInput(source="api"), every(hours=1), group="etl"
    ).then_include(transform, "transform-data", TransformInput(format="parquet"), group="etl")
)
