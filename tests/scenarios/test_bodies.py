"""The judge of the limits, judged: it sees an excess, and nothing that is none."""

from pathlib import Path

from tests.scenarios.bodies import NEVER, Body, Diary, bodies_of, most_at_once, read_diaries
from tests.scenarios.fleet import Kill


def test_two_bodies_that_overlap_are_two_at_once() -> None:
    assert most_at_once([Body(1, 11, 100, 200), Body(2, 12, 199, 300)]) == 2


def test_one_within_another_is_two_at_once() -> None:
    assert most_at_once([Body(1, 11, 100, 400), Body(2, 12, 200, 300)]) == 2


def test_bodies_that_touch_are_one_at_once() -> None:
    assert most_at_once([Body(2, 12, 200, 300), Body(1, 11, 100, 200)]) == 1


def test_no_body_is_none_at_once() -> None:
    assert most_at_once([]) == 0


def test_the_worst_moment_counts_not_the_last() -> None:
    crowd = [Body(job, job, 100 + job, 200 + job) for job in range(7)]
    assert most_at_once([*crowd, Body(8, 8, 900, 901)]) == 7


def test_a_killed_body_counts_until_its_process_is_dead() -> None:
    [killed] = bodies_of(["start 1 11 100"], deaths=[500])

    assert (killed.ended, killed.lost) == (500, True)
    assert most_at_once([killed, Body(2, 12, 499, 600)]) == 2
    assert most_at_once([killed, Body(2, 12, 500, 600)]) == 1


def test_what_ended_before_the_kill_counts_until_its_end_and_is_lost_all_the_same() -> None:
    [body] = bodies_of(["start 1 11 100", "end 1 11 200"], deaths=[500])

    assert (body.ended, body.lost) == (200, True)


def test_a_body_belongs_to_the_process_of_its_time() -> None:
    """The id of a dead process may be given to another."""
    lines = ["start 1 11 100", "start 2 12 600", "end 2 12 700", "start 3 13 800"]
    first, second, third = bodies_of(lines, deaths=[500, 900])

    assert [first.ended, second.ended, third.ended] == [500, 700, 900]


def test_a_body_that_neither_ended_nor_died_is_still_running() -> None:
    [body] = bodies_of(["start 1 11 100"], deaths=[50])

    assert (body.ended, body.lost) == (NEVER, False)
    assert most_at_once([body, Body(2, 12, 10**18, 10**18 + 1)]) == 2


def test_what_a_process_notes_is_read_again(tmp_path: Path) -> None:
    diary = Diary(tmp_path)
    diary.note("start", 1, 11)
    diary.note("end", 1, 11)
    diary.note("start", 2, 12)
    [path] = tmp_path.iterdir()
    (tmp_path / "bodies-1").write_text("start 3 13 5\n")

    first, second, third = sorted(read_diaries(tmp_path, [Kill(1, 7)]), key=lambda one: one.job)

    assert path.name.startswith("bodies-")
    assert first.job == 1 and first.began < first.ended < second.began
    assert (second.ended, second.lost) == (NEVER, False)
    assert third == Body(3, 13, 5, 7, 7)
