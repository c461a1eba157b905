"""A stored input is shown without what its workflow declares secret; so are the errors about it."""

from typing import Annotated, Any, Self

import pytest
from pydantic import AfterValidator, BaseModel, Field, PlainSerializer, SecretStr, model_validator

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
