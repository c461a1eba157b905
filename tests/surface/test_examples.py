"""Every example declares what seed 002 says its sample creates, and runs for a virtual hour."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from headway import Group
from headway.domain.manifest import Manifest
from headway.testing import Sandbox

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "dependents"
GUIDE = ROOT / "docs" / "guides" / "dependents.md"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))

# external id → (group, parents)
Created = dict[str, tuple[str, tuple[str, ...]]]

ETL_FAN_OUT: Created = {
    "extract": ("etl", ()),
    "transform": ("etl", ("extract",)),
    "validate": ("etl", ("extract",)),
}
COUNTRIES = ("de", "fr", "it")
KINDS = ("orders", "users")

CREATED: dict[str, Created] = {
    "chain": {
        "extract-data": ("etl", ()),
        "transform-data": ("etl", ("extract-data",)),
    },
    "fan_out": ETL_FAN_OUT,
    "mixed": ETL_FAN_OUT | {"load": ("etl", ("transform",)), "notify": ("etl", ("validate",))},
    "bulk": {f"extract-{i}": ("extract", ()) for i in range(100)}
    | {f"load-{i}": ("load", (f"extract-{i}",)) for i in range(100)},
    "levels": {f"extract-{one}": ("extract", ()) for one in COUNTRIES}
    | {f"load-{one}-{kind}": ("load", (f"extract-{one}",)) for one in COUNTRIES for kind in KINDS}
    | {
        f"report-{one}": ("report", (f"load-{one}-orders", f"load-{one}-users"))
        for one in COUNTRIES
    }
    | {"summary-all": ("summary", tuple(f"report-{one}" for one in COUNTRIES))},
    "bulk_fan_out": {"extract-all": ("extract", ())}
    | {f"load-{i}": ("load", ("extract-all",)) for i in range(10)},
    "at_run_time": {},
    "dormant": {f"delta-{table}": ("delta", ()) for table in ("customer", "invoice")}
    | {
        f"delta-bronze-{table}-{batch}": ("delta-bronze", (f"delta-{table}",))
        for table in ("customer", "invoice")
        for batch in range(4)
    },
}

RUNS_IN_AN_HOUR: dict[str, dict[str, int]] = {
    # The first run is at once, and one after each interval.
    **{name: dict.fromkeys(CREATED[name], 2) for name in ("chain", "fan_out", "mixed")},
    **{name: dict.fromkeys(CREATED[name], 3) for name in ("bulk", "levels")},
    "bulk_fan_out": dict.fromkeys(CREATED["bulk_fan_out"], 2),
    "dormant": {
        "delta-customer": 361,
        "delta-invoice": 361,
        # Only what had changed was activated, once.
        "delta-bronze-customer-0": 1,
        "delta-bronze-customer-2": 1,
    },
}


def fresh(name: str) -> ModuleType:
    """The example as a process of its own would import it: some keep state in their module."""
    return importlib.reload(importlib.import_module(f"examples.dependents.{name}"))


def declared(module: ModuleType) -> list[Manifest]:
    return list(module.hw.declaration().manifests)


def completed(box: Sandbox) -> Counter[str | None]:
    executions = box.history.executions.all()
    assert {str(one.state) for one in executions} == {"completed"}
    return Counter(one.external_id for one in executions)


def test_every_example_is_known_here() -> None:
    assert set(NAMES) == CREATED.keys()


@pytest.mark.parametrize("name", NAMES)
def test_an_example_creates_what_the_seed_says(name: str) -> None:
    created = {one.external_id: (one.group.name, one.parents) for one in declared(fresh(name))}
    assert created == CREATED[name]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", sorted(RUNS_IN_AN_HOUR))
def test_an_example_runs_for_a_virtual_hour(name: str) -> None:
    with Sandbox(fresh(name).hw) as box:
        box.advance(hours=1)
        assert completed(box) == RUNS_IN_AN_HOUR[name]


def test_a_batch_is_owned_by_its_name() -> None:
    assert {one.batch for one in declared(fresh("bulk"))} == {"extract", "load"}


def test_dormant_dependents_are_in_the_topology_with_a_kind_of_their_own() -> None:
    module = fresh("dormant")
    kinds = {one.external_id: one.kind for one in declared(module)}
    assert kinds["delta-customer"] == "interval"
    assert kinds["delta-bronze-customer-0"] == "dormant_dependent"
    groups = module.hw.declaration().groups
    assert groups["delta"] == Group("delta", max_active_jobs=4)
    assert groups["delta-bronze"] == Group("delta-bronze", max_active_jobs=4)


def test_an_activated_dependent_gets_the_input_of_its_activation() -> None:
    with Sandbox(fresh("dormant").hw) as box:
        box.run_until_idle()
        last = box.last("delta-bronze-customer-0")
        assert last is not None
        assert last.input == '{"table":"customer","batch":0,"ids":[4,8]}'
        assert last.source == "activation"
        assert last.priority == 16


def test_the_run_time_example_makes_a_chain_of_three() -> None:
    module = fresh("at_run_time")
    with Sandbox(module.hw) as box:
        for customer in ("acme", "duff"):
            module.add_customer(box.runtime, customer)
        assert module.add_reports(box.runtime, ["acme", "duff"]) == 2
        box.advance(hours=1)
        groups = {one.external_id: one.group_name for one in box.manifests()}
        assert completed(box) == dict.fromkeys(groups, 2)
    assert groups == {
        f"{group}-{customer}": group
        for group in ("extract", "load", "report")
        for customer in ("acme", "duff")
    }


def shown_in_the_guide() -> Iterator[tuple[str, str]]:
    """The blocks that begin with the path of an example, with what follows it."""
    pattern = r"^```python\n# examples/dependents/(\w+)\.py\n(.*?)^```$"
    yield from re.findall(pattern, GUIDE.read_text("utf-8"), re.M | re.S)


def test_the_guide_shows_every_example_as_it_is() -> None:
    shown = dict(shown_in_the_guide())
    assert sorted(shown) == NAMES
    for name, code in shown.items():
        assert (EXAMPLES / f"{name}.py").read_text("utf-8").endswith(f'"""\n\n{code}')
