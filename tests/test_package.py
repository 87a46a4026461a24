import inspect
import subprocess
import sys

import pytest

import elastream

HEAVY = {"pyspark", "pandas", "pyarrow", "sklearn", "statsmodels", "jax", "matplotlib", "fastapi"}


SURFACE = [
    "Context",
    "Cycle",
    "Health",
    "Pipeline",
    "PipelineRun",
    "Plan",
    "Result",
    "Scaler",
    "Settings",
    "Status",
    "Topology",
    "Trace",
    "__version__",
    "attach",
    "errors",
    "guard",
    "policy",
    "predictor",
    "replay",
    "run",
    "session",
    "simulate",
    "sinks",
    "slo",
    "trace",
]
"""What users import: whatever is removed or renamed here breaks their programs."""


def test_the_public_surface_is_small_and_there():
    assert elastream.__all__ == SURFACE
    assert all(hasattr(elastream, name) for name in elastream.__all__)
    assert set(SURFACE) <= set(dir(elastream))


RETURNED = {"Cycle", "Health", "Plan", "Result", "Scaler", "Settings", "Trace"}
"""What calls return: people read and annotate these, and do not make them."""


@pytest.mark.parametrize("name", sorted(set(SURFACE) - RETURNED - {"__version__", "errors"}))
def test_what_is_public_says_what_it_is_with_an_example(name):
    assert ">>> " in (inspect.getdoc(getattr(elastream, name)) or "")


@pytest.mark.parametrize("name", sorted(RETURNED))
def test_what_calls_return_can_be_annotated(name):
    assert isinstance(getattr(elastream, name), type)
    assert inspect.getdoc(getattr(elastream, name))


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'sparkle'"):
        elastream.sparkle  # noqa: B018


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
