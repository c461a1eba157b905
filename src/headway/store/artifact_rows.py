"""Artifacts as rows and back: lists and objects are ASCII JSON, everything else is itself."""

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from headway.domain.azolla.artifacts import Artifact

A = TypeVar("A", bound=Artifact)

_AS_JSON = frozenset(
    {
        "blocked_on",
        "filter",
        "metadata",
        "pause_state_summary",
        "prioritized_actions",
        "prioritized_orientation",
        "queried_azolla_ids",
        "related_yield_refs",
        "results",
    }
)


def to_row(artifact: Artifact, **beside: Any) -> dict[str, Any]:
    """The columns of *artifact*, and what its table keeps beside them."""
    plain = artifact.model_dump(mode="json", include=set(_AS_JSON))
    encoded = {name: None if value is None else json.dumps(value) for name, value in plain.items()}
    kept = {
        name: str(value) if isinstance(value, str) else value
        for name, value in artifact
        if name not in encoded
    }
    return kept | encoded | beside


def from_row(kind: type[A], row: Mapping[str, Any], **instead: Any) -> A:
    """The artifact in *row*; what the row says in another way is given *instead*."""
    fields = {name: row[name] for name in kind.model_fields if name not in instead}
    decoded = {
        name: json.loads(value)
        for name, value in fields.items()
        if name in _AS_JSON and value is not None
    }
    return kind.model_validate(fields | decoded | instead)
