"""Nothing is decided by the clock on the wall: it is set back and forth while pipelines run."""

import ast
from pathlib import Path

import elastream

ROOT = Path(elastream.__file__).parent
ALLOWED = {
    "engines/spark/worker/chain.py": "the latency of an event that left the pipeline",
    "engines/spark/worker/trace_player.py": "when an event was born",
    "engines/spark/backends/sqlite/inbox.py": "when an event was born",
    "engines/spark/backends/sqlite/dead_letters.py": "when a dead letter was set aside, or reborn",
    "engines/spark/backends/sqlite/backend.py": "since when a driver has a state, for people",
    "engines/spark/backends/kafka/dataframes.py": "when an event was born",
    "engines/spark/backends/kafka/dead_letters.py": "when an event was born",
    "engines/spark/backends/kafka/lanes.py": "when a dead letter was set aside",
    "engines/spark/backends/kafka/backend.py": "since when a driver has a state, for people",
    "engines/executors/fleet.py": "since when executors are missing, for people",
    "engines/attached/engine.py": "how old the progress of a query is, which Spark dates so",
}
"""Where it is asked for the time that a person would, and what for."""
WALL = {"time", "time_ns", "localtime", "gmtime", "strftime", "ctime", "asctime"}
TODAY = {"now", "utcnow", "today"}


def asks(source):
    """Whether a module asks for the time of day."""
    tree = ast.parse(source)
    named = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "time"
        for alias in node.names
        if alias.name in WALL
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Name(id=name) if name in named:
                return True
            case ast.Attribute(value=ast.Name(id="time"), attr=name) if name in WALL:
                return True
            case ast.Attribute(value=ast.Name(id="datetime" | "date"), attr=name) if name in TODAY:
                return True
    return False


def test_the_clock_on_the_wall_is_asked_only_where_nothing_depends_on_it():
    found = {
        file.relative_to(ROOT).as_posix()
        for package in ("engines", "core", "policies", "predictors")
        for file in (ROOT / package).rglob("*.py")
        if asks(file.read_text())
    }
    assert found == set(ALLOWED)


def test_whoever_asks_is_found():
    assert asks("import time\ntime.time()")
    assert asks("from time import time as now, sleep\nnow()")
    assert asks("from datetime import datetime\ndatetime.now()")
    assert not asks("from time import monotonic\nmonotonic()")
    assert not asks("import time\ntime.monotonic()")
