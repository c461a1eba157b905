"""Imported by a fork server in place of what it preloads: hangs while a file is there."""

from __future__ import annotations

import os
import threading
from pathlib import Path

while Path(os.environ["TESTS_HANG_WHILE_THERE"]).exists():
    threading.Event().wait(0.02)
