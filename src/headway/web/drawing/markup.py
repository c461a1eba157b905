"""SVG elements as markup, with everything that is not markup escaped."""

from collections.abc import Iterable
from functools import cache
from unicodedata import east_asian_width

from markupsafe import Markup, escape

from headway.domain.text import printable

Attribute = str | int | float | None

LONGEST_TITLE = 400
LONGEST_TEXT = 1_000_000


def element(name: str, *children: str, **attributes: Attribute) -> Markup:
    """An element with its attributes and children; what is no markup is escaped and printable.

    A trailing underscore is dropped and one inside becomes a hyphen; None leaves an attribute out.

    >>> element("rect", x=1.5, stroke_width=2, class_="bar", rx=None)
    Markup('<rect x="1.5" stroke-width="2" class="bar"/>')
    >>> element("title", "a < b")
    Markup('<title>a &lt; b</title>')
    """
    pieces = ["<", name]
    for key, value in attributes.items():
        if value is not None:
            pieces += [" ", _name(key), '="', _attribute(value), '"']
    if not children:
        return Markup("".join([*pieces, "/>"]))
    inner = [child if isinstance(child, Markup) else _text(child) for child in children]
    return Markup("".join([*pieces, ">", *inner, "</", name, ">"]))


def title(text: str) -> Markup:
    """What a browser shows while the pointer rests on the element around it.

    >>> title("load-users: 3 running")
    Markup('<title>load-users: 3 running</title>')
    """
    return element("title", printable(text, LONGEST_TITLE))


def linked(picture: Markup, href: str | None) -> Markup:
    """The picture inside a link, or as it is where there is nothing to link to.

    >>> linked(element("rect"), "/groups/users")
    Markup('<a href="/groups/users"><rect/></a>')
    """
    return picture if href is None else element("a", picture, href=href)


def joined(pieces: Iterable[Markup]) -> Markup:
    """Several pieces of markup, one after another.

    >>> joined([element("g"), element("g")])
    Markup('<g/><g/>')
    """
    return Markup("".join(pieces))


def percent(fraction: float) -> str:
    """A part of the width, as a coordinate that stretches with the page.

    >>> percent(0.12345)
    '12.345%'
    """
    return f"{number(round(fraction * 100, 3))}%"


def number(value: float) -> str:
    """A coordinate without noise: at most three digits behind the point.

    >>> number(2.0), number(0.12345)
    ('2', '0.123')
    """
    text = f"{value:.3f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def shortened(text: str, columns: int) -> str:
    """The text in at most so many columns, cut in its middle; wide characters take two.

    Names that belong together often differ only at their ends, so both ends are kept.

    >>> shortened("extract-customer-accounts-17", 14)
    'extrac…unts-17'
    """
    text = printable(text, LONGEST_TITLE).replace("\n", " ").replace("\t", " ")
    if columns_of(text) <= columns:
        return text
    head = _fitting(text, (columns - 1) // 2)
    tail = _fitting(text[::-1], columns - 1 - columns_of(head))[::-1]
    return f"{head}…{tail}"


def columns_of(text: str) -> int:
    """How many columns a text takes.

    >>> columns_of("load"), columns_of("負荷")
    (4, 4)
    """
    if text.isascii():
        return len(text)
    return sum(2 if east_asian_width(one) in "WF" else 1 for one in text)


def _fitting(text: str, columns: int) -> str:
    taken = ""
    for one in text:
        if columns_of(taken + one) > columns:
            break
        taken += one
    return taken


@cache
def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _attribute(value: str | int | float) -> str:
    if isinstance(value, str):
        return _text(value)
    return str(value) if isinstance(value, int) else number(value)


def _text(text: str) -> str:
    shown = text if text.isprintable() else printable(text, LONGEST_TEXT)
    return str(escape(shown))
