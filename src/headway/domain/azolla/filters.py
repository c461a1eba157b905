"""What may be asked for: the keys of a query's filter, for each type of artifact.

Every key narrows the answer; a list means any of its values. Unknown keys are refused, and so is
whatever is no plain value: a filter cannot nest, and cannot name a table, a column or an operator.
"""

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    ValidationError,
)

from headway.domain.azolla.artifacts import (
    ArtifactType,
    BlockerKind,
    Degree,
    Id,
    ObjectiveStatus,
    ObjectiveType,
    PauseReason,
)
from headway.errors import DefinitionError

MOST_VALUES = 100
MOST_RESULTS = 1000

T = TypeVar("T")


def _listed(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else [value]


Any_of: TypeAlias = Annotated[
    tuple[T, ...], BeforeValidator(_listed), Field(min_length=1, max_length=MOST_VALUES)
]


# In JSON true is no number and "5" is none either: a peer that sends them means something else.
StrictDegree: TypeAlias = Annotated[Degree, Field(strict=True)]


class Filter(BaseModel):
    """What all filters have in common: how many results at most, the newest first."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    limit: Annotated[int, Field(strict=True, ge=1, le=MOST_RESULTS)] = 200


class PauseStateFilter(Filter):
    """The keys for ``pause_state``.

    >>> PauseStateFilter.model_validate({"reason": "GATE_FAILED"}).reason
    (<PauseReason.GATE_FAILED: 'GATE_FAILED'>,)
    """

    objective_id: Any_of[Id] | None = None
    reason: Any_of[PauseReason] | None = None
    created_after: AwareDatetime | None = None
    unsettled: Annotated[
        bool,
        Field(strict=True, description="leave out pages, and what somebody has seen to since"),
    ] = False


class ObjectiveFilter(Filter):
    """The keys for ``objective``.

    >>> ObjectiveFilter.model_validate({"status": ["TODO", "BLOCKED"], "min_urgency": 3}).limit
    200
    """

    objective_id: Any_of[Id] | None = None
    status: Any_of[ObjectiveStatus] | None = None
    objective_type: Any_of[ObjectiveType] | None = None
    min_urgency: StrictDegree | None = None
    min_importance: StrictDegree | None = None
    updated_after: AwareDatetime | None = None


class BlockerRefFilter(Filter):
    """The keys for ``blocker_ref``.

    >>> BlockerRefFilter.model_validate({"resolved": False}).resolved
    False
    """

    blocker_id: Any_of[Id] | None = None
    kind: Any_of[BlockerKind] | None = None
    resolved: StrictBool | None = None


FILTERS: Mapping[ArtifactType, type[Filter]] = {
    ArtifactType.PAUSE_STATE: PauseStateFilter,
    ArtifactType.OBJECTIVE: ObjectiveFilter,
    ArtifactType.BLOCKER_REF: BlockerRefFilter,
}


def filter_of(artifact_type: ArtifactType, given: Mapping[str, Any]) -> Filter:
    """The filter *given* for this type of artifact, checked.

    >>> filter_of(ArtifactType.PAUSE_STATE, {"colour": "red"})
    Traceback (most recent call last):
    headway.errors.DefinitionError: filter.colour = 'red': is no key for pause_state; use one of \
limit, objective_id, reason, created_after, unsettled
    """
    kind = FILTERS[artifact_type]
    try:
        return kind.model_validate(dict(given))
    except ValidationError as error:
        raise DefinitionError(_explain(artifact_type, kind, error)) from None


def _explain(artifact_type: ArtifactType, kind: type[Filter], error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in ("filter", *first["loc"][:1]))
    shown = repr(first["input"])[:80]
    if first["type"] == "extra_forbidden":
        keys = ", ".join(kind.model_fields)
        return f"{where} = {shown}: is no key for {artifact_type}; use one of {keys}"
    return f"{where} = {shown}: {first['msg']}; see docs/reference/membrane.md"
