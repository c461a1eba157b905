"""Ways to break headway on purpose: each still fits what it breaks."""

from __future__ import annotations

import subprocess
import sys

import pytest

from headway.torture import mutations


@pytest.mark.full
@pytest.mark.parametrize("name", mutations.MUTATIONS)
def test_a_mutation_fits_what_it_replaces(name: str) -> None:
    """In a process of its own, which is not sound afterwards."""
    code = f"from headway.torture import mutations; mutations.apply({name!r})"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_one_that_no_longer_fits_is_refused() -> None:
    with pytest.raises(TypeError, match="the broken one takes 1 arguments, the sound 2"):
        mutations._replace(mutations, "damage", lambda store: None)
    assert mutations.damage.__name__ == "damage"


def test_there_are_at_least_eight_ways_to_break_it() -> None:
    assert len(mutations.MUTATIONS) >= 8
