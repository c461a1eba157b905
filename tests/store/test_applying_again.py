"""Re-applying the same declaration changes no row, whatever it says (Hypothesis)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway import Group, Headway, Item, RetryPolicy, cron, every, exclude, once
from headway.domain.declaration import Declaration
from headway.errors import CircularDependencyError, DefinitionError
from headway.store import declarations
from headway.store.declarations import Applied
from headway.store.engine import Store
from headway.store.tables import schema, schema_version
from tests.store.factories import Clock, change_group, change_manifest, everything

SCHEDULES = st.sampled_from(
    [every(minutes=5), every(hours=1, fixed_rate=True), cron("0 9 * * *", "Europe/Berlin")]
)
COMMON = {
    "group": st.sampled_from(["one", "two", Group("three", max_active_jobs=2, priority=4)]),
    "priority": st.integers(0, 31),
    "max_retries": st.integers(0, 5),
    "retry": st.just(RetryPolicy(timedelta(seconds=1.5), 3.0, timedelta(minutes=2))),
    "timeout": st.just(timedelta(minutes=3)),
    "enabled": st.booleans(),
    "allow_overlap": st.booleans(),
}
TIMED = COMMON | {
    "misfire": st.sampled_from(["fire_once_now", "do_nothing", "catch_up"]),
    "misfire_threshold": st.just(timedelta(seconds=30)),
    "catch_up_limit": st.just(7),
    "variance": st.just(timedelta(seconds=9)),
    "exclude": st.just((exclude.weekends(), exclude.window("22:00", "06:00", then="defer"))),
    "first_run": st.just("at_first_occurrence"),
}
DEPENDENT = COMMON | {"join": st.sampled_from(["all", "any"]), "dormant": st.booleans()}

timed = st.tuples(SCHEDULES, st.fixed_dictionaries({}, optional=TIMED))
dependents = st.tuples(
    st.lists(st.integers(0, 5), min_size=1, max_size=3),
    st.fixed_dictionaries({}, optional=DEPENDENT),
)


def declared(
    by_time: list[tuple[Any, dict[str, Any]]], after: list[tuple[list[int], dict[str, Any]]]
) -> Declaration:
    """What builder calls with these arguments declare; refused ones are left out."""
    hw = Headway("random")
    hw.workflow("work")(lambda: None)
    names = []
    for number, (schedule, options) in enumerate(by_time):
        names.append(f"m{number}")
        hw.schedule("work", names[-1], None, schedule, **options)
    hw.schedule_once("work", "once", None, once(datetime(2030, 1, 1, tzinfo=UTC)))
    for number, (chosen, options) in enumerate(after):
        parents = sorted({names[one % len(names)] for one in chosen})
        item = Item(number, depends_on=parents, **options)
        try:
            hw.schedule_many("work", "none", [], every(hours=1)).include_many("work", "d", [item])
        except CircularDependencyError:
            continue
        names.append(f"d-{number}")
    return hw.declaration()


def empty(store: Store) -> None:
    with store.writing() as tx:
        for table in reversed(schema.sorted_tables):
            if table is not schema_version:
                tx.connection.execute(table.delete())


def apply(store: Store, wanted: Declaration, **how: Any) -> Applied:
    with store.writing() as tx:
        return declarations.apply(tx, wanted, **how)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(timed, min_size=1, max_size=4), st.lists(dependents, max_size=4))
def test_re_applying_the_same_declaration_changes_no_row(
    store: Store, clock: Clock, by_time: Any, after: Any
) -> None:
    try:
        wanted, again = declared(by_time, after), declared(by_time, after)
    except DefinitionError:
        return  # one group declared with two meanings
    empty(store)
    assert apply(store, wanted) == Applied(created=len(wanted.manifests))
    change_manifest(store, "m0", enabled=False)
    change_group(store, wanted.manifests[0].group.name, max_active_jobs=1, enabled=False)
    before = everything(store)
    clock.advance(hours=1)
    assert apply(store, again) == Applied(unchanged=len(wanted.manifests))
    assert everything(store) == before, "by its digest"
    assert apply(store, again, go_back=True) == Applied(unchanged=len(wanted.manifests))
    assert everything(store) == before, "and row by row"
