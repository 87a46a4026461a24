"""The control API against requests made from its own OpenAPI schema, valid and not."""

import pytest
import schemathesis
from hypothesis import given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode

from elastream.control import Outcome
from support.fuzzing import FUZZ
from support.stepped import Stepped

stepped = Stepped()
stepped.cycles(4)
# A stream that ends, so that it can be fuzzed like any other path.
stepped.live.feed.close()
schema = schemathesis.openapi.from_asgi("/openapi.json", stepped.app)
operations = {
    found.ok().label: found.ok()
    for found in schema.get_all_operations()
    if found.ok().path.startswith("/api/")
}
NOTHING_WRONG = {
    "GET /api/pipeline",
    "GET /api/settings",
    "GET /api/forecast",
    "GET /api/problems",
    "GET /api/runs",
    "DELETE /api/operators/{name}/limits",
    "DELETE /api/operators/{name}/replicas",
}
"""What takes nothing that could be wrong, or any name at all."""

fuzz = settings(FUZZ, max_examples=15)


def test_the_schema_has_every_path() -> None:
    assert set(operations) == {
        "GET /api/pipeline",
        "GET /api/settings",
        "GET /api/history",
        "GET /api/decisions",
        "GET /api/forecast",
        "GET /api/problems",
        "GET /api/runs",
        "GET /api/stream",
        "PATCH /api/settings",
        "PUT /api/operators/{name}/limits",
        "DELETE /api/operators/{name}/limits",
        "PUT /api/operators/{name}/replicas",
        "DELETE /api/operators/{name}/replicas",
        "POST /api/stop",
        "POST /api/what-if",
    }


@pytest.mark.parametrize(
    ("label", "mode"),
    [(label, GenerationMode.POSITIVE) for label in operations]
    + [(label, GenerationMode.NEGATIVE) for label in operations if label not in NOTHING_WRONG],
)
def test_no_request_breaks_the_service(label: str, mode: GenerationMode) -> None:
    operation = operations[label]

    @fuzz
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: schemathesis.Case) -> None:
        if "name" in case.path_parameters and mode is GenerationMode.POSITIVE:
            case.path_parameters["name"] = "store"
        answer = case.call()
        case.validate_response(answer, checks=[not_a_server_error])
        assert "Traceback" not in answer.text

    ask()


def test_what_was_fuzzed_still_runs() -> None:
    """The loop takes whatever the service has let through."""
    stepped.loop.steering.change("test", {"policy": "pa-sps", "paused": False, "td": 10.0})
    assert stepped.loop.cycle().outcome is not Outcome.FAILED
