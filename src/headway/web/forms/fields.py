"""The fields of a form, made from a JSON schema and the values they begin with."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from headway.web.forms.shapes import Kind, Schema, Shape, shape_of

Path = tuple[str | int, ...]
Errors = Sequence[tuple[Path, str]]

INPUT = "input"
ROW = "__n__"


class _Absent:
    """Stands where nothing stands, not even null."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Any = _Absent()


@dataclass(frozen=True)
class Field:
    """One field: a control, a group of fields, or a list with a row for each item.

    ``blank`` of a list is one row more, to be filled in or copied. The limits are attributes of
    the control.
    """

    name: str
    label: str
    kind: Kind
    required: bool = False
    hint: str = ""
    value: str = ""
    checked: bool = False
    choices: tuple[tuple[str, str], ...] = ()
    limits: Mapping[str, str] = field(default_factory=dict)
    fields: tuple["Field", ...] = ()
    blank: "Field | None" = None
    error: str = ""

    @property
    def id(self) -> str:
        """The id of its control."""
        return "field-" + self.name.replace("/", "-")

    def numbered(self, place: int) -> "Field":
        """The same as the row *place* of a list."""
        inner = tuple(one.numbered(place) for one in self.fields)
        name = self.name.replace(ROW, str(place), 1)
        return replace(self, name=name, fields=inner)

    def without_value(self) -> "Field":
        """The same before anything was filled in."""
        inner = tuple(one.without_value() for one in self.fields)
        return replace(self, value="", checked=False, error="", fields=inner)


def name_of(path: Path) -> str:
    """The name of the field at *path*, as it is sent.

    >>> name_of(("tables", 0, "a/b"))
    'input/tables/0/a~1b'
    """
    parts = (str(part).replace("~", "~0").replace("/", "~1") for part in path)
    return "/".join((INPUT, *parts))


def fields_of(schema: Schema, value: Any = ABSENT, errors: Errors = ()) -> Field:
    """The field for a whole input, filled in with *value* as far as there is one.

    >>> schema = {"type": "object", "properties": {"rows": {"type": "integer", "default": 3}}}
    >>> [(one.label, one.value) for one in fields_of(schema).fields]
    [('rows', '3')]
    """
    return _Making(schema, errors).made(schema, (), "Input", value, required=True)


class _Making:
    def __init__(self, root: Schema, errors: Errors) -> None:
        self._root = root
        self._errors = errors

    def made(self, node: Any, path: Path, label: str, value: Any, *, required: bool) -> Field:
        shape = shape_of(self._root, node, len(path))
        if value is ABSENT:
            value = shape.node.get("default", ABSENT)
        bare = Field(
            name=name_of(path),
            label=label,
            kind=_kind(shape, required),
            required=required and not shape.nullable,
            hint=_hint(shape),
            limits=_limits(shape.node),
        )
        return self._filled(bare, shape, path, value)

    def _filled(self, bare: Field, shape: Shape, path: Path, value: Any) -> Field:
        match bare.kind:
            case Kind.GROUP:
                inner = self._properties(shape.node, path, value, bare.required)
                return replace(bare, fields=inner, error=self._own_error(path))
            case Kind.LIST:
                return self._list(bare, shape.node, path, value)
            case Kind.SWITCH:
                return replace(bare, checked=value is True, error=self._error(path))
            case Kind.CHOICE:
                choices = _choices(shape, bare.required)
                told = "" if value is ABSENT or value is None else json.dumps(value)
                return replace(bare, choices=choices, value=told, error=self._error(path))
            case Kind.SECRET | Kind.NOTHING:
                return replace(bare, error=self._error(path))
            case _:
                return replace(bare, value=_text(bare.kind, value), error=self._error(path))

    def _properties(self, node: Schema, path: Path, value: Any, given: bool) -> tuple[Field, ...]:
        """An optional group that is not given shows no defaults: it is not given then either."""
        values = value if isinstance(value, Mapping) else {}
        empty = not given and not isinstance(value, Mapping)
        needed = node.get("required", ())
        made = [
            self.made(part, (*path, name), name, values.get(name, ABSENT), required=name in needed)
            for name, part in node["properties"].items()
        ]
        return tuple(one.without_value() if empty else one for one in made)

    def _list(self, bare: Field, node: Schema, path: Path, value: Any) -> Field:
        items = value if isinstance(value, list | tuple) else ()
        rows = tuple(
            self.made(node["items"], (*path, place), f"{place + 1}", item, required=True)
            for place, item in enumerate(items)
        )
        blank = self.made(node["items"], (*path, ROW), "", ABSENT, required=True)
        return replace(bare, fields=rows, blank=blank, error=self._own_error(path))

    def _own_error(self, path: Path) -> str:
        return next((told for place, told in self._errors if place == path), "")

    def _error(self, path: Path) -> str:
        """Of a union pydantic also names the alternative: what lies below belongs here too."""
        return next((told for place, told in self._errors if place[: len(path)] == path), "")


def _kind(shape: Shape, required: bool) -> Kind:
    if shape.kind is Kind.SWITCH and shape.nullable:
        return Kind.CHOICE
    return shape.kind


def _choices(shape: Shape, required: bool) -> tuple[tuple[str, str], ...]:
    node = shape.node
    values = (
        node["enum"] if "enum" in node else [node["const"]] if "const" in node else [True, False]
    )
    told = tuple(
        (json.dumps(one), one if isinstance(one, str) else json.dumps(one)) for one in values
    )
    return told if required else (("", "–"), *told)


def _hint(shape: Shape) -> str:
    node, told = shape.node, []
    if node.get("description"):
        told.append(str(node["description"]))
    if shape.kind is Kind.MOMENT:
        told.append("For example 2030-01-31T12:00:00Z")
    if node.get("format") == "duration":
        told.append("For example PT1H for an hour")
    least, most = node.get("minimum"), node.get("maximum")
    if least is not None or most is not None:
        told.append(_between(least, most))
    return ". ".join(one.rstrip(".") for one in told)


def _between(least: Any, most: Any) -> str:
    if most is None:
        return f"At least {least}"
    return f"At most {most}" if least is None else f"From {least} to {most}"


def _limits(node: Schema) -> dict[str, str]:
    names = {
        "minimum": "min",
        "maximum": "max",
        "maxLength": "maxlength",
        "minLength": "minlength",
    }
    return {
        attribute: str(node[name])
        for name, attribute in names.items()
        if isinstance(node.get(name), int | float)
    }


def _text(kind: Kind, value: Any) -> str:
    if value is ABSENT or (value is None and kind is not Kind.JSON):
        return ""
    if kind is Kind.JSON:
        return json.dumps(value, indent=2, ensure_ascii=False)
    return value if isinstance(value, str) else json.dumps(value)
