"""An application that has nothing to do: what benchmarks.idle starts."""

from headway import Headway

hw = Headway("idle")


@hw.workflow
def extract(number: int) -> None:
    """Never run here."""
