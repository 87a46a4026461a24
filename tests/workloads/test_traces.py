from pathlib import Path

import pytest

from elastream.errors import InvalidInputError
from elastream.workloads.traces import load_samples, load_trace


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "trace.csv"


@pytest.mark.parametrize(
    ("times", "step", "first"),
    [
        (["0", "5", "10"], 5, 0),
        (["0.1", "0.2", "0.3"], 0.1, 0.1),
        (["1970-01-01 00:00:00", "1970-01-01 00:05:00", "1970-01-01 00:10:00"], 300, 0),
        (["1970-01-01T01:00:00+01:00", "1970-01-01T00:00:01Z", "1970-01-01T00:00:02"], 1, 0),
    ],
)
def test_seconds_and_timestamps(file: Path, times: list[str], step: float, first: float) -> None:
    rows = zip(times, ["3", "4.5", "0"], strict=True)
    file.write_text("\n".join(["time,value", *(",".join(row) for row in rows), ""]))
    trace = load_trace(file)
    assert trace.values.tolist() == [3, 4.5, 0]
    assert (trace.times[0], trace.step) == pytest.approx((first, step))


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "the header must be 'time,value', not ''"),
        ("rate\n1\n", 1, "the header must be 'time,value', not 'rate'"),
        ("time,value\n0,1\n1,2\n1,3\n", 4, "its time does not come after the one before"),
        ("time,value\n5,1\n1,2\n", 3, "its time does not come after the one before"),
        ("time,value\n0,1\n1,2\n3,3\n", 4, "1 step of 1 s missing before it: fill the gap"),
        ("time,value\n0,1\n1,2\n2.5,3\n", 4, "its time is 1.5 s after the one before, which is no"),
        ("time,value\n0,1\n1,-2\n", 3, "the value '-2' is negative"),
        ("time,value\n0,1\n1,nan\n", 3, "the value 'nan' is not finite"),
        ("time,value\n0,inf\n1,1\n", 2, "the value 'inf' is not finite"),
        ("time,value\n0,1e300\n1,1\n", 2, "the value '1e300' is too large: 9007199254740992 is"),
        ("time,value\n0,1\n1,1\n9e9,1\n", 4, "8,999,999,998 steps before it are missing: too many"),
        ("time,value\n0,1\n1,many\n", 3, "'many' is not a number"),
        ("time,value\n0,1\n\n1,\n", 4, "'' is not a number"),
        ("time,value\nnoon,1\n", 2, "'noon' is neither seconds nor an ISO timestamp"),
        ("time,value\nnan,1\n", 2, "the time 'nan' is not finite"),
        ("time,value\n0,1,2\n", 2, "a row is a time and a value, and this one has 3 cells"),
        ("time,value\n0,1\n", 2, "a trace needs at least 2 rows, and this one has 1"),
    ],
)
def test_a_wrong_line_is_named(file: Path, text: str, line: int, message: str) -> None:
    file.write_text(text)
    with pytest.raises(InvalidInputError) as refused:
        load_trace(file)
    assert str(refused.value).startswith(f"{file}:{line}: {message}")


def test_a_gap_can_be_filled_between_its_neighbours(file: Path) -> None:
    file.write_text("time,value\n0,1\n10,2\n40,8\n50,9\n")
    trace = load_trace(file, fill_gaps=True)
    assert trace.times.tolist() == [0, 10, 20, 30, 40, 50]
    assert trace.values.tolist() == [1, 2, 4, 6, 8, 9]


def test_what_is_no_gap_is_not_filled(file: Path) -> None:
    file.write_text("time,value\n0,1\n1,1\n9e9,1\n")
    with pytest.raises(InvalidInputError, match="too many for a gap"):
        load_trace(file, fill_gaps=True)


def test_a_file_that_cannot_be_read_is_named(file: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"trace\.csv: cannot be read: No such file"):
        load_trace(file)
    file.write_bytes(b"time,value\n\xff\xfe,1\n")
    with pytest.raises(InvalidInputError, match="it is not text in UTF-8"):
        load_trace(file)


def test_samples_are_numbers_or_the_values_of_a_trace(file: Path) -> None:
    file.write_text("1\n2.5\n\n3e2\n")
    assert load_samples(file).tolist() == [1, 2.5, 300]
    file.write_text("time,value\n0,4\n1,5\n")
    assert load_samples(file).tolist() == [4, 5]


def test_a_wrong_sample_is_named(file: Path) -> None:
    file.write_text("1\n\ntwo\n")
    with pytest.raises(InvalidInputError, match=r"trace\.csv:3: 'two' is not a number"):
        load_samples(file)
