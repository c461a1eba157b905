"""The secret values in one input, whatever form it is in: stored, given, validated or refused."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import Any

from pydantic import BaseModel, RootModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, JsonSchemaWarningKind
from pydantic_core import CoreSchema

from headway.domain.masking import Schema, has_secrets, secret_parts
from headway.domain.redaction import Redaction

# Nothing that can be stored is nested more deeply.
_DEEPEST = 64


class InputSecrets:
    """Finds the secrets in inputs of one type.

    >>> from typing import Annotated
    >>> from pydantic import Field
    >>> Key = Annotated[str, Field(json_schema_extra={"format": "password"})]
    >>> secrets = InputSecrets(TypeAdapter(dict[str, Key]))
    >>> secrets.redaction_of({"key": "geheim"}).text("key geheim refused")
    'key ******** refused'
    """

    def __init__(self, adapter: TypeAdapter[Any]) -> None:
        self._adapter = adapter

    @cached_property
    def declared(self) -> bool:
        """Whether the type declares any part of an input secret."""
        return any(has_secrets(schema) for schema in self._schemas)

    def redaction_of(self, *values: Any) -> Redaction:
        """Return what replaces the secrets of all *values*, inputs of this type, in texts."""
        if not self.declared:
            return Redaction()
        return Redaction(one for value in values for one in self._found(value))

    @cached_property
    def _schemas(self) -> tuple[Schema, ...]:
        """By field name, as inputs are stored, and by alias, as they may be given."""
        try:
            return tuple(
                self._adapter.json_schema(by_alias=by_alias, schema_generator=_Lenient)
                for by_alias in (False, True)
            )
        except Exception:  # what the type hides is unknown, so all of it counts as hidden
            return ({"secret": True},)

    def _found(self, value: Any) -> Iterator[Any]:
        wrapped: list[Any] = []
        try:
            plain = _opened(value, wrapped)
        except Exception:  # of the user's types
            plain = None
        yield from wrapped
        for schema in self._schemas:
            yield from secret_parts(plain, schema)


class _Lenient(GenerateJsonSchema):
    """A schema of every type: a part that has none hides none of the others."""

    def handle_invalid_for_json_schema(
        self, schema: CoreSchema, error_info: str
    ) -> JsonSchemaValue:
        return {}

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        """Silent: nobody sees this schema."""


def _opened(value: Any, wrapped: list[Any], depth: int = 0) -> Any:
    """*value* as plain data; what a ``SecretStr`` or its like holds goes to *wrapped*, too."""
    if depth > _DEEPEST:
        return None
    if callable(unwrap := getattr(value, "get_secret_value", None)):
        wrapped.append(unwrap())
        return wrapped[-1]
    if isinstance(value, RootModel):
        return _opened(value.root, wrapped, depth + 1)
    if isinstance(value, BaseModel):
        names = [*type(value).model_fields, *(value.model_extra or ())]
        value = {name: getattr(value, name, None) for name in names}
    elif is_dataclass(value) and not isinstance(value, type):
        value = {one.name: getattr(value, one.name, None) for one in fields(value)}
    if isinstance(value, Mapping):
        return {key: _opened(part, wrapped, depth + 1) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_opened(part, wrapped, depth + 1) for part in value]
    return value
