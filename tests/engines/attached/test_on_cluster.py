import os
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = Path(__file__).with_name("on_cluster.py")
LONGEST_SECONDS = 1800


@pytest.mark.long
@pytest.mark.xdist_group("cluster")
def test_attached_queries_on_a_local_cluster():
    """The whole of `on_cluster`, in a process that has no other Spark session."""
    words = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(SUITE)]
    done = subprocess.run(
        words,
        cwd=SUITE.parents[3],
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_SECONDS,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
