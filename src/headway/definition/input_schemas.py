"""What the schema of an input's type tells once, so that it need not be asked of every value.

pydantic makes such a schema of every type it checks: nested dictionaries, each with its ``type``.
"""

from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any

Plain = Callable[[Any], Any]
"""Makes plain data of a value; raises :class:`Uncertain` where that needs a closer look."""

# Integers beyond these are as good, but whether they can be stored is decided elsewhere.
_CERTAIN_INTEGERS = range(-(2**63), 2**63)
_HARMLESS = frozenset({"type", "metadata", "ref"})
_OF_MODEL = _HARMLESS | {"cls", "schema", "custom_init", "root_model", "config"}
_OF_FIELDS = _HARMLESS | {"fields", "model_name", "computed_fields"}
_OF_DEFAULT = _HARMLESS | {"schema", "default", "default_factory"}
_OF_ONE_PART = _HARMLESS | {"schema"}


class Uncertain(Exception):
    """Whether this value can be stored and read again is not seen at a glance."""


def declares_extra(schema: Any) -> bool:
    """Whether a class somewhere in this core schema says itself what to do with unknown keys.

    >>> declares_extra([{"type": "model", "config": {"extra_fields_behavior": "ignore"}}])
    True
    """
    if isinstance(schema, list | tuple):
        return any(map(declares_extra, schema))
    if not isinstance(schema, Mapping):
        return False
    # A TypedDict that says nothing has the latter as "ignore".
    if schema.get("extra_fields_behavior") in ("allow", "ignore"):
        return True
    if schema.get("extra_behavior") == "allow":
        return True
    children = (child for key, child in schema.items() if key not in ("default", "metadata"))
    return any(map(declares_extra, children))


def at_a_glance(schema: Mapping[str, Any]) -> Plain | None:
    """For a type made of nothing but text, whole numbers, flags and models of such: what makes a
    value of exactly that type plain data. Such a value is what it was when it is read again.

    None for every other type, and for one with rules of its own: constraints, aliases, validators,
    serializers, a configuration. Only what is known to be harmless may stand in the schema.

    >>> from pydantic import BaseModel, TypeAdapter
    >>> class Table(BaseModel):
    ...     name: str
    ...     partition: int = 0
    >>> at_a_glance(TypeAdapter(Table).core_schema)(Table(name="users"))
    {'name': 'users', 'partition': 0}
    """
    if schema["type"] in _OF_KIND and schema.keys() <= _HARMLESS:
        return _OF_KIND[schema["type"]]
    if schema["type"] == "default" and schema.keys() <= _OF_DEFAULT:
        return at_a_glance(schema["schema"])
    if schema["type"] == "nullable" and schema.keys() <= _OF_ONE_PART:
        return _or_none(at_a_glance(schema["schema"]))
    if schema["type"] == "model" and schema.keys() <= _OF_MODEL:
        return _of_model(schema)
    return None


def _of_model(schema: Mapping[str, Any]) -> Plain | None:
    inside = schema["schema"]
    told = schema["custom_init"], schema["root_model"], inside.get("computed_fields")
    if any(told) or not schema["config"].keys() <= {"title"}:
        return None
    described = [(inside, _OF_FIELDS), *((one, _OF_ONE_PART) for one in inside["fields"].values())]
    if not all(one.keys() <= harmless for one, harmless in described):
        return None
    parts = {name: at_a_glance(field["schema"]) for name, field in inside["fields"].items()}
    certain = [(name, plain) for name, plain in parts.items() if plain is not None]
    return _fields_of(schema["cls"], certain) if len(certain) == len(parts) else None


def _fields_of(model: type, parts: list[tuple[str, Plain]]) -> Plain:
    names = [name for name, _ in parts]

    def plain(value: Any) -> Any:
        if type(value) is not model or list(value.__dict__) != names:
            raise Uncertain
        found = value.__dict__
        return {name: part(found[name]) for name, part in parts}

    return plain


def _or_none(plain: Plain | None) -> Plain | None:
    return plain and (lambda value: None if value is None else plain(value))


def _text(value: Any) -> str:
    # Other text may hold lone surrogates, which are refused where a value is looked at closely.
    if type(value) is str and value.isascii() and "\x00" not in value:
        return value
    raise Uncertain


def _integer(value: Any) -> int:
    if type(value) is int and value in _CERTAIN_INTEGERS:
        return value
    raise Uncertain


def _flag(value: Any) -> bool:
    if type(value) is bool:
        return value
    raise Uncertain


def _nothing(value: Any) -> None:
    if type(value) is not NoneType:
        raise Uncertain


_OF_KIND: dict[str, Plain] = {"str": _text, "int": _integer, "bool": _flag, "none": _nothing}
