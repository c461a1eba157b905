"""What was filled in: the value that a sent form stands for, by the schema it was made from."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headway.definition.inputs import MAX_INPUT_DEPTH
from headway.definition.json_text import is_nested_within
from headway.domain.masking import MASK
from headway.web.forms.fields import ABSENT, Path, name_of
from headway.web.forms.shapes import Kind, Schema, Shape, shape_of
from headway.web.security.bodies import Form

MOST_ROWS = 500


@dataclass
class Sent:
    """Reads a form by a schema; *stored* is what secrets that were left alone stand for.

    >>> schema = {"type": "object", "properties": {"rows": {"type": "integer"}}}
    >>> Sent(schema, Form((("input/rows", "7"),))).value()
    {'rows': 7}
    """

    schema: Schema
    form: Form
    stored: Any = None
    errors: list[tuple[Path, str]] = field(default_factory=list)

    def value(self) -> Any:
        """The input; where a field cannot be read, its text, for the workflow's type to refuse."""
        read = self._read(self.schema, (), required=True)
        return None if read is ABSENT else read

    def _read(self, node: Any, path: Path, *, required: bool) -> Any:
        shape = shape_of(self.schema, node, len(path))
        match shape.kind:
            case Kind.GROUP:
                return self._group(shape, path, required)
            case Kind.LIST:
                return self._list(shape, path, required)
            case Kind.SECRET:
                return self.form.get(name_of(path)) or _at(self.stored, path)
            case Kind.SWITCH if not shape.nullable:
                return name_of(path) in self.form
            case Kind.NOTHING:
                return None
        text = self.form.get(name_of(path))
        if text.strip() == "":
            return _nothing(shape, text, required)
        return self._of_text(shape.kind, text, path)

    def _of_text(self, kind: Kind, text: str, path: Path) -> Any:
        match kind:
            case Kind.WHOLE | Kind.NUMBER | Kind.CHOICE | Kind.SWITCH:
                return _as_json(text.strip())
            case Kind.JSON:
                try:
                    return _json(text)
                except (ValueError, RecursionError):
                    self.errors.append((path, "is not JSON; text needs quotation marks"))
                    return text
            case _:
                return text

    def _group(self, shape: Shape, path: Path, required: bool) -> Any:
        needed = shape.node.get("required", ())
        read = {
            name: self._read(part, (*path, name), required=name in needed)
            for name, part in shape.node["properties"].items()
        }
        given = {name: one for name, one in read.items() if one is not ABSENT}
        optional = shape.nullable or not required
        if optional and not any(map(_says_something, given.values())):
            return None if shape.nullable else ABSENT
        return given

    def _list(self, shape: Shape, path: Path, required: bool) -> Any:
        rows = [
            self._read(shape.node["items"], (*path, place), required=False)
            for place in self._places(path)
        ]
        found = [one for one in rows if one is not ABSENT and one not in ("", None)]
        if not found and shape.nullable:
            return None
        return found

    def _places(self, path: Path) -> list[int]:
        """The rows that were sent, in the order in which they stood on the page."""
        before = name_of(path) + "/"
        found: dict[int, None] = {}
        for name, _ in self.form.fields:
            if name.startswith(before):
                place = name[len(before) :].partition("/")[0]
                if place.isascii() and place.isdigit() and len(place) < 7:
                    found[int(place)] = None
        return list(found)[:MOST_ROWS]


def _nothing(shape: Shape, text: str, required: bool) -> Any:
    """What an empty field stands for."""
    if shape.nullable:
        return None
    if shape.kind is Kind.TEXT and (required or "default" in shape.node):
        return text
    return "" if required else ABSENT


def _says_something(value: Any) -> bool:
    """Return whether a field of a group was filled in; a switch that is off and no rows were not.

    >>> _says_something(0), _says_something(False)
    (True, False)
    """
    return value is not False and value not in ("", None, [])


def _as_json(text: str) -> Any:
    try:
        return _json(text)
    except (ValueError, RecursionError):
        return text


def _json(text: str) -> Any:
    value = json.loads(text)
    if not is_nested_within(value, MAX_INPUT_DEPTH):
        raise RecursionError
    return value


def _at(value: Any, path: Path) -> Any:
    for part in path:
        placed = isinstance(value, list) and isinstance(part, int) and part < len(value)
        if not placed and not (isinstance(value, Mapping) and part in value):
            return ABSENT
        value = value[part]
    return value


def unmasked(sent: Any, shown: Any, stored: Any) -> Any:
    """*sent* with what it kept of the masks in *shown* replaced by what is *stored* there.

    >>> unmasked({"key": "********", "rows": 2}, {"key": "********"}, {"key": "geheim"})
    {'key': 'geheim', 'rows': 2}
    """
    if sent == MASK and shown == MASK:
        return stored
    if isinstance(sent, Mapping) and isinstance(shown, Mapping) and isinstance(stored, Mapping):
        return {
            key: unmasked(part, shown.get(key, ABSENT), stored.get(key))
            for key, part in sent.items()
        }
    if isinstance(sent, list) and isinstance(shown, list) and isinstance(stored, list):
        beside = [*zip(shown, stored, strict=False)]
        return [
            unmasked(part, *beside[place]) if place < len(beside) else part
            for place, part in enumerate(sent)
        ]
    return sent
