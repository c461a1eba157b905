"""The collector of cycles, which a process of headway's own asks less often."""

from __future__ import annotations

import subprocess
import sys

LOOK = """
import gc
from headway.collector import NEW_OBJECTS, spare_the_collector
before = len(gc.get_objects())
spare_the_collector()
class Ring: ...
ring = Ring(); ring.itself = ring; del ring
left = [one for one in gc.get_objects() if type(one) is Ring]
print(gc.get_freeze_count() > before // 2, len(left), gc.get_threshold()[0] == NEW_OBJECTS)
del left
gc.collect()
print(len([one for one in gc.get_objects() if type(one) is Ring]))
"""


def test_what_is_loaded_is_looked_at_no_more_and_cycles_are_still_found() -> None:
    done = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "1", "True", "0"]


def test_a_process_of_somebody_else_is_left_alone() -> None:
    look = (
        "import gc; before = gc.get_threshold(), gc.get_freeze_count(); import headway.service; "
        "print((gc.get_threshold(), gc.get_freeze_count()) == before)"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
