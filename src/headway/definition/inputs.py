"""Typed inputs: what a workflow's declared type accepts, how it is stored and read again.

Stored inputs are ASCII JSON, so that every database and every terminal holds every input. JSON
goes through :mod:`json` and pydantic sees Python values only: pydantic's own JSON cannot carry
lone surrogates. Text with NUL or lone surrogates is refused; rows that have them are still read.
"""

import json
import math
import sys
import typing
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from types import NoneType
from typing import Any, Literal, NotRequired, get_type_hints

import typing_extensions
from pydantic import BaseModel, SecretBytes, SecretStr, TypeAdapter, ValidationError

from headway.definition.input_schemas import Plain, Uncertain, at_a_glance, declares_extra
from headway.definition.input_secrets import InputSecrets
from headway.definition.json_text import NOT_FINITE, from_json, to_json
from headway.definition.problems import STORAGE, Path, Problem, one_line
from headway.domain.masking import MASK, masked
from headway.domain.redaction import Redaction
from headway.domain.text import shown, storage_rule
from headway.domain.work_queue import MAX_INPUT_BYTES
from headway.errors import DefinitionError, InputError
from headway.steps import type_name

MAX_INPUT_DEPTH = 32
HIDDEN_IN_JSON = (
    "pydantic writes asterisks into JSON in its place; give its type a serializer; for example "
    "Annotated[{0}, PlainSerializer({0}.get_secret_value, when_used='json')]"
)
# Python refuses to write or read longer ones, unless told otherwise per process.
MAX_INTEGER_DIGITS = 4300

_LARGEST_INTEGER: int = 10**MAX_INTEGER_DIGITS - 1
# What JSON holds as it is, and what has no parts to look into: told by type, for most values are.
_STORABLE = frozenset({str, bool, NoneType})
_WITHOUT_PARTS = _STORABLE | {int, float}


