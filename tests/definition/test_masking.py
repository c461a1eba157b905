"""A stored input is shown without what its workflow declares secret; so are the errors about it."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Self

import pytest
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    RootModel,
    SecretStr,
    model_validator,
)

from headway.definition.inputs import InputType
from headway.definition.masking import shown_input
from headway.definition.registry import Registry
from headway.domain.masking import MASK
from headway.errors import InputError

Stored = Annotated[
    SecretStr,
    Field(min_length=3),
    PlainSerializer(lambda secret: secret.get_secret_value(), when_used="json"),
]


class Login(BaseModel):
    user: str
    password: Stored = Field(alias="pw")

    @model_validator(mode="after")
    def _is_another_word(self) -> Self:
        if self.user == "root":
            raise ValueError("root may not log in")
        return self


def registry() -> Registry:
    def connect(login: Login) -> None: ...

    known = Registry()
    known.register(None, (connect,), context_type=dict)
    return known


def test_a_stored_secret_is_not_shown() -> None:
    text = InputType(Login).encode({"user": "ada", "pw": "geheim"}, "connect")
    assert "geheim" in text
    assert shown_input(registry(), "connect", text) == {"user": "ada", "password": MASK}


class Named(BaseModel):
    user: str = Field(alias="login")
    password: Stored = Field(alias="pw")


def test_what_is_no_secret_is_shown_by_the_name_of_its_field() -> None:
    text = InputType(Named).encode({"login": "ada", "pw": "geheim"}, "connect")
    shown = InputType(Named).masked(json.loads(text))
    assert shown == {"user": "ada", "password": MASK}


@pytest.mark.parametrize("text", ['{"user": "ada"}', '"geheim"', "{broken"])
def test_an_input_nobody_here_knows_is_not_shown_at_all(text: str) -> None:
    assert shown_input(registry(), "of another application", text) == MASK


class ByCard(BaseModel):
    card: Stored


class Order(BaseModel):
    pay: Login | ByCard
    rows: int = 0


def quoting(password: str) -> str:
    raise KeyError(f"{password} was stolen")


class Choosy(BaseModel):
    password: Annotated[str, Field(json_schema_extra={"secret": True}), AfterValidator(quoting)]


@pytest.mark.parametrize(
    ("taken", "given"),
    [
        (Login, {"user": "ada", "passwd": "geheim"}),
        (Login, '{"user": "ada", "pw": "geheim"}'),
        (Login, {"user": 7, "pw": "geheim"}),
        (Order, {"pay": {"user": "ada", "pw": ["geheim"]}}),
        (Order, {"pay": {"user": "root", "pw": "geheim"}, "rows": "x"}),
        (Order, {"rows": {"card": "geheim"}, "pay": {"card": "geheim"}}),
        (Choosy, {"password": "geheim"}),
        (Choosy, Choosy.model_construct(password="geheim")),
        (list[Login], [{"user": "ada", "pw": "geheim" * 20}, 7]),
    ],
)
def test_a_misplaced_or_quoted_secret_is_not_told_either(taken: Any, given: Any) -> None:
    with pytest.raises(InputError) as refused:
        InputType(taken).encode(given, "connect")
    assert "geheim" not in str(refused.value)
    assert "geheim" not in repr(refused.value.places)


@dataclass
class Held:
    user: str
    password: Stored


class Keys(RootModel[list[Stored]]): ...


class Codes(RootModel[list[Annotated[str, Field(json_schema_extra={"format": "password"})]]]): ...


class Unspoken(BaseModel):
    """A type that no JSON schema describes."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    password: Stored
    call: Callable[[], None]


@pytest.mark.parametrize(
    ("taken", "value"),
    [
        (Login, Login(user="ada", pw=SecretStr("geheim"))),
        (Login, {"user": "ada", "pw": "geheim"}),
        (Login, {"user": "ada", "password": "geheim"}),
        (Login, {"user": SecretStr("geheim")}),
        (Held, Held("ada", SecretStr("geheim"))),
        (Held, {"user": "ada", "password": "geheim"}),
        (Keys, Keys([SecretStr("geheim")])),
        (Codes, Codes(["geheim"])),
        (tuple[Stored, ...], (SecretStr("geheim"),)),
        (list[Stored], ("geheim",)),
        (list[Stored], {"geheim"}),
        (dict[str, Login], {"first": {"pw": "geheim"}}),
        (Unspoken, {"password": "geheim", "call": "said"}),
    ],
)
def test_a_secret_is_replaced_in_other_texts_whatever_holds_it(taken: Any, value: Any) -> None:
    redaction = InputType(taken).secrets.redaction_of(7, value)
    assert redaction.text("ada said geheim") == f"ada said {MASK}"


def test_a_value_without_end_hides_what_is_found_before() -> None:
    endless: list[Any] = ["geheim"]
    endless.append(endless)
    redaction = InputType(list[Stored]).secrets.redaction_of(endless)
    assert redaction.text("ada said geheim") == f"ada said {MASK}"


def test_of_a_type_without_a_schema_everything_stored_is_hidden() -> None:
    declared = InputType(Unspoken)
    assert declared.json_schema() == {}
    assert declared.masked({"password": "geheim", "user": "ada"}) == MASK


def test_a_stored_text_that_cannot_be_read_does_not_tell_its_secret() -> None:
    with pytest.raises(InputError) as refused:
        InputType(Choosy).decode('{"password":"geheim"}', "connect")
    assert "geheim" not in str(refused.value) and f"{MASK} was stolen" in str(refused.value)
    with pytest.raises(InputError) as refused:
        InputType(Login).decode('{"user":"root","password":"geheim"}', "connect")
    assert "geheim" not in str(refused.value) and "root may not log in" in str(refused.value)
    redaction = InputType(Login).redaction_of('{"user":"ada","password":"geheim"}')
    assert redaction.text("ada said geheim") == f"ada said {MASK}"


def test_a_default_that_is_secret_is_no_example() -> None:
    class Keyed(BaseModel):
        key: str = Field("geheim", min_length=3, json_schema_extra={"format": "password"})

    with pytest.raises(InputError) as refused:
        InputType(Keyed).encode({"key": "x"}, "connect")
    assert "geheim" not in str(refused.value)


def test_no_input_is_no_secret() -> None:
    assert shown_input(registry(), "of another application", "null") is None


@pytest.mark.parametrize(
    "input",
    [
        {"user": "ada", "pw": "ge"},
        {"user": "ada", "pw": ["geheim"]},
        {"user": "root", "pw": "geheim"},
    ],
)
def test_an_error_about_an_input_does_not_tell_its_secret(input: dict[str, Any]) -> None:
    with pytest.raises(InputError) as refused:
        InputType(Login).encode(input, "connect")
    assert "ge'" not in str(refused.value)
    assert "geheim" not in str(refused.value)
    assert MASK in str(refused.value)
