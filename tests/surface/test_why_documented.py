"""docs/guides/why.md lists every gate there is, and no other."""

import re

from headway.domain.gates import GateName
from tests.surface.test_readme import ROOT

GUIDE = ROOT / "docs" / "guides" / "why.md"


def test_the_guide_has_every_gate_with_an_example() -> None:
    rows = re.findall(r"^\| `([a-z ]+)` \| [a-z, ]+ \| (.+) \|$", GUIDE.read_text("utf-8"), re.M)
    assert [name for name, _ in rows] == [name.value for name in GateName]
    assert all(example.strip() for _, example in rows)