class InputType:
    """The declared type of a workflow's input; ``None`` stands for a workflow without one.

    >>> InputType(list[int]).name
    'list[int]'
    """

    def __init__(self, annotation: Any) -> None:
        self.annotation = annotation
        self.name = type_name(annotation)
        self._adapter = _adapter(annotation, self.name)
        self.secrets = InputSecrets(self._adapter)
        # A misspelt field must not be dropped silently, but who declared `extra` meant it.
        declared = declares_extra(self._adapter.core_schema)
        self._extra: Literal["forbid"] | None = None if declared else "forbid"
        self._at_a_glance = at_a_glance(self._adapter.core_schema)

    def __repr__(self) -> str:
        return f"InputType({self.name})"

    def encode(self, value: Any, subject: str) -> str:
        """The JSON text to store for *value*, once it is certain that it can be read again.

        Takes an instance of the declared type or plain data that validates as one.

        >>> InputType(list[int]).encode([1, "2"], "extract-users")
        '[1,2]'
        >>> InputType(list[int]).encode([1, "x"], "extract-users")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        headway.errors.InputError: extract-users: input field '[1]' = 'x': Input should be a ...
        """
        if self._at_a_glance is not None and (certain := _seen(self._at_a_glance, value)):
            return certain
        with self._explained(value, subject, "cannot be stored as JSON"):
            checked = self._checked(value, self._extra)
            _refuse_sets_as_lists(value, checked)
            text = _as_json(self._plain(checked))
            _refuse_change(checked, self._read(text))
        return text

    def decode(self, text: str, subject: str) -> Any:
        """The value behind a stored text, checked against the type as it is declared now.

        Fields that the type no longer has are passed over: a field removed from the code must
        not fail what was queued before.

        >>> InputType(dict[str, int]).decode('{"users":1}', "extract-users")
        {'users': 1}
        """
        try:  # for every run: no detour
            return self._read(text)
        except Exception as error:
            with self._explained(text, subject, "cannot be read", stored=True):
                raise error

    def json_schema(self, *, by_alias: bool = True) -> dict[str, Any]:
        """The JSON schema of what :meth:`encode` takes; empty for a type that has none.

        >>> InputType(list[int]).json_schema()
        {'items': {'type': 'integer'}, 'type': 'array'}
        """
        try:
            return self._adapter.json_schema(by_alias=by_alias)
        except Exception:
            return {}

    def masked(self, value: Any) -> Any:
        """A stored value with its secrets masked; wholly masked if the type has no schema.

        >>> from pydantic import BaseModel, Field
        >>> class Login(BaseModel):
        ...     password: str = Field(json_schema_extra={"format": "password"})
        >>> InputType(Login).masked({"password": "geheim"})
        {'password': '********'}
        """
        try:
            schema = self._adapter.json_schema(by_alias=False)
        except Exception:
            return MASK
        return masked(value, schema)

    def redaction_of(self, text: str, *values: Any) -> Redaction:
        """Return what replaces the secrets of a stored *text* and of *values* in other texts.

        >>> InputType(str).redaction_of('"users"').text("no table users")
        'no table users'
        """
        if not self.secrets.declared:
            return Redaction()
        try:
            stored: Any = json.loads(text)
        except (ValueError, RecursionError):
            stored = text
        return self.secrets.redaction_of(stored, *values)

    def _checked(self, value: Any, extra: Literal["forbid"] | None) -> Any:
        if self.annotation in (None, NoneType) and value is not None:
            raise Problem((), value, "the workflow takes no input; leave it out")
        return self._adapter.validate_python(value, extra=extra, by_alias=True, by_name=True)

    def _plain(self, value: Any) -> Any:
        # By field name, because an alias may differ between validating and serializing.
        return self._adapter.dump_python(
            value, mode="json", by_alias=False, round_trip=True, warnings="none"
        )

    def _read(self, text: str) -> Any:
        return self._checked(from_json(text), extra=None)

    @contextmanager
    def _explained(
        self, value: Any, subject: str, failure: str, *, stored: bool = False
    ) -> Iterator[None]:
        """Turn whatever goes wrong, in pydantic or in the user's validators, into one line.

        Secrets of *value* are replaced in that line; *stored* says that it is JSON text.
        """
        try:
            yield
        except ValidationError as error:
            raise self._error(subject, Problem.all_of(error), self._hiding(value, stored)) from None
        except Problem as problem:
            raise self._error(subject, [problem], self._hiding(value, stored)) from None
        except Exception as error:
            told = MASK if self.secrets.declared else shown(value)
            redact = self._hiding(value, stored)
            rule = f"{failure} ({one_line(redact.text(_message(error)))})"
            raise InputError(f"{subject}: input = {told}: {rule}") from error

    def _hiding(self, value: Any, stored: bool) -> Redaction:
        return self.redaction_of(value) if stored else self.secrets.redaction_of(value)

    def _error(self, subject: str, problems: list[Problem], redact: Redaction) -> InputError:
        told = redact.text(problems[0].sentence(self.json_schema()))
        places = [(path, redact.text(rule)) for path, rule in (one.place for one in problems)]
        return InputError(f"{subject}: input {told}", places)


def _adapter(annotation: Any, name: str) -> TypeAdapter[Any]:
    try:
        adapter = TypeAdapter[Any](_readable(annotation))
        adapter.rebuild(raise_errors=True)
    except Exception as error:
        reason = one_line(_message(error).partition("\n")[0]).partition(". ")[0]
        raise DefinitionError(
            f"input type {name} cannot be checked ({reason}); declare a pydantic model, "
            "a dataclass, a TypedDict or a builtin type such as dict[str, int]"
        ) from error
    return adapter


def _readable(annotation: Any) -> Any:
    """Before Python 3.12 pydantic reads only the TypedDict of typing_extensions."""
    if sys.version_info >= (3, 12) or not typing.is_typeddict(annotation):
        return annotation
    fields = {
        name: hint if name in annotation.__required_keys__ else NotRequired[hint]
        for name, hint in get_type_hints(annotation).items()
    }
    return typing_extensions.TypedDict(annotation.__name__, fields)  # type: ignore[operator]


def _message(error: Exception) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


def _seen(at_a_glance: Plain, value: Any) -> str | None:
    """The JSON text of a value that needs no closer look: most of a million are of this kind."""
    try:
        text = to_json(at_a_glance(value))
    except Uncertain:
        return None
    return text if len(text) <= MAX_INPUT_BYTES else None


