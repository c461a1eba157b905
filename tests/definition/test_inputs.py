"""Typed inputs: what is stored comes back the same, and what cannot be is refused in one line."""

import dataclasses
import json
import math
import typing
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PrivateAttr,
    SecretStr,
    computed_field,
    field_validator,
)
from typing_extensions import TypedDict

from headway.definition.inputs import MAX_INPUT_DEPTH, InputType
from headway.domain.work_queue import MAX_INPUT_BYTES
from headway.errors import DefinitionError, InputError

Json = dict[str, Any]
SUBJECT = "extract-users"
REPEATED_HOUR = datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin"))


class Table(BaseModel):
    name: str
    partition: int = 0


class BigTable(Table):
    size: int = 1


@dataclass
class Bucket:
    number: int
    tables: list[str] = field(default_factory=list)


@dataclass(eq=False)
class Incomparable:
    number: int


@dataclass
class Derived:
    number: int
    double: int = field(init=False)

    def __post_init__(self) -> None:
        self.double = 2 * self.number


class Row(TypedDict):
    number: int
    note: NotRequired[str]


class Colour(Enum):
    RED = "red"


class Everything(BaseModel):
    at: datetime
    day: date
    span: timedelta
    price: Decimal
    key: UUID
    path: Path
    colour: Colour
    numbers: frozenset[int]
    raw: bytes


class Aliased(BaseModel):
    name: str = Field(validation_alias="Name", serialization_alias="NAME")


class Computed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    number: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def double(self) -> int:
        return 2 * self.number


