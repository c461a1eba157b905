"""docs/reference/artifacts holds the JSON Schema of every artifact, as the code has it.

To write them anew: ``python -m tests.surface.test_artifact_schemas``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from headway.domain.azolla.artifacts import ARTIFACTS, Artifact

FOLDER = Path(__file__).parents[2] / "docs" / "reference" / "artifacts"


def name_of(kind: type[Artifact]) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()


def schema_of(kind: type[Artifact]) -> dict[str, Any]:
    """As it is written: whatever has a default is there all the same, unless that is nothing."""
    schema = kind.model_json_schema(mode="serialization")
    schema["required"] = [
        name
        for name, field in kind.model_fields.items()
        if field.is_required() or field.default is not None
    ]
    about = (kind.__doc__ or "").splitlines()[0]
    draft = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": draft, **schema, "description": about}


def text_of(kind: type[Artifact]) -> str:
    return json.dumps(schema_of(kind), indent=2) + "\n"


@pytest.mark.parametrize("kind", ARTIFACTS, ids=name_of)
def test_the_schema_is_published_and_current(kind: type[Artifact]) -> None:
    published = (FOLDER / f"{name_of(kind)}.json").read_text("utf-8")
    assert published == text_of(kind), "run: python -m tests.surface.test_artifact_schemas"


def test_nothing_else_is_published() -> None:
    assert {file.stem for file in FOLDER.glob("*.json")} == {name_of(kind) for kind in ARTIFACTS}


@pytest.mark.parametrize("kind", ARTIFACTS, ids=name_of)
def test_extra_fields_are_refused_by_the_schema_too(kind: type[Artifact]) -> None:
    assert schema_of(kind)["additionalProperties"] is False


def test_every_field_is_required_but_one() -> None:
    left_out = {
        (name_of(kind), name)
        for kind in ARTIFACTS
        for name in kind.model_fields
        if name not in schema_of(kind)["required"]
    }
    assert left_out == {("context_snapshot", "metadata")}


def write() -> None:
    FOLDER.mkdir(exist_ok=True)
    for kind in ARTIFACTS:
        (FOLDER / f"{name_of(kind)}.json").write_text(text_of(kind), "utf-8")


if __name__ == "__main__":
    write()
