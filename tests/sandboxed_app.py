"""An application whose isolated job calls it; its own database can never be opened."""

from __future__ import annotations

from headway import Headway

hw = Headway("sandboxed", database_url="sqlite:////no-such-folder/own.db")


@hw.workflow
def work() -> None: ...


@hw.workflow(isolated=True)
def calling_from_its_process() -> None:
    hw.enqueue("work")
    hw.operator("alice").trigger("by-hand")


hw.schedule(work, "by-hand")
hw.schedule(calling_from_its_process, "calling")
