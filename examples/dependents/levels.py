"""Several to one, and a third level: then_include_many. Run it: headway run levels:hw"""

from headway import Headway, Item, every

hw = Headway("levels", database_url="sqlite:///levels.db")

COUNTRIES = ("de", "fr", "it")


@hw.workflow
def work(country: str) -> None: ...


(
    hw.schedule_many(work, "extract", [Item(one, one) for one in COUNTRIES], every(minutes=30))
    # Two dependents of each parent.
    .include_many(
        work,
        "load",
        [
            Item(f"{one}-{kind}", one, depends_on=f"extract-{one}")
            for one in COUNTRIES
            for kind in ("orders", "users")
        ],
    )
    # The third level, each after both loads of its country.
    .then_include_many(
        work,
        "report",
        [
            Item(one, one, depends_on=[f"load-{one}-orders", f"load-{one}-users"])
            for one in COUNTRIES
        ],
    )
    # And one job after all reports.
    .then_include_many(
        work, "summary", [Item("all", "all", depends_on=[f"report-{one}" for one in COUNTRIES])]
    )
)
