"""What must not be shown, told by a JSON schema: passwords and other secrets of an input."""

from collections.abc import Iterable, Mapping
from typing import Any

MASK = "********"

Schema = Mapping[str, Any]


def masked(value: Any, schema: Schema, root: Schema | None = None) -> Any:
    """*value* with every part that *schema* calls a secret replaced by a mask.

    A secret is what has the format ``password`` or may only be written, as pydantic says of a
    ``SecretStr``, or says ``secret: true`` of itself. Where a schema allows several things, one of
    them being secret is enough. For a part of a schema *root* is the whole, which has the
    definitions it refers to.

    >>> schema = {"properties": {"user": {"type": "string"}, "key": {"format": "password"}}}
    >>> masked({"user": "ada", "key": "geheim"}, schema)
    {'user': 'ada', 'key': '********'}
    """
    whole = schema if root is None else root
    return _masked(value, _meant(whole, [schema]), whole)


def _says_secret(node: Schema) -> bool:
    marked = node.get("writeOnly") is True or node.get("secret") is True
    return marked or node.get("format") == "password"


def _masked(value: Any, nodes: list[Schema], root: Schema) -> Any:
    if value is None:
        return None
    if any(map(_says_secret, nodes)):
        return MASK
    if isinstance(value, Mapping):
        return {
            key: _masked(part, _meant(root, _named(nodes, key)), root)
            for key, part in value.items()
        }
    if isinstance(value, list | tuple):
        return [
            _masked(part, _meant(root, _placed(nodes, place)), root)
            for place, part in enumerate(value)
        ]
    return value


def _meant(root: Schema, nodes: Iterable[Any]) -> list[Schema]:
    """The schemas that *nodes* lead to, through references and alternatives; each once."""
    found: list[Schema] = []
    waiting = [node for node in nodes if isinstance(node, Mapping)]
    while waiting:
        node = waiting.pop()
        if any(node is known for known in found):
            continue
        found.append(node)
        name = str(node.get("$ref", "")).rpartition("/")[2]
        further = [root.get("$defs", {}).get(name)]
        for word in ("anyOf", "oneOf", "allOf"):
            further += node.get(word, ())
        waiting += [one for one in further if isinstance(one, Mapping)]
    return found


def _named(nodes: Iterable[Schema], key: str) -> list[Any]:
    return [
        node["properties"][key]
        if key in node.get("properties", {})
        else node.get("additionalProperties")
        for node in nodes
    ]


def _placed(nodes: Iterable[Schema], place: int) -> list[Any]:
    found = []
    for node in nodes:
        positions = node.get("prefixItems", ())
        found.append(positions[place] if place < len(positions) else node.get("items"))
    return found