class Stamped(BaseModel):
    number: int
    _made_at: float = PrivateAttr(default_factory=iter([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).__next__)


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    number: int = 0


class Forgiving(BaseModel):
    model_config = ConfigDict(extra="ignore")
    number: int = 0


class Ruled(BaseModel):
    at_least_ten: int = Field(default=20, ge=10)
    no_default: Annotated[int, Field(ge=10)]
    letter: Literal["a", "b"] = "a"
    city: str = Field(default="", examples=["Berlin"], max_length=10)
    at: datetime | None = None
    ratio: float = 0.5
    ready: bool = False
    inner: Table | None = None
    tables: list[Table] = []
    by_name: dict[str, int] = {}


class Checked(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def check(cls, number: int) -> int:
        if number in ERRORS:
            raise ERRORS[number]
        return number


class Unspeakable(ValueError):
    def __str__(self) -> str:
        raise RuntimeError("no text")


ERRORS = {
    1: ValueError("two\nlines"),
    2: KeyError("rows"),
    3: StopIteration(),
    4: Unspeakable(),
}


class Prefixing(BaseModel):
    name: str

    @field_validator("name")
    @classmethod
    def prefix(cls, name: str) -> str:
        return f"p-{name}"


class Secret(BaseModel):
    password: SecretStr


class Forgetful(BaseModel):
    number: int = Field(default=0, exclude=True)


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no text")


class Opaque:
    """A class pydantic knows nothing about."""


def message_of(annotation: Any, value: Any) -> str:
    with pytest.raises(InputError) as caught:
        InputType(annotation).encode(value, SUBJECT)
    message = str(caught.value)
    assert message.splitlines() == [message]
    assert message.isprintable()
    assert len(message) < 700
    return message


def nested(levels: int) -> list[Any]:
    inner: list[Any] = []
    for _ in range(levels - 1):
        inner = [inner]
    return inner


@pytest.mark.parametrize(
    ("annotation", "value", "text"),
    [
        (None, None, "null"),
        (int, 3, "3"),
        (str, 'quo"ted é', '"quo\\"ted \\u00e9"'),
        (str, "\x01\U0001f680", '"\\u0001\\ud83d\\ude80"'),
        (bool, True, "true"),
        (float, 1.5, "1.5"),
        (list[int], [1, 2], "[1,2]"),
        (tuple[int, str], (1, "a"), '[1,"a"]'),
        (set[int], {7}, "[7]"),
        (dict[int, str], {1: "a"}, '{"1":"a"}'),
        (int | None, None, "null"),
        (Table, Table(name="users"), '{"name":"users","partition":0}'),
        (Table | Bucket, Bucket(1), '{"number":1,"tables":[]}'),
        (list[Table], [Table(name="users")], '[{"name":"users","partition":0}]'),
        (Bucket, Bucket(1, ["a"]), '{"number":1,"tables":["a"]}'),
        (Derived, Derived(2), '{"number":2}'),
        (Row, {"number": 1}, '{"number":1}'),
        (Row, {"number": 1, "note": "x"}, '{"number":1,"note":"x"}'),
        (Json, {"a": {"b": [1, None, "x"]}}, '{"a":{"b":[1,null,"x"]}}'),
        (Open, Open(number=1, more=[1]), '{"number":1,"more":[1]}'),  # type: ignore[call-arg]
        (Aliased, Aliased(Name="x"), '{"name":"x"}'),  # type: ignore[call-arg]
        (Computed, Computed(number=2), '{"number":2}'),
        (datetime, REPEATED_HOUR, '"2024-10-27T02:30:00+01:00"'),
    ],
)
def test_an_input_is_stored_as_json_and_comes_back_equal(
    annotation: Any, value: Any, text: str
) -> None:
    declared = InputType(annotation)
    assert declared.encode(value, SUBJECT) == text
    decoded = declared.decode(text, SUBJECT)
    if value is REPEATED_HOUR:
        assert decoded.astimezone(UTC) == value.astimezone(UTC)
    else:
        assert (decoded, type(decoded)) == (value, type(value))
    assert declared.encode(decoded, SUBJECT) == text


@pytest.mark.parametrize(
    ("annotation", "value", "decoded"),
    [
        (Table, {"name": "users", "partition": "3"}, Table(name="users", partition=3)),
        (Bucket, {"number": 1}, Bucket(1)),
        (Bucket, Bucket(1, ("a", "b")), Bucket(1, ["a", "b"])),  # type: ignore[arg-type]
        (Aliased, {"Name": "x"}, Aliased(Name="x")),  # type: ignore[call-arg]
        (Aliased, {"name": "x"}, Aliased(Name="x")),  # type: ignore[call-arg]
        (list[int], (1, 2), [1, 2]),
        (Json, {"pair": (1, 2)}, {"pair": [1, 2]}),
        (Open, {"more": 1}, Open(more=1)),  # type: ignore[call-arg]
        (Forgiving, {"number": 1, "more": 1}, Forgiving(number=1)),
    ],
)
def test_plain_data_that_validates_becomes_the_declared_type(
    annotation: Any, value: Any, decoded: Any
) -> None:
    declared = InputType(annotation)
    assert declared.decode(declared.encode(value, SUBJECT), SUBJECT) == decoded


def test_rich_field_types_come_back_as_themselves() -> None:
    value = Everything(
        at=datetime(2024, 1, 2, 3, 4, tzinfo=UTC),
        day=date(2024, 1, 2),
        span=timedelta(hours=1, microseconds=1),
        price=Decimal("1.10"),
        key=UUID(int=7),
        path=Path("/data"),
        colour=Colour.RED,
        numbers=frozenset({1, 2}),
        raw=b"text",
    )
    declared = InputType(Everything)
    assert declared.decode(declared.encode(value, SUBJECT), SUBJECT) == value


def test_what_is_not_input_does_not_count_when_comparing() -> None:
    for annotation, value in [(Stamped, Stamped(number=1)), (Incomparable, Incomparable(1))]:
        declared = InputType(annotation)
        assert declared.decode(declared.encode(value, SUBJECT), SUBJECT).number == 1


any_text = st.text(st.characters(codec="utf-8", exclude_characters="\x00"))
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | any_text,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(any_text, inner, max_size=5),
    max_leaves=20,
)


@given(st.dictionaries(any_text, json_values, max_size=5))
def test_any_json_object_comes_back_as_it_was(
    value: dict[str, Any],
) -> None:
    declared = InputType(Json)
    text = declared.encode(value, SUBJECT)
    assert text.isascii()
    assert text.isprintable()
    assert declared.decode(text, SUBJECT) == value


@given(any_text, st.integers())
def test_any_model_and_dataclass_comes_back_as_it_was(name: str, number: int) -> None:
    for annotation, value in [
        (Table, Table(name=name, partition=number)),
        (Bucket, Bucket(number, [name])),
    ]:
        declared = InputType(annotation)
        text = declared.encode(value, SUBJECT)
        assert text.isascii()
        assert declared.decode(text, SUBJECT) == value


@given(json_values)
def test_whatever_is_given_is_either_stored_or_refused_in_one_line(value: Any) -> None:
    for annotation in (None, int, list[int], Table, Bucket, Row, Ruled):
        declared = InputType(annotation)
        try:
            text = declared.encode(value, SUBJECT)
        except InputError as error:
            assert str(error).startswith(f"{SUBJECT}: input ")
            assert str(error).splitlines() == [str(error)]
        else:
            declared.decode(text, SUBJECT)


NOT_INTEGER = "Input should be a valid integer, unable to parse string as an integer"
REVEALING = "Annotated[SecretStr, PlainSerializer(SecretStr.get_secret_value, when_used='json')]"
CHANGED = "does not survive storage as JSON, it would come back as"


@pytest.mark.parametrize(
    ("annotation", "value", "message"),
    [
        (int, "abc", f"= 'abc': {NOT_INTEGER}; for example 1"),
        (list[int], 3, "= 3: Input should be a valid list; for example []"),
        (list[int], [1, "x"], f"field '[1]' = 'x': {NOT_INTEGER}; for example 1"),
        (tuple[int, str], (1,), "field '[1]' is missing; for example \"text\""),
        (Table, None, "= None: Input should be a valid dictionary or instance of Table"),
        (
            Table,
            {"name": "users", "partition": "abc"},
            f"field 'partition' = 'abc': {NOT_INTEGER}; for example 1",
        ),
        (Table, {}, "field 'name' is missing; for example \"text\""),
        (
            Table,
            {"nmae": "users"},
            "field 'nmae' = 'users': no such field; the fields are name, partition (and 1 more)",
        ),
        (
            Bucket,
            {"number": 1, "size": 2},
            "field 'size' = 2: no such field; the fields are number, tables",
        ),
        (
            Row,
            {"number": 1, "size": 2},
            "field 'size' = 2: no such field; the fields are number, note",
        ),
        (
            list[Row],
            [{"number": 1, "size": 2}],
            "field '[0].size' = 2: no such field; the fields are number, note",
        ),
        (Row, {}, "field 'number' is missing; for example 1"),
        (Bucket, {"tables": []}, "field 'number' is missing; for example 1"),
        (None, 3, "= 3: the workflow takes no input; leave it out"),
    ],
)
def test_bad_input_is_refused_naming_subject_field_value_rule_and_example(
    annotation: Any, value: Any, message: str
) -> None:
    assert message_of(annotation, value) == f"{SUBJECT}: input {message}"


@pytest.mark.parametrize(
    ("fields", "parts"),
    [
        ({"at_least_ten": "x"}, ["'at_least_ten' = 'x'", "; for example 20"]),
        ({"letter": "z"}, ["'letter' = 'z'", "'a' or 'b'", '; for example "a"']),
        ({"city": 3}, ["'city' = 3", '; for example "Berlin"']),
        ({"at": "soon"}, ["'at' = 'soon'", '; for example "2030-01-31T12:00:00Z"']),
        ({"ratio": "half"}, ["'ratio' = 'half'", "; for example 1.5"]),
        ({"ready": 7}, ["'ready' = 7", "; for example true"]),
        ({"inner": {"name": 1}}, ["'inner.name' = 1", '; for example "text"']),
        ({"tables": [{"name": 1}]}, ["'tables[0].name' = 1", '; for example "text"']),
        ({"tables": [{"x": 1, "name": ""}]}, ["'tables[0].x'", "fields are name, partition"]),
        ({"by_name": {"a": "x"}}, ["'by_name.a' = 'x'", "; for example 1"]),
        ({"by_name": {"a\n\u202e": "x"}}, [r"'by_name.a\n\u202e' = 'x'"]),
        ({"ratio": "x", "ready": 7, "letter": 1}, ["'letter' = 1", "(and 2 more)"]),
    ],
)
def test_the_example_is_one_the_field_would_accept(
    fields: dict[str, Any], parts: list[str]
) -> None:
    message = message_of(Ruled, {"no_default": 10} | fields)
    assert [part for part in parts if part not in message] == []


def test_an_error_has_the_places_of_everything_that_is_wrong() -> None:
    with pytest.raises(InputError) as refused:
        InputType(Table).encode({"nmae": "users", "partition": "x"}, SUBJECT)
    assert refused.value.places == (
        (("nmae",), "Extra inputs are not permitted"),
        (("name",), "Field required"),
        (("partition",), NOT_INTEGER),
    )


def test_there_is_no_example_where_none_is_known_to_be_right() -> None:
    assert message_of(Ruled, {"no_default": 1}).endswith("greater than or equal to 10")


@pytest.mark.parametrize(
    ("annotation", "value", "parts"),
    [
        (float, math.nan, ["= nan", "NaN and infinity cannot be stored as JSON"]),
        (Json, {"a": [math.inf]}, ["'a[0]' = inf", "NaN and infinity"]),
        pytest.param(
            int, 10**5000, ["<unprintable int>", "at most 4300 digits"], id="a huge integer"
        ),
        (Json, {"a": -(10**5000)}, ["'a' = <unprintable int>", "at most 4300 digits"]),
        (list, nested(MAX_INPUT_DEPTH + 1), ["'[0]", "nested more than 32 levels deep"]),
        (list, nested(100_000), ["cannot be stored as JSON"]),
        (Json, {"a": "x" * MAX_INPUT_BYTES}, ["is 256008 bytes as JSON, more than 256000"]),
        (Json, {"a": {1, 2}}, ["'a' = {1, 2}", f"{CHANGED} [1, 2]"]),
        (list[int], {1, 2}, ["= {1, 2}: a set has no order; pass a list"]),
        (list[list[int]], [{1}], ["'[0]' = {1}: a set has no order"]),
        (Json, {"a": b"ab"}, ["'a' = b'ab'", f"{CHANGED} 'ab'"]),
        (Json, {"a": b"\xff"}, ["cannot be stored as JSON", "utf-8"]),
        (bytes, b"\xff", ["= b'\\xff'", "cannot be stored as JSON", "utf-8"]),
        (Json, {"a": {1: 2}}, ["'a' = {1: 2}", f"{CHANGED} {{'1': 2}}"]),
        (Json, {1: 2}, ["= 1: Input should be a valid string"]),
        (str, "a\x00b", [r"= 'a\x00b': must not contain NUL (U+0000 at position 2); for example"]),
        (Table, Table(name="\ud800"), [r"field 'name' = '\ud800'", "lone surrogates (U+D800 at"]),
        (Table, Table(name="\x00"), [r"field 'name' = '\x00'", "must not contain NUL"]),
        (Json, {"a": ["é", "b\udfffc"]}, [r"field 'a[1]' = 'b\udfffc'", "(U+DFFF at position 2)"]),
        (Json, {"a": {"\x00": 2}}, [r"field 'a' = '\x00': a key must not contain NUL"]),
        (Json, {"\ud800": 2}, [r"= {'\ud800': 2}", CHANGED]),
        (Json, {"a": {"\ud800": 2}}, [r"{'a': {'\ud800': 2}}", "surrogates not allowed"]),
        (Json, {"a": date(2024, 1, 2)}, ["'a' = datetime.date", f"{CHANGED} '2024-01-02'"]),
        (Json, {"a": Opaque()}, ["cannot be stored as JSON", "Opaque"]),
        (Json, {"a": Unprintable()}, ["<unprintable dict>", "cannot be stored as JSON"]),
        (int, Unprintable(), ["= <unprintable Unprintable>: Input should be a valid integer"]),
        (Table, BigTable(name="users"), ["BigTable(name='users'", f"{CHANGED} Table("]),
        (list[Table], [BigTable(name="users")], ["'[0]' = BigTable", CHANGED]),
        (Secret, {"password": "x"}, ["'password'", f"a serializer; for example {REVEALING}"]),
        (Open, Open(more={1, 2}), ["'more' = {1, 2}", f"{CHANGED} [1, 2]"]),  # type: ignore[call-arg]
        (Forgetful, {"number": 3}, ["'number' = 3", f"{CHANGED} 0"]),
        (Prefixing, {"name": "x"}, ["'name' = 'p-x'", f"{CHANGED} 'p-p-x'"]),
        (Checked, {"number": 1}, ["'number' = 1: Value error, two lines"]),
        (Checked, {"number": 2}, ["{'number': 2}", "KeyError: 'rows'"]),
        (Checked, {"number": 3}, ["{'number': 3}", "StopIteration"]),
        (Checked, {"number": 4}, ["{'number': 4}", "RuntimeError: no text"]),
    ],
)
def test_what_cannot_be_stored_faithfully_is_refused_in_one_line(
    annotation: Any, value: Any, parts: list[str]
) -> None:
    message = message_of(annotation, value)
    assert message.startswith(f"{SUBJECT}: input ")
    assert [part for part in parts if part not in message] == []


def test_a_secret_whose_type_reveals_it_in_json_is_stored() -> None:
    """The type is the one that the refusal of any other recommends."""
    types = {"Annotated": Annotated, "SecretStr": SecretStr, "PlainSerializer": PlainSerializer}
    revealed = InputType(eval(REVEALING, types))  # noqa: S307
    assert revealed.encode(SecretStr("pass word"), SUBJECT) == '"pass word"'
    assert revealed.decode('"pass word"', SUBJECT) == SecretStr("pass word")


def test_a_cycle_is_refused_in_one_line() -> None:
    value: list[Any] = []
    value.append(value)
    assert "Circular reference" in message_of(list, value)


def test_the_limits_themselves_are_still_accepted() -> None:
    assert InputType(list).encode(nested(MAX_INPUT_DEPTH), SUBJECT) == "[" * 32 + "]" * 32
    assert len(InputType(str).encode("x" * (MAX_INPUT_BYTES - 2), SUBJECT)) == MAX_INPUT_BYTES
    assert InputType(int).encode(10**4300 - 1, SUBJECT) == "9" * 4300


def test_an_instance_changed_to_hold_a_wrong_value_is_refused() -> None:
    table = Table(name="users")
    table.partition = "abc"  # type: ignore[assignment]
    bucket = dataclasses.replace(Bucket(1), number="abc")  # type: ignore[arg-type]
    assert f"'partition' = 'abc': {NOT_INTEGER}" in message_of(Table, table)
    assert f"'number' = 'abc': {NOT_INTEGER}" in message_of(Bucket, bucket)


def test_a_field_removed_from_the_code_does_not_fail_what_is_stored() -> None:
    stored = '{"name":"users","partition":1,"removed":true}'
    assert InputType(Table).decode(stored, SUBJECT) == Table(name="users", partition=1)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["= ''", "cannot be read"]),
        ("{", ["= '{'", "cannot be read"]),
        ("[NaN]", ["'NaN'", "NaN and infinity"]),
        pytest.param("[" * 100_000, ["cannot be read"], id="too deep"),
        pytest.param("1" * 5000, ["cannot be read", "4300 digits"], id="too many digits"),
        (None, ["= None", "cannot be read"]),
        ('["x"]', ["'[0]' = 'x'", NOT_INTEGER]),
        ("null", ["= None", "Input should be a valid list"]),
    ],
)
def test_a_stored_text_that_does_not_fit_is_refused_in_one_line(
    text: Any, parts: list[str]
) -> None:
    with pytest.raises(InputError) as caught:
        InputType(list[int]).decode(text, SUBJECT)
    message = str(caught.value)
    assert message.startswith(f"{SUBJECT}: input ")
    assert message.splitlines() == [message]
    assert [part for part in parts if part not in message] == []


