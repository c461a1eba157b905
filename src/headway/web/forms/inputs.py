"""The input of a run as a person gives it: by fields or as JSON, checked by the workflow's type."""

import json
from dataclasses import dataclass, field
from typing import Any

from headway.definition.inputs import MAX_INPUT_DEPTH
from headway.definition.json_text import is_nested_within
from headway.definition.masking import shown_input
from headway.definition.registry import RegisteredWorkflow, Registry
from headway.errors import InputError, UnknownWorkflow
from headway.web.forms.fields import ABSENT, INPUT, Errors, Field, fields_of
from headway.web.forms.sent import Sent, unmasked
from headway.web.forms.shapes import Kind
from headway.web.security.bodies import Form

BY_FIELDS, AS_JSON = "fields", "json"
MODE, RAW = "input-mode", "input-json"


@dataclass(frozen=True)
class InputForm:
    """What is shown, and, once it was sent and nothing was wrong with it, the value.

    ``error`` is about the whole; those of fields stand at the fields. ``whole`` is the field for
    the whole input, None where only JSON can be given.
    """

    whole: Field | None
    raw: str
    mode: str
    takes_input: bool = True
    value: Any = ABSENT
    error: str = ""
    type_name: str = ""
    schema: dict[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether it was sent and is to be corrected."""
        return bool(self.error)


def offered(registry: Registry, workflow: str, stored: str) -> InputForm:
    """The form before anybody has filled it in: with the *stored* input, secrets masked.

    >>> offered(registry, "extract", '"users"').raw  # doctest: +SKIP
    '"users"'
    """
    registered = registry.find(workflow)
    shown = shown_input(registry, workflow, stored)
    return _form(registered, shown, _pretty(shown), "")


def sent(registry: Registry, workflow: str, stored: str, form: Form) -> InputForm:
    """The form as it was sent, with the value it stands for or what is wrong with it.

    >>> sent(registry, "extract", '"users"', form(request)).value  # doctest: +SKIP
    'orders'
    """
    registered = registry.find(workflow)
    kept = json.loads(stored)
    if not _takes_input(registered):
        return _form(registered, None, "null", "", value=None)
    if form.get(MODE) == AS_JSON:
        return _sent_as_json(registry, registered, stored, form.get(RAW))
    reading = Sent(registered.input_type.json_schema(by_alias=False), form, kept)
    value = unmasked(reading.value(), shown_input(registry, workflow, stored), kept)
    raw = _pretty(registered.input_type.masked(value))
    return _checked(registered, value, raw, BY_FIELDS, reading.errors)


def _sent_as_json(
    registry: Registry, registered: RegisteredWorkflow, stored: str, text: str
) -> InputForm:
    shown = shown_input(registry, registered.name, stored)
    try:
        read = json.loads(text)
        if not is_nested_within(read, MAX_INPUT_DEPTH):
            raise RecursionError
        value = unmasked(read, shown, json.loads(stored))
    except (ValueError, RecursionError) as error:
        told = f"this is not JSON: {_where(error)}"
        return _form(registered, shown, text, AS_JSON, error=told)
    return _checked(registered, value, text, AS_JSON, ())


def _checked(
    registered: RegisteredWorkflow, value: Any, raw: str, mode: str, errors: Errors
) -> InputForm:
    if not errors:
        try:
            registered.input_type.encode(value, registered.name)
        except InputError as error:
            errors = error.places or (((), str(error)),)
        else:
            return _form(registered, value, raw, mode, value=value)
    told = "; ".join(_told(place, rule) for place, rule in errors[:3])
    return _form(registered, value, raw, mode, errors=errors, error=told)


def _form(
    registered: RegisteredWorkflow,
    shown: Any,
    raw: str,
    mode: str,
    *,
    errors: Errors = (),
    value: Any = ABSENT,
    error: str = "",
) -> InputForm:
    schema = registered.input_type.json_schema(by_alias=False)
    masked = registered.input_type.masked(shown)
    whole = fields_of(schema, masked, errors) if schema else None
    if whole is not None and whole.kind is Kind.JSON:
        whole = None
    return InputForm(
        whole=whole,
        raw=raw,
        mode=mode or (BY_FIELDS if whole is not None else AS_JSON),
        takes_input=_takes_input(registered),
        value=value,
        error=error,
        type_name=registered.input_type.name,
        schema=schema,
    )


def _takes_input(registered: RegisteredWorkflow) -> bool:
    return registered.input_type.json_schema().get("type") != "null"


def knows(registry: Registry, workflow: str) -> bool:
    """Whether this process can check an input of *workflow*.

    >>> knows(Registry(), "extract")
    False
    """
    try:
        registry.find(workflow)
    except UnknownWorkflow:
        return False
    return True


def _told(place: tuple[str | int, ...], rule: str) -> str:
    named = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return f"{named.lstrip('.') or INPUT}: {rule}"


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _where(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} in line {error.lineno}, column {error.colno}"
    return "it is nested too deeply"
