"""What the scaler of a query tells while it scales."""

from types import SimpleNamespace

import pytest

from elastream.control import Cycle
from elastream.control.loop import Outcome
from elastream.core.decision import Change, Reason
from elastream.running.scaler import Scaler


@pytest.mark.parametrize(("advice_only", "kind"), [(True, "advice: "), (False, "")])
def test_what_is_decided_again_and_again_is_told_once(caplog, advice_only, kind):
    caplog.set_level("INFO")
    reasons = [(Reason("forecast", {}, f"{rate} rows/s expected"),) for rate in (573, 618, 900)]
    fewer = [Change("query", 2, 1, each) for each in reasons[:2]]
    more = Change("query", 1, 2, reasons[2])
    cycles = [Cycle(float(n), Outcome.CHANGED, changes=(c,)) for n, c in enumerate([*fewer, more])]
    loop = SimpleNamespace(
        run=lambda: iter(cycles),
        interrupt=lambda: None,
        steering=SimpleNamespace(settings=SimpleNamespace(advice_only=advice_only)),
    )
    Scaler(SimpleNamespace(close=lambda: None), loop, lambda restore: None, None).stop()
    assert caplog.messages == [f"{kind}{fewer[0]}", f"{kind}{more}"]
