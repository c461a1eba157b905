"""What README and docs show is what happens: every program in them is run."""

import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
HEADWAY = Path(sys.executable).parent / "headway"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
NAMED = re.compile(r"# (\w+\.py)\n")
CALL_TESTS = """
for name, value in list(globals().items()):
    if name.startswith("test_"):
        value()
"""


def blocks(page: Path, language: str) -> list[str]:
    found = BLOCK.findall(page.read_text("utf-8"))
    return [text for kind, text in found if kind == language]


def save_programs(page: Path, folder: Path) -> None:
    """Write every block that begins with a comment naming a file into that file."""
    for text in blocks(page, "python"):
        if named := NAMED.match(text):
            (folder / named[1]).write_text(text, "utf-8")


def only_python(page: Path) -> str:
    """The page with everything but its Python blocked out; line numbers stay."""
    text = page.read_text("utf-8")
    kept = {
        number
        for block in BLOCK.finditer(text)
        if block[1] == "python"
        for number in range(text.count("\n", 0, block.start(2)), text.count("\n", 0, block.end(2)))
    }
    lines = text.splitlines(keepends=True)
    return "".join(line if number in kept else "\n" for number, line in enumerate(lines))


def sessions(page: Path) -> list[tuple[str, list[str]]]:
    """Every `$ headway run ...` with the output that is shown below it."""
    shown = [text.splitlines() for text in blocks(page, "console")]
    return [
        (lines[0].removeprefix("$ "), lines[1:])
        for lines in shown
        if lines[0].startswith("$ headway run") and len(lines) > 1
    ]


def pattern(line: str) -> str:
    """*line* with what differs between two runs and two machines left open."""
    open_ends = (
        (r"\d{4}\\-\d\d\\-\d\d\\ \d\d:\d\d:\d\d", r"\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d"),
        (r"\d+\\\.\d\\ s\b", r"\\d+\\.\\d s"),
        (r"\d+\\ slots", r"\\d+ slots?"),
        (r"\b87\d\d/\\\?token=.+", r"87\\d\\d/\\?token=[\\w-]{32}"),
    )
    found = re.escape(line)
    for shown, general in open_ends:
        found = re.sub(shown, general, found)
    return found


def wait_for_lines(output: IO[str], expected: list[str]) -> None:
    """Read until the expected lines came, in this order and with nothing in between."""
    for line in expected:
        printed = output.readline().rstrip("\n")
        assert re.fullmatch(pattern(line), printed), (line, printed)


def clean_environment(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.delenv("HEADWAY_DATABASE_URL", raising=False)


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_the_python_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean_environment(monkeypatch, tmp_path)
    save_programs(page, tmp_path)
    program = tmp_path / f"{page.stem.lower()}_page.py"
    program.write_text(only_python(page) + CALL_TESTS, "utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("page", "command", "output"),
    [
        pytest.param(page, command, output, id=f"{page.name}: {command}")
        for page in PAGES
        for command, output in sessions(page)
    ],
)
def test_a_program_prints_what_its_page_shows(
    page: Path, command: str, output: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean_environment(monkeypatch, tmp_path)
    save_programs(page, tmp_path)
    with subprocess.Popen(
        [HEADWAY, *command.split()[1:]],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as running:
        assert running.stdout is not None
        try:
            wait_for_lines(running.stdout, output)
            running.send_signal(signal.SIGINT)
            assert running.wait(30) == 0
        finally:
            running.kill()


def test_the_readme_shows_its_program_running() -> None:
    assert [command for command, _ in sessions(README)] == ["headway run hello:hw"]
    assert len(README.read_text("utf-8").splitlines()) <= 120


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:\s]+)\)", page.read_text("utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_index_lists_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    links = re.findall(r"\]\(([^)]+)\)", index.read_text("utf-8"))
    listed = {(index.parent / link).resolve() for link in links}
    missing = [page for page in PAGES[1:] if not listed & {page, page.parent} and page != index]
    assert missing == []
