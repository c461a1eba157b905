"""Reading drawings back, as a browser would."""

from collections.abc import Iterator
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onload='alert(1)",
    "</title></svg><script>alert(1)</script>",
    "]]><!--",
    "a\x00b\ud800\x1b[31m",
    "{{ 7 * 7 }}",
    "\u202e&lt;b&gt;",
]


def parsed(picture: str) -> Element:
    """The drawing as a tree; what is not well formed is an error."""
    return ElementTree.fromstring(picture)


def elements(picture: str, name: str) -> list[Element]:
    """Every element called *name*."""
    return list(parsed(picture).iter(name))


def classed(picture: str, wanted: str) -> list[Element]:
    """Every element with the class *wanted*."""
    return [one for one in parsed(picture).iter() if wanted in one.get("class", "").split()]


def names(picture: str) -> set[str]:
    """The names of all elements."""
    return {one.tag for one in parsed(picture).iter()}


def texts(picture: str) -> Iterator[str]:
    """Every text in the drawing."""
    return (text for text in parsed(picture).itertext() if text.strip())


def size(element: Element, attribute: str) -> float:
    """A coordinate, without its unit."""
    return float(element.attrib[attribute].rstrip("%"))


def harmless(picture: str) -> bool:
    """Whether nothing in it could run, or be loaded, or be refused by the content policy."""
    allowed = {"svg", "g", "a", "rect", "path", "line", "circle", "text", "tspan", "title", "use"}
    allowed |= {"figure", "table", "caption", "thead", "tbody", "tr", "th", "td", "time", "defs"}
    allowed |= {"marker", "desc"}
    attributes = [key for one in parsed(picture).iter() for key in one.attrib]
    return names(picture) <= allowed and not any(
        key == "style" or key.startswith("on") for key in attributes
    )
