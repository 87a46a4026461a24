import numpy as np
import pytest

from elastream.experiments import frontier as module
from elastream.experiments.frontier import (
    Frontier,
    Point,
    contenders,
    draw,
    markdown,
    measured,
    prepared,
    steps,
)
from elastream.workloads.traces import Trace, evenly

JUMPY = evenly(np.tile([1000.0, 3000.0, 2000.0, 4000.0], 8))


@pytest.fixture(scope="module")
def frontier():
    chosen = [each for each in contenders() if each.label in ("slo auto 0.25 s", "presps 5 s")]
    ticks = []
    found = measured("jumpy", JUMPY, chosen, ticks.append)
    assert sum(ticks) == steps(JUMPY, chosen)
    return found


def test_the_oracle_is_the_measure_of_all(frontier):
    oracle, slo, presps = frontier.points
    assert (oracle.label, oracle.cost) == ("oracle 1 s", 1.0)
    assert slo.cost <= 1.06
    assert slo.p99_ms <= 500 < presps.p99_ms


def test_what_is_told_and_drawn(frontier, tmp_path):
    text = markdown([frontier])
    assert "| jumpy | slo auto 0.25 s |" in text
    assert "- jumpy: slo auto 0.25 s dominates" in text
    assert draw(frontier, tmp_path / "jumpy.png").stat().st_size > 1000


def test_names_do_not_hide_each_other(monkeypatch, tmp_path):
    drawn = []
    monkeypatch.setattr(module, "save", lambda figure, file: drawn.append(figure.axes[0]))
    same = [Point(f"{name} 1 s", 1.0, 5, 0, 1.0) for name in ("a", "b", "c", "slo auto")]
    apart = Point("d 5 s", 1.0, 400, 0, 1.0)
    draw(Frontier("t", (Point("oracle", 1.0, 5, 0, 1.0), *same, apart)), tmp_path / "t.png")
    names = [text.get_text() for text in drawn[0].texts]
    assert names[0] == "slo auto"
    assert len(names) == 2


def test_who_dominates_whom():
    best, dear, slow = (
        Point("a", 1.0, 100, 0, 1.0),
        Point("b", 1.2, 100, 0, 1.2),
        Point("c", 0.9, 900, 0, 0.9),
    )
    found = Frontier("t", (Point("oracle", 1.0, 5, 0, 1.0), best, dear, slow))
    assert list(found.undominated()) == [best, slow]
    assert found.dominated_by(best) == ["b"]


def test_a_trace_is_scaled_to_what_the_pools_can_do_and_played_a_step_a_second():
    high = Trace(300.0 * np.arange(3), 300.0 * np.array([100.0, 50_000.0, 200.0]), 300.0)
    played = prepared(high)
    assert played.step == 1.0
    assert played.values.max() == pytest.approx(0.9 * 8 / 1.317e-3)
    np.testing.assert_array_equal(prepared(JUMPY).values, JUMPY.values)
