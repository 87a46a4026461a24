"""The service against requests made from its own OpenAPI schema, valid and not."""

import pytest
import schemathesis
from hypothesis import given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode

from elastream.predictors import PREDICTORS
from elastream.service.api import create_app
from support.fuzzing import FUZZ

QUICK = ("basic", "lr", "fft", "regression", "svr")
app = create_app({name: PREDICTORS[name]() for name in QUICK})
schema = schemathesis.openapi.from_asgi("/openapi.json", app)
operations = {found.ok().label: found.ok() for found in schema.get_all_operations()}

fuzz = settings(FUZZ, max_examples=40)


def test_the_schema_has_every_path() -> None:
    assert set(operations) == {
        "POST /predict/{model}",
        "GET /models",
        "GET /health",
        "GET /health/live",
        "GET /health/ready",
        "GET /metrics",
    }


@pytest.mark.parametrize(
    ("label", "mode"),
    [(label, GenerationMode.POSITIVE) for label in operations]
    # The others take nothing that could be wrong.
    + [("POST /predict/{model}", GenerationMode.NEGATIVE)],
)
def test_no_request_breaks_the_service(label: str, mode: GenerationMode) -> None:
    @fuzz
    @given(case=operations[label].as_strategy(generation_mode=mode))
    def ask(case: schemathesis.Case) -> None:
        case.call_and_validate(checks=[not_a_server_error])

    ask()


@pytest.mark.parametrize("name", QUICK)
def test_no_valid_question_breaks_a_model(name: str) -> None:
    operation = operations["POST /predict/{model}"]

    @fuzz
    @given(case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
    def ask(case: schemathesis.Case) -> None:
        case.path_parameters = {"model": name}
        answer = case.call()
        assert answer.status_code in {200, 422}, answer.text

    ask()
