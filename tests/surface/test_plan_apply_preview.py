"""headway plan, apply and preview as a new user would try them: output, exit codes, errors."""

from __future__ import annotations

import os
import re
import sys

import pytest

from headway.applying import apply_declarations
from headway.definition.app import Headway
from headway.history import History
from headway.service import Service
from headway.store.engine import Store
from headway.store.migrate import migrate
from headway.store.work_queue import enqueue
from headway.wakeups import Role
from tests.builders import Recorder
from tests.store.factories import change_group, change_manifest, entry_for
from tests.surface.command_line import finish, read_until, start
from tests.surface.test_cli import CommandLine, Result, headway

__all__ = ["headway"]

NIGHTLY = 'Group("nightly", max_active_jobs=2)'
SHOP = """
from datetime import UTC, datetime, timedelta
from headway import Group, Headway, cron, every, once

hw = Headway("shop")

@hw.workflow
def extract(table: dict) -> None: ...

@hw.workflow
def load(table: str) -> None: ...

orders = hw.schedule(extract, "extract-orders", {"rows": 100}, every(hours=1))
orders.then_include(load, "load-orders", "orders")
hw.schedule(load, "users", "u", cron("0 3 * * *", tz="Europe/Berlin"), group=NIGHTLY)
hw.schedule(load, "manual", "m")
"""


class Shop:
    """A folder with shop.py in it, and a database somewhere."""

    def __init__(self, command_line: CommandLine, url: str) -> None:
        self.folder, self.url = command_line.folder, url
        self._command_line = command_line
        self.write(SHOP)

    def write(self, text: str) -> None:
        self.text = text.replace("NIGHTLY", NIGHTLY)
        (self.folder / "shop.py").write_text(self.text)

    def change(self, old: str, new: str) -> None:
        assert old in self.text
        self.write(self.text.replace(old, new))

    def __call__(self, command: str, *options: str) -> Result:
        sys.modules.pop("shop", None)  # it may have been written anew
        return self._command_line(command, "shop:hw", *options)

    def plan(self, *options: str) -> Result:
        return self("plan", "--database-url", self.url, *options)

    def apply(self, *options: str) -> Result:
        return self("apply", "--database-url", self.url, *options)


@pytest.fixture
def shop(headway: CommandLine, database_url: str) -> Shop:
    if database_url.startswith("postgresql"):
        store = Store(database_url)
        migrate(store)
        store.close()
    return Shop(headway, database_url)


@pytest.fixture
def small(headway: CommandLine) -> Shop:
    """On SQLite alone, where the database makes no difference."""
    return Shop(headway, "sqlite:///headway.db")


def test_plan_apply_plan(shop: Shop) -> None:
    code, out, err = shop.plan()
    assert (code, err) == (3, "")
    assert "+ group nightly  max active jobs 2, priority 0, enabled yes" in out
    assert "+ extract-orders  every 1 hour\n" in out
    assert "+ load-orders  after extract-orders\n" in out
    assert "+ users  0 3 * * * = At 03:00 every day (Europe/Berlin), group nightly" in out
    assert out.endswith("shop: 4 to add, 1 group change, 0 as declared\n")

    code, out, err = shop.apply()
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "shop: 4 to add, 1 group change, 0 as declared",
        "applied: 4 added",
    ]

    code, out, err = shop.plan()
    assert (code, err) == (0, "")
    assert out.endswith("shop: nothing to change, 4 as declared\n")
    assert shop.apply() == (0, "shop: nothing to change, 4 as declared\napplied: 4 unchanged\n", "")


def test_a_change_is_shown_field_by_field_with_what_it_means(shop: Shop) -> None:
    shop.apply("--yes")
    store = Store(shop.url)
    with store.writing() as tx:
        enqueue(tx, [entry_for(tx, "extract-orders"), entry_for(tx, "manual")])
    change_manifest(store, "users", enabled=False)
    change_group(store, "nightly", max_active_jobs=1)
    store.close()
    shop.change('{"rows": 100}, every(hours=1)', '{"rows": 200}, every(minutes=5)')
    shop.change("max_active_jobs=2", "max_active_jobs=2, priority=9")
    shop.change('hw.schedule(load, "manual", "m")', "")
    code, out, _ = shop.plan()
    assert code == 3
    assert out.splitlines()[1:] == [
        "~ group nightly",
        "    priority: 0 -> 9",
        "~ extract-orders",
        "    runs: every 1 hour -> every 5 minutes",
        "    input.rows: 100 -> 200",
        "    1 queued, run as they were queued",
        "- manual",
        "    1 queued, to be cancelled",
        "= group nightly  max active jobs 1  kept: operator's value",
        "    the code says 2",
        "= users  enabled no  kept: operator's value",
        "    the code says yes",
        "shop: 1 to change, 1 to remove, 1 group change, 2 as declared",
    ]
    assert shop.apply().out.endswith("applied: 1 changed, 1 removed, 2 unchanged\n")
    assert shop.plan().code == 0


