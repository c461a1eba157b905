"""What is seen of an input at a glance: never anything but what the closer look finds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    computed_field,
    field_serializer,
    field_validator,
)

from headway.definition.input_schemas import at_a_glance
from headway.definition.inputs import InputType
from headway.domain.work_queue import MAX_INPUT_BYTES
from headway.errors import InputError

SUBJECT = "extract-users"


class Table(BaseModel):
    name: str
    partition: int = 0


class BigTable(Table):
    size: int = 1


class Constrained(BaseModel):
    number: int = Field(gt=0)


class Aliased(BaseModel):
    number: int = Field(alias="no")


class Validated(BaseModel):
    name: str

    @field_validator("name")
    @classmethod
    def lower(cls, name: str) -> str:
        return name.lower()


class Serialized(BaseModel):
    name: str

    @field_serializer("name")
    def upper(self, name: str) -> str:
        return name.upper()


class Stripped(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True)
    name: str


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    name: str


class Begun(BaseModel):
    name: str

    def model_post_init(self, _context: Any) -> None:
        self.name = self.name.lower()


class Counted(BaseModel):
    name: str

    @computed_field  # type: ignore[prop-decorator]
    @property
    def length(self) -> int:
        return len(self.name)


class Outer(BaseModel):
    inner: Validated


WITH_RULES = (Constrained, Aliased, Validated, Serialized, Stripped, Open, Begun, Counted, Outer)


@pytest.mark.parametrize("model", WITH_RULES)
def test_a_type_with_rules_of_its_own_is_looked_at_closely(model: type[BaseModel]) -> None:
    assert at_a_glance(TypeAdapter(model).core_schema) is None


class Plain(BaseModel):
    name: str
    partition: int = 0
    full: bool | None = None
    table: Table | None = None
    nothing: None = None


plain_models = st.builds(
    Plain,
    name=st.text(),
    partition=st.integers(),
    full=st.none() | st.booleans(),
    table=st.none() | st.builds(Table, name=st.text(), partition=st.integers()),
)


@given(plain_models)
def test_what_is_seen_at_a_glance_is_what_the_closer_look_finds(value: Plain) -> None:
    closely = InputType(Plain)
    closely._at_a_glance = None
    assert outcome(InputType(Plain), value) == outcome(closely, value)


@pytest.mark.parametrize(
    "value",
    [
        Table.model_construct(),
        Table.model_construct(name=5),
        Table.model_construct(name="users"),
        Table.model_construct(partition=1, name="users"),
        Table.model_construct(name="users", partition=True),
        Table.model_construct(name="users", partition=10**5000),
        BigTable(name="users"),
        {"name": "users", "partition": "3"},
        {"name": "users", "colour": "red"},
        Table(name="x" * MAX_INPUT_BYTES),
    ],
)
def test_what_is_not_exactly_of_its_type_is_looked_at_closely(value: Any) -> None:
    closely, quickly = InputType(Table), InputType(Table)
    closely._at_a_glance = None
    assert outcome(quickly, value) == outcome(closely, value)


def outcome(input_type: InputType, value: Any) -> str:
    try:
        return input_type.encode(value, SUBJECT)
    except InputError as error:
        return str(error)
