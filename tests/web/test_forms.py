"""Forms made from JSON schemas: which fields there are, and what a sent one stands for."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel

from headway.definition.inputs import InputType
from headway.web.forms.fields import fields_of
from headway.web.forms.sent import Sent, unmasked
from headway.web.forms.shapes import Kind, shape_of
from headway.web.security.bodies import Form


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Part(BaseModel):
    name: str
    amount: int = 1
    inner: Part | None = None


class Everything(BaseModel):
    text: str
    whole: int = 3
    share: float | None = None
    on: bool = True
    maybe: bool | None = None
    colour: Colour = Colour.RED
    day: date | None = None
    at: datetime | None = None
    span: timedelta | None = None
    part: Part | None = None
    parts: list[Part] = []
    names: list[str] = []
    tags: dict[str, int] = {}
    either: int | str = 3


SCHEMA = InputType(Everything).json_schema(by_alias=False)


def sent(**fields: str) -> Any:
    named = tuple((f"input/{name.replace('__', '/')}", value) for name, value in fields.items())
    return Sent(SCHEMA, Form(named)).value()


def test_every_type_has_a_field_that_fits_it() -> None:
    kinds = {one.label: one.kind for one in fields_of(SCHEMA).fields}
    assert kinds == {
        "text": Kind.TEXT,
        "whole": Kind.WHOLE,
        "share": Kind.NUMBER,
        "on": Kind.SWITCH,
        "maybe": Kind.CHOICE,
        "colour": Kind.CHOICE,
        "day": Kind.DATE,
        "at": Kind.MOMENT,
        "span": Kind.TEXT,
        "part": Kind.GROUP,
        "parts": Kind.LIST,
        "names": Kind.LIST,
        "tags": Kind.JSON,
        "either": Kind.JSON,
    }


def test_a_type_that_holds_itself_ends_as_json() -> None:
    field, depth = fields_of(SCHEMA).fields[9], 0
    while field.kind is Kind.GROUP:
        field, depth = field.fields[-1], depth + 1
    assert field.kind is Kind.JSON
    assert depth < 5


@pytest.mark.parametrize("schema", [{}, {"anyOf": []}, {"$ref": "#/$defs/A"}, {"type": "strange"}])
def test_what_nobody_understands_is_written_as_json(schema: dict[str, Any]) -> None:
    assert shape_of(schema, schema).kind is Kind.JSON


def test_a_definition_that_refers_to_itself_ends() -> None:
    schema = {"$defs": {"A": {"$ref": "#/$defs/A"}}, "$ref": "#/$defs/A"}
    assert shape_of(schema, schema).kind is Kind.JSON


def test_an_empty_form_is_what_the_type_has_by_default() -> None:
    empty = sent(text="x", on="yes")
    assert InputType(Everything).encode(empty, "test") == InputType(Everything).encode(
        Everything(text="x"), "test"
    )


def test_a_text_that_was_emptied_is_empty_and_not_its_default() -> None:
    class Named(BaseModel):
        name: str = "users"
        note: str | None = "none yet"
        rows: int = 3

    schema = InputType(Named).json_schema(by_alias=False)
    emptied = Form((("input/name", ""), ("input/note", ""), ("input/rows", "")))
    assert Sent(schema, emptied).value() == {"name": "", "note": None}


def test_what_was_filled_in_is_read_back() -> None:
    value = Everything(
        text="a",
        whole=0,
        share=0.5,
        on=False,
        maybe=True,
        colour=Colour.BLUE,
        day=date(2026, 1, 5),
        part=Part(name="one", amount=2),
        parts=[Part(name="x"), Part(name="y", inner=Part(name="z"))],
        names=["p", "q"],
        tags={"t": 1},
        either="text",
    )
    plain = value.model_dump(mode="json")
    form = Form(tuple(controls(fields_of(SCHEMA, plain))))
    read = Sent(SCHEMA, form).value()
    assert Everything.model_validate(read) == value


def controls(field: Any) -> list[tuple[str, str]]:
    """What a browser sends for *field*."""
    if field.kind in (Kind.GROUP, Kind.LIST):
        return [pair for inner in field.fields for pair in controls(inner)]
    if field.kind is Kind.SWITCH:
        return [(field.name, "yes")] if field.checked else []
    return [(field.name, field.value)]


def test_rows_keep_the_order_in_which_they_stood() -> None:
    assert sent(text="x", names__7="first", names__2="second")["names"] == ["first", "second"]


def test_masks_that_were_kept_are_what_they_hid_and_others_are_text() -> None:
    stored = {"key": "geheim", "list": [{"key": "a"}, {"key": "b"}]}
    shown = {"key": "********", "list": [{"key": "********"}, {"key": "********"}]}
    given = {"key": "********", "title": "********", "list": [{"key": "new"}, {"key": "********"}]}
    assert unmasked(given, shown, stored) == {
        "key": "geheim",
        "title": "********",
        "list": [{"key": "new"}, {"key": "b"}],
    }
