"""What kind of field a part of a JSON schema asks for."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Schema = Mapping[str, Any]

DEEPEST = 4


class Kind(StrEnum):
    """The fields there are; what no field fits is written as JSON."""

    TEXT = "text"
    SECRET = "password"
    WHOLE = "integer"
    NUMBER = "number"
    SWITCH = "checkbox"
    CHOICE = "select"
    DATE = "date"
    TIME = "time"
    MOMENT = "moment"
    GROUP = "group"
    LIST = "list"
    JSON = "json"
    NOTHING = "nothing"


_OF_FORMAT = {
    "password": Kind.SECRET,
    "date": Kind.DATE,
    "time": Kind.TIME,
    "date-time": Kind.MOMENT,
}
_OF_TYPE = {
    "string": Kind.TEXT,
    "integer": Kind.WHOLE,
    "number": Kind.NUMBER,
    "boolean": Kind.SWITCH,
    "null": Kind.NOTHING,
}


@dataclass(frozen=True)
class Shape:
    """A kind, the part of the schema that says more, and whether nothing may stand there.

    >>> shape_of({}, {"anyOf": [{"type": "integer"}, {"type": "null"}]}).kind
    <Kind.WHOLE: 'integer'>
    """

    kind: Kind
    node: Schema
    nullable: bool = False


def shape_of(root: Schema, node: Any, depth: int = 0) -> Shape:
    """The shape of *node*, a part of the schema *root*, *depth* levels below it.

    >>> shape_of({}, {"type": "string", "format": "date"}).kind, shape_of({}, {}).kind
    (<Kind.DATE: 'date'>, <Kind.JSON: 'json'>)
    """
    around = resolved(root, node)
    meant, nullable = _without_null(root, around)
    whole = {**meant, **_outside(around)}
    return Shape(_kind(whole, depth), whole, nullable)


def resolved(root: Schema, node: Any) -> Schema:
    """*node* with the definition it refers to, and what it says itself above that.

    >>> resolved({"$defs": {"Day": {"enum": [1]}}}, {"$ref": "#/$defs/Day", "default": 1})
    {'enum': [1], 'default': 1}
    """
    seen = 0
    while isinstance(node, Mapping) and ("$ref" in node or len(node.get("allOf", ())) == 1):
        inner = node["allOf"][0] if "allOf" in node else _definition(root, node["$ref"])
        outer = {key: value for key, value in node.items() if key not in ("$ref", "allOf")}
        node, seen = {**(inner if isinstance(inner, Mapping) else {}), **outer}, seen + 1
        if seen > DEEPEST:
            return {}
    return node if isinstance(node, Mapping) else {}


def _definition(root: Schema, reference: object) -> Any:
    return root.get("$defs", {}).get(str(reference).rpartition("/")[2], {})


def _without_null(root: Schema, node: Schema) -> tuple[Schema, bool]:
    """What else than null is allowed, if that is one thing."""
    options = node.get("anyOf") or node.get("oneOf")
    if not options:
        return node, False
    others = [one for one in (resolved(root, each) for each in options) if not _is_null(one)]
    nullable = len(others) < len(options)
    return (others[0] if len(others) == 1 else {}), nullable


def _is_null(node: Schema) -> bool:
    return node.get("type") == "null"


def _outside(node: Schema) -> dict[str, Any]:
    told = ("title", "description", "default", "examples", "format", "writeOnly", "secret")
    return {name: node[name] for name in told if name in node}


def _kind(node: Schema, depth: int) -> Kind:
    if node.get("format") == "password" or node.get("writeOnly") is True or node.get("secret"):
        return Kind.SECRET
    if "enum" in node or "const" in node:
        return Kind.CHOICE
    kind = node.get("type")
    if kind == "object" and node.get("properties") and depth < DEEPEST:
        return Kind.GROUP
    if kind == "array" and node.get("items") and "prefixItems" not in node and depth < DEEPEST:
        return Kind.LIST
    if kind == "string":
        return _OF_FORMAT.get(str(node.get("format")), Kind.TEXT)
    return _OF_TYPE.get(str(kind), Kind.JSON)
