import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastream.engines.attached.progress import Progress, position
from elastream.errors import InvalidInputError

KAFKA = {
    "id": "1",
    "runId": "run",
    "timestamp": "2026-01-02T03:04:05.678Z",
    "batchId": 7,
    "numInputRows": 400,
    "durationMs": {"addBatch": 1500, "triggerExecution": 1900, "queryPlanning": 20},
    "sources": [
        {
            "startOffset": {"orders": {"0": 100, "1": 200}},
            "endOffset": {"orders": {"0": 300, "1": 400}},
            "latestOffset": {"orders": {"0": 350, "1": 420}},
        }
    ],
}


def test_a_batch_is_read():
    read = Progress.parsed(json.dumps(KAFKA))
    assert (read.run, read.batch, read.rows) == ("run", 7, 400.0)
    assert (read.seconds, read.overhead) == (1.9, pytest.approx(0.4))
    assert (read.start, read.end, read.latest) == (300.0, 700.0, 770.0)
    assert read.ended - read.began == pytest.approx(1.9)


def test_sources_whose_offsets_are_no_numbers_cannot_be_counted():
    files = {**KAFKA, "sources": [{"startOffset": None, "endOffset": {"path": "a"}}]}
    read = Progress.parsed(json.dumps(files))
    assert read.start is read.end is read.latest is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"runId": "x"}', "null"])
def test_what_is_no_progress_is_refused(text):
    with pytest.raises(InvalidInputError, match="no progress"):
        Progress.parsed(text)


numbers = st.integers(0, 10**12) | st.floats(0, 1e12)
offsets = st.recursive(
    numbers, lambda inner: st.dictionaries(st.text(), inner, min_size=1, max_size=3), max_leaves=6
)


@given(offsets)
def test_an_offset_of_numbers_has_a_position_also_as_text(offset):
    assert position(offset) == pytest.approx(position(json.dumps(offset)))
    assert position(offset) >= 0
