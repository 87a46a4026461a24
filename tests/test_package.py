import subprocess
import sys

import pytest

import elastream

HEAVY = {"pyspark", "pandas", "pyarrow", "sklearn", "statsmodels", "jax", "matplotlib", "fastapi"}


def test_the_public_surface_is_small_and_there():
    assert elastream.__all__ == ["Pipeline", "Topology", "__version__", "attach"]
    assert all(hasattr(elastream, name) for name in elastream.__all__)


@pytest.mark.parametrize(
    "module", ["elastream", "elastream.cli", "elastream.control", "elastream.workloads"]
)
def test_importing_loads_neither_spark_nor_a_machine_learning_library(module):
    program = f"import sys, {module}; print(*(name.split('.')[0] for name in sys.modules))"
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert HEAVY.isdisjoint(found.stdout.split())


def test_the_command_line_names_its_version():
    found = subprocess.run(
        [sys.executable, "-m", "elastream", "--version"], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == f"elastream {elastream.__version__}"


def test_a_users_mistake_is_one_line_and_exit_code_2(tmp_path):
    found = subprocess.run(
        [sys.executable, "-m", "elastream", "history", str(tmp_path / "none.db")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 2
    assert found.stderr.strip() == f"elastream: {tmp_path / 'none.db'}: there is no such file"
