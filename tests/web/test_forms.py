"""Forms made from JSON schemas: which fields there are, and what a sent one stands for."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel
from pydantic import Field as Described

from headway import Headway
from headway.definition.inputs import InputType
from headway.web.forms.fields import ABSENT, Field, fields_of, name_of
from headway.web.forms.inputs import InputForm, knows, offered
from headway.web.forms.inputs import sent as sent_input
from headway.web.forms.sent import MOST_ROWS, Sent, unmasked
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


class Feed(BaseModel):
    title: Annotated[str, Described(description="What it is.", min_length=2, max_length=9)]
    rows: Annotated[int, Described(ge=0, le=1000)] = 120
    least: Annotated[int, Described(ge=3)] = 3
    share: Annotated[float, Described(le=9.5)] = 1.5
    at: datetime | None = None
    span: timedelta = timedelta(hours=1)
    fresh: bool = True
    maybe: bool | None = None
    mode: Literal["full", "delta"] = "full"
    kind: Literal["feed"]
    part: Part | None = None
    own: Part
    names: list[str] | None = None
    key: Annotated[str, Described(json_schema_extra={"secret": True})] = ""


GIVEN = {"title": "a feed", "kind": "feed", "own": {"name": "o"}, "key": "geheim"}
FEED = InputType(Feed).json_schema(by_alias=False)


def field(label: str, value: Any = ABSENT, *errors: tuple[tuple[str | int, ...], str]) -> Field:
    """The field of a feed with this label."""
    return {one.label: one for one in fields_of(FEED, value, errors).fields}[label]


@pytest.mark.parametrize(
    ("label", "hint", "limits"),
    [
        ("title", "What it is", {"maxlength": "9", "minlength": "2"}),
        ("rows", "From 0 to 1000", {"min": "0", "max": "1000"}),
        ("least", "At least 3", {"min": "3"}),
        ("share", "At most 9.5", {"max": "9.5"}),
        ("at", "For example 2030-01-31T12:00:00Z", {}),
        ("span", "For example PT1H for an hour", {}),
        ("fresh", "", {}),
    ],
)
def test_a_field_tells_what_may_stand_there(label: str, hint: str, limits: object) -> None:
    assert (field(label).hint, field(label).limits) == (hint, limits)


def test_several_hints_are_sentences() -> None:
    node = {"type": "integer", "description": "How many.", "minimum": 1}
    assert fields_of(node).hint == "How many. At least 1"


def test_a_field_is_required_if_it_has_no_default_and_may_not_be_null() -> None:
    required = {one.label for one in fields_of(FEED).fields if one.required}
    assert required == {"title", "kind", "own"}
    nullable = {"type": "object", "required": ["a"], "properties": {"a": {"anyOf": []}}}
    nullable["properties"] = {"a": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}
    assert not fields_of(nullable).fields[0].required


def test_an_empty_choice_is_offered_only_where_none_has_to_be_made() -> None:
    assert field("kind").choices == (('"feed"', "feed"),)
    assert field("mode").choices == (("", "–"), ('"full"', "full"), ('"delta"', "delta"))
    assert field("maybe").choices == (("", "–"), ("true", "true"), ("false", "false"))


def test_fields_begin_with_the_value_or_the_default() -> None:
    def shown(value: Any) -> dict[str, Any]:
        return {
            one.label: one.checked if one.kind is Kind.SWITCH else one.value
            for one in fields_of(FEED, value).fields
            if one.kind not in (Kind.GROUP, Kind.LIST)
        }

    assert shown(ABSENT) == {
        "title": "", "rows": "120", "least": "3", "share": "1.5", "at": "", "span": "PT1H",
        "fresh": True, "maybe": "", "mode": '"full"', "kind": "", "key": "",
    }  # fmt: skip
    given = GIVEN | {"rows": 7, "fresh": False, "maybe": False, "mode": "delta", "key": "********"}
    assert shown(given) == {
        "title": "a feed", "rows": "7", "least": "3", "share": "1.5", "at": "", "span": "PT1H",
        "fresh": False, "maybe": "false", "mode": '"delta"', "kind": '"feed"', "key": "",
    }  # fmt: skip


def test_a_switch_is_on_only_if_it_is_true() -> None:
    assert field("fresh", GIVEN | {"fresh": True}).checked
    assert not field("fresh", GIVEN | {"fresh": "no"}).checked


def test_an_optional_group_that_is_not_given_shows_no_defaults() -> None:
    def values(label: str, value: Any) -> list[str]:
        return [one.value for one in field(label, value).fields[:2]]

    assert values("part", GIVEN) == ["", ""]
    assert values("part", GIVEN | {"part": {"name": "p"}}) == ["p", "1"]
    assert values("own", ABSENT) == ["", "1"]


def test_json_is_shown_so_that_it_can_be_read() -> None:
    tags = {one.label: one for one in fields_of(SCHEMA, {"tags": {"größe": 1}}).fields}["tags"]
    assert tags.value == '{\n  "größe": 1\n}'


def test_a_list_has_its_rows_and_an_empty_one_to_be_copied() -> None:
    made = field("names", GIVEN | {"names": ["x", "y"]})
    assert [(one.name, one.label, one.value) for one in made.fields] == [
        ("input/names/0", "1", "x"),
        ("input/names/1", "2", "y"),
    ]
    assert made.blank is not None
    assert (made.blank.name, made.blank.value) == ("input/names/__n__", "")
    assert made.blank.numbered(2).name == "input/names/2"
    assert field("names", GIVEN).fields == ()


def test_a_row_that_is_numbered_takes_its_inner_fields_with_it() -> None:
    blank = fields_of(SCHEMA).fields[10].blank
    assert blank is not None
    assert [one.name for one in blank.numbered(3).fields[:2]] == [
        "input/parts/3/name", "input/parts/3/amount",
    ]  # fmt: skip
    assert blank.numbered(3).id == "field-input-parts-3"


def test_names_of_fields_tell_slashes_from_steps() -> None:
    assert name_of(("a/b", "c~d", 2)) == "input/a~1b/c~0d/2"
    assert name_of(()) == "input"


def test_an_error_stands_at_its_field_and_not_at_the_group_around_it() -> None:
    errors = [(("own", "amount"), "too small"), (("mode", "literal"), "no mode"), (("own",), "odd")]
    made = fields_of(FEED, GIVEN, errors)
    inner = {one.label: one for one in field("own", GIVEN, *errors).fields}
    assert inner["amount"].error == "too small"
    assert inner["name"].error == ""
    assert {one.label: one.error for one in made.fields if one.error} == {
        "own": "odd",
        "mode": "no mode",
    }
    assert field("own", GIVEN, (("own", "amount"), "too small")).error == ""
    listed = field("names", GIVEN | {"names": [""]}, (("names", 0), "empty"), (("names",), "few"))
    assert (listed.error, listed.fields[0].error) == ("few", "empty")
    for label in ("fresh", "key", "rows"):
        assert field(label, GIVEN, ((label,), "wrong")).error == "wrong"


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "string", "format": "time"}, Kind.TIME),
        ({"type": "string", "format": "uuid"}, Kind.TEXT),
        ({"type": "string", "format": "password"}, Kind.SECRET),
        ({"type": "integer", "writeOnly": True}, Kind.SECRET),
        ({"type": "integer", "secret": True}, Kind.SECRET),
        ({"const": 3}, Kind.CHOICE),
        ({"type": "null"}, Kind.NOTHING),
        ({"type": "object"}, Kind.JSON),
        ({"type": "object", "properties": {}}, Kind.JSON),
        ({"type": "array"}, Kind.JSON),
        ({"type": "array", "items": {"type": "string"}, "prefixItems": []}, Kind.JSON),
        ({"oneOf": [{"type": "number"}, {"type": "null"}]}, Kind.NUMBER),
        ({"allOf": [{"type": "boolean"}]}, Kind.SWITCH),
    ],
)
def test_a_schema_asks_for_a_kind_of_field(schema: dict[str, Any], kind: Kind) -> None:
    assert shape_of(schema, schema).kind is kind


def test_what_is_said_beside_a_reference_counts() -> None:
    root = {"$defs": {"Day": {"type": "string", "description": "A day", "default": "x"}}}
    shape = shape_of(root, {"$ref": "#/$defs/Day", "default": "monday"})
    assert (shape.kind, shape.nullable) == (Kind.TEXT, False)
    assert (shape.node["description"], shape.node["default"]) == ("A day", "monday")
    nullable = {"anyOf": [{"$ref": "#/$defs/Day"}, {"type": "null"}], "description": "Which day"}
    assert shape_of(root, nullable).nullable
    assert shape_of(root, nullable).node["description"] == "Which day"


def of_feed(*fields: tuple[str, str], stored: Any = None) -> Any:
    return Sent(FEED, Form(fields), stored).value()


def test_fields_left_empty_are_nothing_empty_or_left_out() -> None:
    assert of_feed() == {
        "title": "", "at": None, "fresh": False, "maybe": None, "kind": "", "part": None,
        "span": "", "own": {"name": "", "inner": None}, "names": None,
    }  # fmt: skip


def test_numbers_and_choices_are_read_and_what_is_none_stays_text() -> None:
    filled = of_feed(
        ("input/rows", " 7 "),
        ("input/share", "0.5"),
        ("input/maybe", "false"),
        ("input/kind", '"feed"'),
        ("input/least", " many "),
        ("input/title", " as typed "),
        ("input/at", "soon"),
    )
    assert {name: filled[name] for name in ("rows", "share", "maybe", "kind", "least")} == {
        "rows": 7, "share": 0.5, "maybe": False, "kind": "feed", "least": "many",
    }  # fmt: skip
    assert (filled["title"], filled["at"]) == (" as typed ", "soon")


def test_a_secret_is_what_was_typed_or_else_what_is_stored() -> None:
    assert of_feed(("input/key", "new"), stored=GIVEN)["key"] == "new"
    assert of_feed(("input/key", ""), stored=GIVEN)["key"] == "geheim"
    assert "key" not in of_feed(stored={"title": "x"})
    assert "key" not in of_feed(stored=None)


def test_an_optional_group_is_given_as_soon_as_something_is_filled_in() -> None:
    assert sent(text="x", part__amount="2")["part"] == {"name": "", "amount": 2, "inner": None}
    assert sent(text="x", part__name=" ")["part"] == {"name": " ", "inner": None}
    assert sent(text="x")["part"] is None


def test_an_optional_group_that_may_not_be_null_is_left_out() -> None:
    part = {"type": "object", "properties": {"name": {"type": "string"}}}
    schema = {"type": "object", "properties": {"part": part}}
    assert Sent(schema, Form((("input/part/name", ""),))).value() == {}
    assert Sent(schema, Form((("input/part/name", "x"),))).value() == {"part": {"name": "x"}}


def test_empty_rows_of_a_list_are_left_out() -> None:
    numbers = {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}
    assert Sent(numbers, Form((("input/0", ""), ("input/1", "7")))).value() == [7]
    rows = sent(text="x", names__0="", names__1="a", parts__0__name="", parts__1__name="p")
    assert rows["names"] == ["a"]
    assert rows["parts"] == [{"name": "p", "inner": None}]
    assert of_feed(("input/names/0", "x"))["names"] == ["x"]


def test_only_so_many_rows_and_only_numbered_ones_are_read() -> None:
    many = tuple((f"input/names/{place}", "x") for place in range(MOST_ROWS + 1))
    odd = (("input/names/__n__", "blank"), ("input/names/1234567", "far"), ("input/names/٣", "y"))
    assert of_feed(*odd, *many)["names"] == ["x"] * MOST_ROWS


def test_json_that_is_none_is_an_error_of_its_field() -> None:
    reading = Sent(SCHEMA, Form((("input/tags", "{"), ("input/text", "x"), ("input/either", "3"))))
    assert reading.value()["tags"] == "{"
    assert reading.value()["either"] == 3
    assert reading.errors[0] == (("tags",), "is not JSON; text needs quotation marks")
    deep = Sent(SCHEMA, Form((("input/tags", "[" * 300 + "]" * 300),)))
    deep.value()
    assert [place for place, _ in deep.errors] == [("tags",)]


def test_masks_of_what_is_not_stored_stay_as_they_were_sent() -> None:
    mask = "********"
    assert unmasked(mask, mask, "geheim") == "geheim"
    assert unmasked(mask, "shown", "shown") == mask
    assert unmasked([mask, mask], [mask], ["a"]) == ["a", mask]
    assert unmasked({"a": {"b": mask}}, {"a": {"b": mask}}, {"a": {"b": 1}}) == {"a": {"b": 1}}


class Login(BaseModel):
    name: str
    key: Annotated[str, Described(json_schema_extra={"secret": True})]


class Access(BaseModel):
    rows: int
    login: Login | int


def access_work(access: Access) -> None: ...


def feed_work(feed: Feed) -> None: ...


def number_work(number: int) -> None: ...


def no_work(value: None) -> None: ...


def any_work(value: dict[str, Any]) -> None: ...


@pytest.fixture
def hw() -> Headway:
    hw = Headway("shop", database_url="sqlite://")
    for work in (feed_work, number_work, no_work, any_work, access_work):
        hw.workflow(work.__name__, steps=(work,))
    return hw


def test_a_form_is_offered_with_the_stored_input_and_masked_secrets(hw: Headway) -> None:
    form = offered(hw.registry, "feed_work", json.dumps(GIVEN))
    assert json.loads(form.raw) == GIVEN | {"key": "********"}
    assert form.raw.startswith('{\n  "title"')
    assert form.whole is not None and form.whole.fields[0].value == "a feed"
    assert (form.mode, form.takes_input, form.type_name) == ("fields", True, "Feed")
    assert (form.value, form.error, form.failed) == (ABSENT, "", False)


def test_what_no_fields_fit_is_given_as_json(hw: Headway) -> None:
    form = offered(hw.registry, "any_work", '{"a": 1}')
    assert (form.whole, form.mode, form.takes_input) == (None, "json", True)
    assert not offered(hw.registry, "no_work", "null").takes_input
    assert knows(hw.registry, "any_work") and not knows(hw.registry, "other_work")


def sent_for(hw: Headway, workflow: str, stored: Any, **fields: str) -> InputForm:
    named = tuple((name.replace("__", "/").replace("_", "-"), one) for name, one in fields.items())
    return sent_input(hw.registry, workflow, json.dumps(stored), Form(named))


def test_a_form_that_is_right_has_its_value(hw: Headway) -> None:
    form = sent_for(hw, "number_work", 3, input_mode="fields", input="4")
    assert (form.value, form.raw, form.mode, form.failed) == (4, "4", "fields", False)
    assert form.whole is not None and form.whole.value == "4"
    as_json = sent_for(hw, "number_work", 3, input_mode="json", input_json=" 5", input="4")
    assert (as_json.value, as_json.raw, as_json.mode) == (5, " 5", "json")
    nothing = sent_for(hw, "no_work", None, input_mode="json", input_json="3")
    assert (nothing.value, nothing.raw, nothing.takes_input) == (None, "null", False)


def test_a_form_that_is_wrong_names_what_is_and_keeps_what_was_typed(hw: Headway) -> None:
    typed = {"input__title": "t", "input__rows": "-1", "input__least": "1", "input__share": "20"}
    form = sent_for(hw, "feed_work", GIVEN, input__kind='"feed"', input__own__name="o", **typed)
    assert form.failed and form.value is ABSENT and form.mode == "fields"
    assert form.error == (
        "title: String should have at least 2 characters; "
        "rows: Input should be greater than or equal to 0; "
        "least: Input should be greater than or equal to 3"
    ), "the first three"
    assert form.whole is not None
    shown = {one.label: (one.value, one.error) for one in form.whole.fields}
    assert shown["share"] == ("20", "Input should be less than or equal to 9.5")
    assert json.loads(form.raw)["title"] == "t"
    assert json.loads(form.raw)["key"] == "********"


def test_a_form_that_is_wrong_shows_no_secret_again(hw: Headway) -> None:
    stored = {"rows": 1, "login": {"name": "ada", "key": "geheim"}}
    login = '{"name": "bea", "key": "********"}'
    form = sent_for(hw, "access_work", stored, input__rows="x", input__login=login)
    assert form.failed and form.whole is not None
    assert json.loads(form.whole.fields[1].value) == json.loads(login)
    assert "geheim" not in form.raw
    right = sent_for(hw, "access_work", stored, input__rows="2", input__login=login)
    assert right.value["login"] == {"name": "bea", "key": "geheim"}


def test_places_in_lists_are_named_by_their_number(hw: Headway) -> None:
    text = json.dumps(GIVEN | {"names": [1], "own": {"name": "o", "amount": []}})
    form = sent_for(hw, "feed_work", GIVEN, input_mode="json", input_json=text)
    assert form.error == "own.amount: Input should be a valid integer; names[0]: " + (
        "Input should be a valid string"
    )
    whole = sent_for(hw, "number_work", 3, input_mode="json", input_json='"x"')
    assert whole.error.startswith("input: ")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[1,\n x", "this is not JSON: Expecting value in line 2, column 2"),
        ("[" * 300 + "]" * 300, "this is not JSON: it is nested too deeply"),
    ],
)
def test_text_that_is_not_json_is_kept_with_what_is_wrong(
    hw: Headway, text: str, error: str
) -> None:
    form = sent_for(hw, "number_work", 3, input_mode="json", input_json=text)
    assert (form.raw, form.mode, form.error, form.value) == (text, "json", error, ABSENT)
    assert form.whole is not None and form.whole.value == "3", "as it is stored"


def test_a_number_nought_in_an_optional_group_is_something() -> None:
    assert sent(text="x", part__amount="0")["part"] == {"name": "", "amount": 0, "inner": None}


def test_a_secret_that_may_be_null_is_a_secret() -> None:
    node = {"anyOf": [{"type": "string"}, {"type": "null"}], "secret": True}
    shape = shape_of({}, node)
    assert (shape.kind, shape.nullable) == (Kind.SECRET, True)
    schema = {"type": "object", "properties": {"key": node}}
    assert Sent(schema, Form((("input/key", ""),)), {"key": "old"}).value() == {"key": "old"}
