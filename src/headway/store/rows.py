"""Many rows as parameters of one statement whose text never varies."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, TableValuedAlias, bindparam, column, func
from sqlalchemy.dialects.postgresql import ARRAY


def unnested(columns: Sequence[Column[Any]], rows: Sequence[Sequence[Any]]) -> TableValuedAlias:
    """*rows* as a table for PostgreSQL, one array for each of *columns*.

    A thousand rows as thirteen thousand parameters take the driver longer to read than the server
    to write.
    """
    arrays = [
        bindparam(None, list(values), type_=ARRAY(one.type))
        for one, values in zip(columns, zip(*rows, strict=True), strict=True)
    ]
    named = [column(one.name, one.type) for one in columns]
    return func.unnest(*arrays).table_valued(*named, name="given").render_derived()
