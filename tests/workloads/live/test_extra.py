import subprocess
import sys

import pytest


@pytest.mark.parametrize("package", ["pyarrow", "vaderSentiment", "psycopg"])
def test_a_missing_package_names_the_extra(package):
    program = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from elastream.workloads import LIVE_APPLICATIONS\n"
        "assert 'twitter' in LIVE_APPLICATIONS\n"
        "LIVE_APPLICATIONS['twitter']('postgresql://host/db')"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    extra = "postgresql" if package == "psycopg" else "demo"
    assert f"pip install 'elastream[{extra}]'" in found.stderr.splitlines()[-1]