def test_removing_more_than_half_is_refused_until_it_is_allowed(shop: Shop) -> None:
    shop.apply()
    shop.write(SHOP.partition("orders =")[0] + 'hw.schedule(load, "manual", "m")\n')
    code, out, _ = shop.plan()
    assert code == 3
    assert "- users" in out
    assert "headway apply refuses without --allow-removal" in out
    code, out, err = shop.apply("--yes")
    assert code == 1
    assert err == (
        "headway: nothing was applied: 3 manifests of 'shop' would be removed, more than half; "
        "if that is meant, add --allow-removal\n"
    )
    assert "3 to remove only with --allow-removal" in out
    code, out, err = shop.apply("--allow-removal")
    assert (code, err) == (0, "")
    assert out.endswith("applied: 3 removed, 1 unchanged\n")
    assert shop.plan().code == 0


@pytest.mark.full
def test_going_back_to_an_earlier_declaration(small: Shop) -> None:
    small.apply()
    old = small.text
    small.change("every(hours=1)", "every(hours=2)")
    small.apply()
    small.write(old)
    assert "headway apply goes back to it" in small.plan().out

    process = start(small.folder, "run", "shop:hw", "--only", "manager")
    said = read_until(process.stderr, "Ctrl-C stops")
    process.terminate()
    said += finish(process)[2]
    assert said.count("WARNING outdated") == 1
    assert "to go back to it: headway apply MODULE:APP" in said
    assert small.plan().code == 3, "starting has applied nothing"

    assert small.apply().code == 0
    assert small.plan().code == 0


def test_a_start_says_what_it_has_kept_back(headway: CommandLine, sqlite_url: str) -> None:
    small = Shop(headway, sqlite_url)
    small.apply()
    small.write(SHOP.partition("orders =")[0])
    process = start(small.folder, "run", "shop:hw", "--only", "manager")
    said = read_until(process.stderr, "WARNING kept back")
    process.terminate()
    said += finish(process)[2]
    assert said.count("WARNING kept back   4 removals: ") == 1
    assert "headway apply MODULE:APP --allow-removal" in said
    assert len(History(Store(sqlite_url)).manifests.all()) == 4