def _as_json(plain: Any) -> str:
    _refuse_unstorable(plain)
    text = to_json(plain)
    # Most inputs have neither escape; the second one is that of a character beyond U+FFFF too.
    if "\\u0000" in text or "\\ud" in text:
        _refuse_unstorable_text(plain)
    if len(text) > MAX_INPUT_BYTES:
        raise Problem(
            (),
            plain,
            f"is {len(text)} bytes as JSON, more than {MAX_INPUT_BYTES}; "
            "keep the data elsewhere and pass where it is",
            STORAGE,
        )
    return text


def _refuse_unstorable(plain: Any, path: Path = ()) -> None:
    if type(plain) in _STORABLE:
        return
    if isinstance(plain, float) and not math.isfinite(plain):
        raise Problem(path, plain, NOT_FINITE)
    if isinstance(plain, int) and abs(plain) > _LARGEST_INTEGER:
        raise Problem(path, plain, f"must have at most {MAX_INTEGER_DIGITS} digits")
    parts = _parts(plain)
    if parts is not None and len(path) >= MAX_INPUT_DEPTH:
        rule = f"must not be nested more than {MAX_INPUT_DEPTH} levels deep"
        raise Problem(path, plain, rule, STORAGE)
    for key, part in (parts or {}).items():
        _refuse_unstorable(part, (*path, key))


def _refuse_unstorable_text(plain: Any, path: Path = ()) -> None:
    """Refuse NUL and lone surrogates, in keys as well: pages, exports and JSON columns break."""
    if isinstance(plain, str) and (rule := storage_rule(plain)):
        raise Problem(path, plain, rule)
    for key, part in (_parts(plain) or {}).items():
        if isinstance(key, str) and (rule := storage_rule(key)):
            raise Problem(path, key, f"a key {rule}", STORAGE)
        _refuse_unstorable_text(part, (*path, key))


def _refuse_sets_as_lists(given: Any, checked: Any, path: Path = ()) -> None:
    """Refuse a set where a list is declared: its items come in another order every time."""
    if given is checked:
        return
    if isinstance(given, set | frozenset) and not isinstance(checked, set | frozenset):
        raise Problem(path, given, "a set has no order; pass a list")
    parts = _parts(checked) or {}
    for key, part in (_parts(given) or {}).items():
        if key in parts:
            _refuse_sets_as_lists(part, parts[key], (*path, key))


def _refuse_change(before: Any, after: Any, path: Path = ()) -> None:
    """Refuse what JSON would silently turn into something else, such as a tuple key into text."""
    if type(before) is type(after) and type(before) in _WITHOUT_PARTS and before == after:
        return
    mine, theirs = _parts(before), _parts(after)
    if mine is None or theirs is None:
        same = _same(before, after)
    else:
        records = _is_record(before) or _is_record(after)
        same = mine.keys() == theirs.keys() and (type(before) is type(after) or not records)
    if not same:
        if isinstance(before, float) and not math.isfinite(before):
            raise Problem(path, before, NOT_FINITE)
        if isinstance(before, SecretStr | SecretBytes):
            raise Problem(path, before, HIDDEN_IN_JSON.format(type(before).__name__), STORAGE)
        rule = f"does not survive storage as JSON, it would come back as {shown(after)}"
        raise Problem(path, before, rule, STORAGE)
    for key in mine or ():
        _refuse_change((mine or {})[key], (theirs or {})[key], (*path, key))


def _same(before: Any, after: Any) -> bool:
    equality: Any = type(before).__eq__
    if type(before) is type(after) and equality is object.__eq__:
        return True
    # In the hour that a clock change repeats, Python calls times of two zones unequal.
    if isinstance(before, datetime) and isinstance(after, datetime) and before.tzinfo:
        return before.astimezone(UTC) == after.astimezone(UTC)
    return bool(before == after)


def _is_record(value: Any) -> bool:
    return isinstance(value, BaseModel) or is_dataclass(value)


def _parts(value: Any) -> dict[Any, Any] | None:
    """The fields, entries or items of a value that has any; lists and tuples are alike in JSON."""
    if type(value) in _WITHOUT_PARTS:
        return None
    if isinstance(value, BaseModel):
        names = [*type(value).model_fields, *(value.model_extra or ())]
        return {name: getattr(value, name, None) for name in names}
    if is_dataclass(value):
        return {each.name: getattr(value, each.name, None) for each in fields(value) if each.init}
    if isinstance(value, Mapping):
        return dict(value)
    return dict(enumerate(value)) if isinstance(value, list | tuple) else None
