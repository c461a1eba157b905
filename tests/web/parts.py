"""What a part of a page says, read as somebody would: its text, its rows, its links."""

from __future__ import annotations

import re
from html import unescape

TIME = re.compile(r'<time datetime="[^"]*" title="([^"]*)" data-time="([^"]*)">[^<]*</time>')


def part(page: str, name: str) -> str:
    """The element of *page* with this id, with everything in it."""
    begins = re.search(rf'<(\w+)[^>]* id="{name}"', page)
    assert begins, name
    depth = 0
    for tag in re.finditer(rf"<(/?){begins[1]}\b", page[begins.start() :]):
        depth += -1 if tag[1] else 1
        if not depth:
            return page[begins.start() : begins.start() + tag.start()]
    raise AssertionError(f"{name} does not end")


def plain(markup: str) -> str:
    """The text of *markup*; moments are exact and no matter how long ago they were."""
    exact = TIME.sub(lambda time: time[1].removesuffix(" UTC"), markup)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", exact)).split())


def said(page: str, name: str) -> str:
    """The text of the element with this id."""
    return plain(part(page, name))


def rows(page: str, name: str = "main") -> list[list[str]]:
    """The cells of every row of the tables in the element with this id, heads aside."""
    found = re.findall(r"<tr[ >].*?</tr>", part(page, name), re.S)
    cells = [re.findall(r"<td[ >].*?</td>", row, re.S) for row in found]
    return [[plain(cell) for cell in row] for row in cells if row]


def items(page: str, name: str) -> list[str]:
    """The text of each item of the lists in the element with this id."""
    return [plain(one) for one in re.findall(r"<li[ >].*?</li>", part(page, name), re.S)]


def links(page: str, name: str = "main") -> list[tuple[str, str]]:
    """The text and the address of each link in the element with this id."""
    found = re.findall(r'<a [^>]*?href="([^"]*)"[^>]*>(.*?)</a>', part(page, name), re.S)
    return [(plain(text), unescape(address)) for address, text in found]


def facts(page: str) -> dict[str, str]:
    """The values of the lists of facts on *page*, by their names."""
    found = re.findall(r"<dt>(.*?)</dt><dd[^>]*>(.*?)</dd>", part(page, "main"), re.S)
    return {plain(name): plain(value) for name, value in found}


def forms(page: str, name: str = "main") -> list[str]:
    """Where the forms in the element with this id are sent to."""
    found = re.findall(r'<form [^>]*?method="post" action="([^"]*)"', part(page, name))
    return [unescape(one) for one in found]


def pressed(page: str, name: str = "main") -> list[str]:
    """The text of what is marked as chosen in the element with this id."""
    found = re.findall(r'<a [^>]*aria-current="(?:true|page)"[^>]*>(.*?)</a>', part(page, name))
    return [plain(one) for one in found]