class Unfinished(BaseModel):
    value: "NeverDefined"  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("annotation", "parts"),
    [
        (Opaque, ["input type Opaque", "declare a pydantic model"]),
        (list[Opaque], ["input type list[Opaque]"]),
        (Unfinished, ["input type Unfinished", "'NeverDefined' is not defined"]),
    ],
)
def test_a_type_that_cannot_be_checked_is_refused_when_declared(
    annotation: Any, parts: list[str]
) -> None:
    with pytest.raises(DefinitionError) as caught:
        InputType(annotation)
    message = str(caught.value)
    assert [part for part in parts if part not in message] == []
    assert message.splitlines() == [message]


def test_stored_text_is_plain_json_that_anyone_can_read() -> None:
    text = InputType(Bucket).encode(Bucket(1, ["é"]), SUBJECT)
    assert json.loads(text) == {"number": 1, "tables": ["é"]}


class PlainRow(typing.TypedDict):
    name: str
    rows: typing.NotRequired[int]


def test_the_typed_dict_of_the_standard_library_is_an_input_type_too() -> None:
    kind = InputType(PlainRow)
    assert kind.decode(kind.encode({"name": "users"}, "x"), "x") == {"name": "users"}
    assert kind.encode({"name": "users", "rows": 3}, "x") == '{"name":"users","rows":3}'
    for wrong in ({"rows": 3}, {"name": "users", "rows": "many"}, {"name": "users", "row": 3}):
        with pytest.raises(InputError, match="x: input field"):
            kind.encode(wrong, "x")


def test_a_key_of_two_values_is_refused_because_only_one_would_be_kept() -> None:
    rule = "is the key of two values, and only one of them would be kept"
    with pytest.raises(InputError, match=rule):
        InputType(Table).decode('{"name":"users","name":"orders"}', SUBJECT)
