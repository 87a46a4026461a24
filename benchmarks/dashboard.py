"""How the page bears 50 operators and an hour of samples, one per second, measured in Chromium.

Run it with `python -m benchmarks.dashboard`. A simulated hour fills the service; then the run goes
on in real time while a page is open that is high enough to show every chart. The targets: drawn
within 2 s of asking for it, and less than 50 ms of scripting for each update.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from threading import Event, Thread

import numpy as np
from playwright.sync_api import Browser, Page

from benchmarks.browser import chromium
from benchmarks.command import by_hand
from benchmarks.measure import Figure, report
from elastream import Pipeline
from elastream.control import Choices, ControlLoop
from elastream.core.topology import Topology
from elastream.engines.simulation import SimulationEngine
from elastream.policies import POLICIES
from elastream.predictors import PREDICTORS
from elastream.service.access import Access
from elastream.service.api import create_app
from elastream.service.control_api import RunningPipeline
from elastream.service.live import Live
from elastream.service.server import listen, serving, url_of
from elastream.workloads.traces import evenly

LANES, DEPTH, HOUR, LOADS, SECONDS = 5, 10, 3_600, 5, 15
LOAD_SECONDS, UPDATE_MS = 2.0, 50.0
WINDOW = {"width": 1440, "height": 1700}
# Drawing happens in animation frames: note when the first one was over that had drawn all charts.
STOPWATCH = """
  const ask = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = (draw) => ask((now) => {
    draw(now);
    const charts = document.querySelectorAll("#charts canvas").length;
    if (charts === 6) window.drawn_at ??= performance.now();
  });
"""


def main() -> bool:
    """Print how long loading and updates take."""
    with served() as (url, loop), chromium() as browser:
        loads = [load_seconds(browser, url) for _ in range(LOADS)]
        page = opened(browser, url)
        with in_real_time(loop):
            scripting, slowest = update_ms(browser, page)
    size = f"{LANES * DEPTH} operators, {HOUR:,} samples"
    return report(
        f"The page with {size}",
        [
            _below("load until all charts are drawn", median(loads), LOAD_SECONDS, "s"),
            _below("scripting per update, on average", scripting, UPDATE_MS, "ms"),
            _below("slowest update, processor time", slowest, UPDATE_MS, "ms"),
        ],
    )


def wide_pipeline() -> Topology:
    """Lanes beside each other, with some of the events crossing over to the next lane."""
    pipeline = Pipeline("wide")
    before: list[str] = [pipeline.source("events")] * LANES
    for depth in range(DEPTH):
        names = [f"step-{depth}-lane-{lane}" for lane in range(LANES)]
        for lane, name in enumerate(names):
            share = 0.9 if depth else 1 / LANES
            pipeline.add(
                lambda batch: batch,
                name=name,
                after=before[lane],
                pool=8,
                execution_time=0.004,
                share=share,
            )
            if depth:
                pipeline.connect(before[lane - 1], name, share=0.1)
        before = names
    return pipeline.topology()


@contextmanager
def served() -> Iterator[tuple[str, ControlLoop]]:
    """A service that has seen an hour of a run; the loop lets one second pass per cycle."""
    rates = 3_000 + 2_000 * np.sin(np.arange(HOUR + 600) / 200)
    engine = SimulationEngine(wide_pipeline(), evenly(rates))
    live = Live(engine.topology, engine.clock.now, sample=1.0)
    engine.watch(live.watch)
    policy, predictor = POLICIES["pa-sps"](), PREDICTORS["lr"]()
    choices = Choices({policy.name: lambda: policy}, {predictor.name: lambda td: predictor})
    loop = ControlLoop(engine, policy, predictor, choices=choices, record=live.record)
    while engine.clock.now() < HOUR:
        loop.cycle()
    loop.steering.change("benchmark", {"td": 1.0})
    running = RunningPipeline("simulation", live, loop.steering, 100, loop.health)
    listening = listen("127.0.0.1", 0)
    app = create_app({}, access=Access(loopback=True), running=running)
    with serving(app, listening, live.feed.close):
        yield url_of(listening), loop
    engine.close()


@contextmanager
def in_real_time(loop: ControlLoop) -> Iterator[None]:
    """One cycle per second while the block runs."""
    over = Event()

    def go_on() -> None:
        while not over.wait(1.0):
            loop.cycle()

    going = Thread(target=go_on)
    going.start()
    try:
        yield
    finally:
        over.set()
        going.join()


def opened(browser: Browser, url: str) -> Page:
    """A page in a browser that has seen nothing yet, once it is drawn."""
    page = browser.new_context(viewport=WINDOW).new_page()
    page.add_init_script(STOPWATCH)
    page.goto(url)
    while not page.evaluate("window.drawn_at"):
        page.wait_for_timeout(50)
    return page


def load_seconds(browser: Browser, url: str) -> float:
    """From asking for the page until its charts are drawn."""
    page = opened(browser, url)
    took = page.evaluate("window.drawn_at") / 1000
    page.context.close()
    return float(took)


def update_ms(browser: Browser, page: Page) -> tuple[float, float]:
    """Scripting per update, and the processor time that drawing took in the slowest of them."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def scripting() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return float(next(of["value"] for of in metrics if of["name"] == "ScriptDuration"))

    browser.start_tracing(page=page, categories=["devtools.timeline"])
    before = scripting()
    page.wait_for_timeout(1_000 * SECONDS)
    spent = scripting() - before
    events = json.loads(browser.stop_tracing())["traceEvents"]
    frames = [event["tdur"] / 1000 for event in events if event["name"] == "FireAnimationFrame"]
    return 1_000 * spent / len(frames), max(frames)


def _below(what: str, measured: float, target: float, unit: str) -> Figure:
    text = f"{measured:.2f} {unit}" if unit == "s" else f"{measured:.0f} {unit}"
    return Figure(what, text, f"< {target:.0f} {unit}", measured < target)


if __name__ == "__main__":
    by_hand(main)
