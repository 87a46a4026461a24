"""Build the package, and use it as somebody would who has never seen the repository.

    python scripts/check_package.py FOLDER

It builds an sdist, and from that a wheel; looks at what is in them; installs the wheel in an
environment of its own; runs examples in a folder elsewhere; fetches the page of a run; installs all
extras, and uses something of each.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path
from urllib.request import urlopen
from zipfile import ZipFile

ROOT = Path(__file__).parents[1]
IN_WHEEL = (
    "elastream/py.typed",
    "elastream/service/page/index.html",
    "elastream/engines/spark/backends/sqlite/schema.sql",
    "elastream/engines/spark/driver/log4j2.properties",
    ".dist-info/licenses/LICENSE",
    ".dist-info/licenses/src/elastream/service/page/vendor/uplot/LICENSE",
)
IN_SDIST = ("README.md", "LICENSE", "pyproject.toml", "constraints.txt", "examples/first_run.py")
EXAMPLES = (
    ["{bin}/python", "-c", "import elastream; print(elastream.__version__)"],
    ["{bin}/elastream", "simulate", "--app", "twitter", "--trace", "step"],
    ["{bin}/python", "{elsewhere}/compare_policies.py"],
    ["{bin}/elastream", "run", "{elsewhere}/first_pipeline.py:pipeline",
     "--trace", "step", "--scale", "0.05", "--duration", "5", "--td", "1"],
)  # fmt: skip


def main(folder: Path) -> None:
    """Build, look, install, run; the first thing that is wrong ends it."""
    shutil.rmtree(folder, ignore_errors=True)
    run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)])
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    look(wheel, sdist)
    environment = folder / "environment"
    venv.create(environment, with_pip=True)
    binaries = (environment / "bin").resolve()
    constraints = str(ROOT / "constraints.txt")
    install = [f"{binaries}/pip", "install", "--quiet", "--constraint", constraints]
    run([*install, f"{wheel}[spark,serve]"])
    with tempfile.TemporaryDirectory() as elsewhere:
        for name in ("compare_policies.py", "first_pipeline.py"):
            shutil.copy(ROOT / "examples" / name, elsewhere)
        for command in EXAMPLES:
            filled = [part.format(bin=binaries, elsewhere=elsewhere) for part in command]
            run(filled, elsewhere)
        look_at_page(binaries, elsewhere)
        run([*install, f"{wheel}[all]"])
        run([f"{binaries}/python", str(ROOT / "scripts" / "use_extras.py"), elsewhere], elsewhere)
    print(f"{wheel} and {sdist} are good")


def look(wheel: Path, sdist: Path) -> None:
    """What must be in them is, and the tests are not in the wheel."""
    with ZipFile(wheel) as archive:
        names = archive.namelist()
    for wanted in IN_WHEEL:
        if not any(name.endswith(wanted) for name in names):
            sys.exit(f"{wheel}: {wanted} is missing")
    foreign = [name for name in names if not name.startswith("elastream")]
    if foreign:
        sys.exit(f"{wheel}: {foreign[0]} should not be in it")
    with tarfile.open(sdist) as archive:
        names = archive.getnames()
    for wanted in IN_SDIST:
        if not any(name.endswith(f"/{wanted}") for name in names):
            sys.exit(f"{sdist}: {wanted} is missing")


def look_at_page(binaries: Path, folder: str) -> None:
    """Serve a simulation, and fetch its page with everything that the page needs."""
    command = [f"{binaries}/elastream", "simulate", "--trace", "step", "--serve", "--port", "0"]
    print("+", *command, flush=True)
    started = subprocess.Popen(
        [*command, "--log-format", "json"],
        cwd=folder,
        env=fresh_shell(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert started.stderr is not None
        facts = (json.loads(line) for line in started.stderr)
        url = next((each["url"] for each in facts if "url" in each), None)
        if url is None:
            sys.exit(f"failed: {' '.join(command)}")
        page = fetched(url)
        for file in re.findall(r'(?:src|href)="([^":]+\.(?:js|css))"', page):
            fetched(f"{url.rstrip('/')}/{file.removeprefix('./').lstrip('/')}")
    finally:
        started.kill()
        started.wait()


def fetched(url: str) -> str:
    """What is at that address."""
    with urlopen(url, timeout=30) as answer:
        content: str = answer.read().decode()
    return content


def run(command: list[str], folder: str | None = None) -> None:
    """Run it as in a fresh shell."""
    print("+", *command, flush=True)
    if subprocess.run(command, cwd=folder, env=fresh_shell(), check=False).returncode:
        sys.exit(f"failed: {' '.join(command)}")


def fresh_shell() -> dict[str, str]:
    """The environment without what this repository brings along."""
    hidden = ("PYTHONPATH", "PYSPARK_PYTHON", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if name not in hidden}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
