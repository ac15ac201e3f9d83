"""A PostgreSQL server of the tests' own: made in a folder, on a loopback port, killed and started again at will."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

INITDB = next(
    (
        path
        for path in [
            *sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True),
            Path(shutil.which("initdb") or "/nowhere"),
        ]
        if path.exists()
    ),
    None,
)
USER = "keeper"
READY_S = 60.0


class PostgresServer:
    """A running server; `url` names a database of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._account = "postgres" if os.geteuid() == 0 else None
        if self._account:
            account = pwd.getpwnam(self._account)
            os.chown(folder, account.pw_uid, account.pw_gid)
        self._run(
            *(
                _program("initdb"),
                "--no-sync",
                "--auth=trust",
                f"--username={USER}",
                "--encoding=UTF8",
            ),
            *("--locale=C", folder / "data"),
        )
        self.start()

    def url(self, user: str = USER, folder: Path | None = None) -> str:
        """The address of the database."""
        place = f"?folder={folder}" if folder else ""
        return f"postgresql://{user}@127.0.0.1:{self.port}/postgres{place}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": self.folder,
        }
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    _program("postgres"),
                    *("-D", str(self.folder / "data")),
                    *(f"--{name}={value}" for name, value in settings.items()),
                ],
                user=self._account,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + READY_S
        ready = [_program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        while subprocess.run(ready, check=False).returncode != 0:
            assert time.monotonic() < until, (self.folder / "log").read_text()[-2000:]
            assert self._process.poll() is None, (self.folder / "log").read_text()[-2000:]
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop it and wait until it is gone."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait()

    def kill(self) -> None:
        """Kill the server and each of its processes at once, as a power cut would."""
        self._process.send_signal(
            signal.SIGSTOP
        )  # it starts no process while the others are killed
        for process in [*_children(self._process.pid), self._process.pid]:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._process.wait()

    def _run(self, *command: object) -> None:
        subprocess.run(
            [str(word) for word in command],
            check=True,
            user=self._account,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def _program(name: str) -> str:
    assert INITDB is not None
    return str(INITDB.with_name(name))


def _children(parent: int) -> list[int]:
    stats = [
        path.read_text().rpartition(")")[2].split() for path in Path("/proc").glob("[0-9]*/stat")
    ]
    names = [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/stat")]
    return [name for name, stat in zip(names, stats, strict=True) if int(stat[1]) == parent]


@contextmanager
def running() -> Iterator[PostgresServer]:
    """A server while the block runs."""
    folder = Path(tempfile.mkdtemp(prefix="evidence-postgres-"))
    server = PostgresServer(folder)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)
