"""How PostgreSQL executes the statements that an act sends."""

from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import event

from headway.store.engine import Store


def explained(store: Store, act: Callable[[], object]) -> Iterator[str]:
    """Each different statement that *act* sends, and the scans in its plan for its last values."""
    sent: dict[str, Any] = {}

    def note(_c: Any, _cursor: Any, statement: str, values: Any, *_more: Any) -> None:
        sent[statement] = values[0] if isinstance(values, list) else values

    engine = store._writer
    event.listen(engine, "before_cursor_execute", note)
    act()
    event.remove(engine, "before_cursor_execute", note)
    with store.writing() as tx:
        for statement, values in sent.items():
            plan = tx.connection.exec_driver_sql(f"EXPLAIN {statement}", values).scalars().all()
            yield f"  {' '.join(statement.split())[:88]}"
            for line in plan:
                if "Scan" in line:
                    yield f"      {line.split('(cost')[0].strip(' ->')}"
