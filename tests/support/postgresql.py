"""A private PostgreSQL server for the tests that store into one."""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def postgresql_url():
    """The URL of a server that nobody else uses; without the programs the test is skipped."""
    if not (shutil.which("initdb") and shutil.which("pg_ctl")):
        pytest.skip("there is no PostgreSQL here: initdb and pg_ctl are not on the PATH")
    # Not pytest's own folder: the path of a socket must be short, and its user able to reach it.
    with tempfile.TemporaryDirectory(prefix="pg-") as name:
        folder, user = Path(name), _user()
        if user is not None:
            os.chown(folder, user, -1)
        data, log = folder / "data", folder / "log"
        _run(user, "initdb", "-D", data, "-A", "trust", "-U", "tester", "-N", "-E", "UTF8")
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        _run(user, "pg_ctl", "-D", data, "-l", log, "-o", options, "-w", "start")
        try:
            yield f"postgresql://tester@/postgres?host={folder}"
        finally:
            _run(user, "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")


def _user() -> int | None:
    """Somebody else when we are root, as whom PostgreSQL refuses to run."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_uid
        except KeyError:
            continue
    return pytest.skip("PostgreSQL does not run as root, and there is no user postgres or nobody")


def _run(user: int | None, *command: object) -> None:
    done = subprocess.run(
        [str(part) for part in command],
        user=user,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command[0]}: {done.stderr}"