def test_the_service_tells_subscribers_and_the_log(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The events themselves, and that the library logs each as one warning."""

    def deployed(*names: str) -> Recorder:
        hw = Headway("tests", database_url=database_url)
        hw.workflow("work")(lambda: None)
        for name in names:
            hw.schedule("work", name)
        recorder = Recorder(hw.observer)
        service = Service(hw, roles=[Role.MANAGER])
        service.start()
        service.stop()
        return recorder

    store = Store(database_url)
    migrate(store)
    store.close()
    deployed("a", "b", "c")
    kept = deployed("a").named("declaration.kept_back", count=2)
    assert "--allow-removal" in kept[0].fields["advice"]
    old = deployed("a", "b", "c")
    assert len(old.named("declaration.outdated", application="tests")) == 1
    assert old.named("declaration.applied") == []
    warned = [record.getMessage().split()[0] for record in caplog.records if record.levelno == 30]
    assert warned == ["declaration.kept_back", "declaration.outdated"]


def test_planning_creates_no_file(small: Shop) -> None:
    assert small.plan().code == 3
    assert sorted(os.listdir(small.folder)) in (["shop.py"], ["__pycache__", "shop.py"])


def test_planning_an_empty_file_and_a_database_without_tables(
    small: Shop, postgres_url: str
) -> None:
    (small.folder / "headway.db").touch()
    assert small.plan().code == 3
    for command in ("plan", "apply"):
        result = small(command, "--database-url", postgres_url)
        said = "the database has no headway tables yet; run: headway db migrate"
        assert result == (1, "", f"headway: {said}\n")


@pytest.mark.parametrize("command", ["plan", "apply"])
@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        ('hw.schedule(load, "manual", "other")', 2, "shop.py:17: external_id = 'manual'"),
        ('hw.schedule(load, "x", "x", tz="Nowhere/City")', 2, "Nowhere/City"),
        ("1 / 0", 1, "shop.py:17: ZeroDivisionError"),
    ],
)
def test_a_declaration_that_is_refused(
    small: Shop, command: str, change: str, code: int, said: str
) -> None:
    small.write(f"{SHOP}{change}\n")
    result = small(command)
    assert (result.code, result.out) == (code, "")
    assert said in result.err
    assert len(result.err.splitlines()) == 1


@pytest.mark.parametrize("command", ["plan", "apply"])
def test_a_database_that_is_not_there(small: Shop, command: str) -> None:
    url = "postgresql://me:secret@127.0.0.1:1/x"
    code, out, err = small(command, "--database-url", url)
    assert (code, out) == (1, "")
    assert err.startswith("headway: cannot open postgresql://me:***@127.0.0.1:1/x")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["plan"], "MODULE:APP is missing; name it (headway plan shop:hw), or set HEADWAY_APP"),
        (["apply", "shop:hw", "--allow-removals"], "--allow-removal"),
        (["preview", "shop:hw", "--days", "0"], "--days"),
        (["preview", "shop:hw", "--limit", "none"], "--limit"),
        (["preview", "shop:other"], "write shop:hw"),
    ],
)
@pytest.mark.usefixtures("small")
def test_wrong_usage(headway: CommandLine, arguments: list[str], said: str) -> None:
    code, out, err = headway(*arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) <= 3


def test_a_long_plan_is_cut_unless_all_is_wanted(small: Shop) -> None:
    small.write(f'{SHOP}\nfor n in range(100): hw.schedule(load, f"load-{{n}}", "x")\n')
    out = small.plan().out
    assert len(out.splitlines()) < 30
    assert "  ... and 84 more; --all lists them" in out
    assert len(small.plan("--all").out.splitlines()) > 104


def test_what_is_piped_is_plain(small: Shop) -> None:
    small.change('"manual"', '"[red]manual"')
    for command in ("plan", "preview"):
        out = small(command).out
        assert "\x1b" not in out
        assert "[red]manual  only when triggered" in out


def test_a_reader_that_has_seen_enough(small: Shop) -> None:
    small.write(f'{SHOP}\nfor n in range(5000): hw.schedule(load, f"load-{{n}}", "x")\n')
    process = start(small.folder, "plan", "shop:hw", "--all")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    process.wait(60)
    process.stderr.close()


@pytest.mark.parametrize(
    ("options", "answer", "code"), [([], b"y\n", 0), ([], b"n\n", 1), (["--yes"], b"", 0)]
)
def test_on_a_terminal_apply_asks(
    small: Shop, options: list[str], answer: bytes, code: int
) -> None:
    ours, its = os.openpty()
    process = start(small.folder, "apply", "shop:hw", *options, stdin=its, stdout=its)
    os.write(ours, answer)
    _, _, err = finish(process)
    os.close(its)
    said = os.read(ours, 10_000).decode()
    os.close(ours)
    assert process.returncode == code
    assert ("apply? [y/N]" in said) is bool(answer)
    assert ("applied: 4 added" in said) is (code == 0)
    assert err.strip() == ("headway: nothing was applied" if code else "")


def test_preview(small: Shop) -> None:
    small.write(
        SHOP
        + 'hw.schedule(load, "off", "x", every(days=1), enabled=False)\n'
        + 'hw.schedule(load, "later", "x", once(datetime.now(UTC) + timedelta(days=300)))\n'
    )
    code, out, err = small("preview", "--days", "3", "--limit", "2")
    assert (code, err) == (0, "")
    day = r"\w{3} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
    expected = [
        r"extract-orders  every 1 hour",
        rf"  {day} UTC   first run, at once",
        rf"  {day} UTC",
        r"  and more; --limit 20 shows more of them",
        r"load-orders  after extract-orders",
        r"users  At 03:00 every day \(Europe/Berlin\)",
        rf"  {day} CES?T   {day} UTC   first run, at once",
        rf"  \w{{3}} \d{{4}}-\d\d-\d\d 03:00:00 CES?T   {day} UTC",
        r"  and more; --limit 20 shows more of them",
        r"manual  only when triggered",
        r"off  every 1 day",
        r"  switched off: enabled=False",
        r"later  once at .* UTC",
        rf"  no run before {day} UTC",
        rf"6 manifests, the next 3 days from {day} UTC, if every run takes no time",
    ]
    lines = out.splitlines()
    assert len(lines) == len(expected), out
    for line, pattern in zip(lines, expected, strict=True):
        assert re.fullmatch(pattern, line), (pattern, line)
    assert "headway.db" not in os.listdir(small.folder)


def test_applying_by_hand_wakes_what_is_running(database_url: str) -> None:
    """The same lock and the same retries as a start; nothing is left half applied."""
    store = Store(database_url)
    migrate(store)
    hw = Headway("tests", database_url=database_url)
    hw.workflow("work")(lambda: None)
    hw.schedule("work", "a")
    assert apply_declarations(hw, store, by_hand=True).created == 1
    assert apply_declarations(hw, store, by_hand=True).unchanged == 1
    store.close()


def test_preview_announces_no_more_runs_than_there_are(small: Shop) -> None:
    small.write(SHOP + 'hw.schedule(load, "later", "x", once(datetime(2030, 1, 1, tzinfo=UTC)))\n')
    code, out, _ = small("preview", "--days", "3660", "--limit", "1")
    lines = out.splitlines()
    later = lines.index(next(line for line in lines if line.startswith("later ")))
    assert code == 0
    assert lines[later + 1].startswith("  Tue 2030-01-01 00:00:00 UTC")
    assert lines[later + 2].startswith("5 manifests, "), "only this one"
