"""The page in a real browser, over a simulated run."""

import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from random import Random
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import pytest
from benchmarks.browser import chromium
from playwright.sync_api import Browser, Locator, Page, Route, expect

from elastream.core.health import Health, State
from elastream.service.address import Address
from support.cuttable import Relay
from support.pipelines import failing
from support.served import TOKENS, ServedRun, served_run

expect.set_options(timeout=60_000)
PHONE = {"width": 375, "height": 740}
# What is not a tab stop: the other buttons of a group of radio buttons.
CONTROLS = (
    "button, select, summary, a, input:not([type=radio]), input[type=radio]:checked, [tabindex='0']"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as launched:
        yield launched


@dataclass
class Visit:
    """A page that is open, with what it asked for and complained about."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "console",
            lambda said: self.complaints.append(said.text) if said.type == "error" else None,
        )

    def to(self, url: str) -> Page:
        """The page, once it is live."""
        self.page.goto(url)
        expect(self.state).to_have_text("Live")
        return self.page

    @property
    def state(self) -> Locator:
        return self.page.locator("#connection")

    @property
    def decisions(self) -> Locator:
        return self.page.locator("#decisions")


Visitor = Callable[..., Visit]


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visitor]:
    contexts = []

    def opened(**how: object) -> Visit:
        contexts.append(browser.new_context(**how))
        return Visit(contexts[-1].new_page())

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def run() -> Iterator[ServedRun]:
    with served_run() as served:
        yield served


def test_it_shows_the_running_pipeline_with_nothing_from_elsewhere(
    run: ServedRun, visit: Visitor
) -> None:
    there = visit()
    page = there.to(run.url)
    expect(page).to_have_title("twitter · elastream")
    for operator in ("stop-words", "sentiment", "user-class", "store"):
        node = page.locator(f'.node[data-operator="{operator}"]')
        expect(node).to_contain_text(re.compile(r"[1-8]/8"))
        expect(node).to_contain_text(re.compile(r"in \d.*out \d.*queued"))
        expect(page.get_by_role("row", name=operator)).to_contain_text(re.compile(r"\d %"))
    for chart in (
        "Input and forecast",
        "Throughput",
        "Replicas",
        "Queue",
        "Latency",
        "Utilisation",
    ):
        figure = page.get_by_role("group", name=re.compile(f"^{chart},"))
        figure.scroll_into_view_if_needed()
        expect(figure.locator("canvas")).to_be_visible()
        expect(figure.locator(".legend li").first).to_contain_text(re.compile(r"\d"))
    expect(there.decisions).to_contain_text("events/s expected (lr)")
    expect(page.locator("#forecast")).to_contain_text("lr")
    expect(page.locator("#forecast")).to_contain_text(re.compile(r"\d % of the input"))
    throughput = page.get_by_role("group", name=re.compile("^Throughput,")).locator(".legend b")
    before = throughput.text_content() or ""
    expect(throughput).not_to_have_text(before)
    assert {urlsplit(url).netloc for url in there.requests} == {urlsplit(run.url).netloc}
    assert there.complaints == []


def test_a_policy_switch_takes_effect_and_shows(run: ServedRun, visit: Visitor) -> None:
    there, other = visit(), visit()
    page = there.to(run.url)
    other.to(run.url)
    form = page.locator("#settings")
    form.get_by_label("Policy").select_option("incremental")
    form.get_by_role("button", name="Apply").click()
    expect(form.get_by_role("status")).to_have_text("Applied.")
    assert run.steering.course.policy.name == "incremental"
    for visitor in (there, other):
        expect(visitor.decisions).to_contain_text("policy: pa-sps -> incremental")
        expect(visitor.decisions).to_contain_text("local, ")
        expect(visitor.page.locator("#settings").get_by_label("Policy")).to_have_value(
            "incremental"
        )
    run.steering.change("test", {"policy": "pa-sps"})


def test_switches_take_effect_at_once(run: ServedRun, visit: Visitor) -> None:
    page = visit().to(run.url)
    page.get_by_role("switch", name="Pause").check()
    expect(page.locator("#modes")).to_have_text("paused")
    assert run.steering.settings.paused
    page.get_by_role("switch", name="Pause").uncheck()
    expect(page.locator("#modes")).to_have_text("")
    assert not run.steering.settings.paused


def test_a_switch_stays_as_clicked_until_it_is_answered(run: ServedRun, visit: Visitor) -> None:
    page = visit().to(run.url)
    held: list[Route] = []
    page.route(
        "**/api/settings",
        lambda route: held.append(route) if route.request.method == "PATCH" else route.continue_(),
    )
    switch, modes = page.get_by_role("switch", name="Pause"), page.locator("#modes")
    switch.check()
    run.steering.change("somebody else", {"advice_only": True})
    expect(modes).to_have_text("advice only")
    expect(switch).to_be_checked()
    held.pop().continue_()
    expect(modes).to_have_text("pausedadvice only")
    switch.uncheck()
    held.pop().abort()
    expect(switch).to_be_checked()
    page.unroute("**/api/settings")
    run.steering.change("test", {"paused": False, "advice_only": False})
    expect(switch).not_to_be_checked()


def test_what_is_wrong_with_the_run_is_in_plain_sight(run: ServedRun, visit: Visitor) -> None:
    page = visit().to(run.url)
    health, banner = page.locator("#health"), page.locator("#health-banner")
    expect(health).to_have_text("running")
    expect(banner).to_be_hidden()
    run.report(Health(State.WAITING, "the disk is full"))
    expect(health).to_have_text("waiting")
    expect(banner).to_have_text("The run is waiting: the disk is full")
    run.report(Health())
    expect(health).to_have_text("running")
    expect(banner).to_be_hidden()


def test_events_that_are_set_aside_show_at_once(visit: Visitor) -> None:
    with served_run() as run:
        page = visit().to(run.url)
        expect(page.locator("#problems")).to_be_hidden()
        stats = failing(run.engine.topology, "sentiment", {"KeyError: 7": 2400.0}, source="tweets")
        run.live.watch(stats)
        expect(page.locator("#problems")).to_contain_text("2,400 set aside")
        expect(page.locator("#problems")).to_contain_text("KeyError: #")
        expect(page.get_by_role("row", name="sentiment")).to_contain_text("2,400")
        page.reload()
        expect(page.locator("#problems")).to_contain_text("2,400 set aside")


def test_on_spark_times_are_those_of_the_day(visit: Visitor) -> None:
    with served_run(engine_name="spark") as run:
        there = visit(timezone_id="Asia/Kolkata", locale="en-GB")
        page = there.to(run.url)
        page.get_by_role("group", name=re.compile("^Input")).focus()
        page.keyboard.press("Shift+ArrowLeft")
        expected = datetime.now(ZoneInfo("Asia/Kolkata")).strftime("at %H:")
        expect(page.locator("#cursor-time")).to_contain_text(expected)
        ticks = page.evaluate(
            """async () => {
              const { setZero, clockOffset, clock } = await import("/assets/figures.js");
              setZero(1_000_000_007);
              return [clockOffset(), clock(60)];
            }"""
        )
        assert ticks == [(1_000_000_007 + 19_800) % 86_400, "07:17:47"]


def test_a_bad_value_is_shown_at_its_field_and_changes_nothing(
    run: ServedRun, visit: Visitor
) -> None:
    page = visit().to(run.url)
    interval = page.get_by_label("Interval")
    before = interval.input_value()
    interval.fill("-1")
    interval.press("Enter")
    expect(interval).to_have_attribute("aria-invalid", "true")
    expect(interval).to_have_accessible_description(re.compile("greater than 0"))
    expect(interval).to_be_focused()
    page.locator("#settings").get_by_role("button", name="Undo").click()
    expect(interval).to_have_value(before)
    expect(interval).not_to_have_attribute("aria-invalid", "true")
    assert run.steering.settings.td == float(before)


def test_an_operator_is_set_by_hand_and_released(run: ServedRun, visit: Visitor) -> None:
    there = visit()
    page = there.to(run.url)
    page.get_by_role("button", name="Adjust sentiment").click()
    dialog = page.get_by_role("dialog", name="sentiment")
    dialog.get_by_label("Replicas", exact=True).fill("99")
    dialog.get_by_role("button", name="Set replicas").click()
    expect(dialog.locator(".problem")).to_contain_text("must be 1 to 8")
    dialog.get_by_label("Replicas", exact=True).fill("7")
    dialog.get_by_role("button", name="Set replicas").click()
    expect(page.locator('.node[data-operator="sentiment"]')).to_contain_text("7/8 by hand")
    dialog.get_by_label("Maximum").fill("7")
    dialog.get_by_role("button", name="Set limits").click()
    expect(page.locator("#operators")).to_contain_text("1–7 set")
    for form in ("#limits", "#by-hand"):
        dialog.locator(form).get_by_role("button", name="Release").click()
        expect(dialog.locator(form).get_by_role("status")).to_have_text("Released.")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert run.steering.settings.by_hand == run.steering.settings.limits == {}
    expect(there.decisions).to_contain_text("sentiment: left to the policy")


def test_what_if_shows_both_sides(run: ServedRun, visit: Visitor) -> None:
    page = visit().to(run.url)
    form = page.locator("#what-if")
    form.get_by_label("Policy").select_option("incremental")
    form.get_by_label("Predictor").select_option("basic")
    form.get_by_role("button", name="Replay").click()
    sides = page.locator("#what-if-result article")
    expect(sides).to_have_count(2)
    recorded, replayed = sides.all()
    expect(recorded).to_contain_text("pa-sps with lr")
    expect(replayed).to_contain_text("incremental with basic")
    for side in (recorded, replayed):
        for measure in ("Replica-seconds", "Mean latency", "p99 latency", "Largest backlog"):
            expect(side.locator("dl > div").filter(has_text=measure)).to_contain_text(
                re.compile(r"\d")
            )
        expect(side.locator("canvas")).to_have_count(2)
    assert run.steering.settings.policy == "pa-sps"


def test_drain_and_stop_asks_first_and_ends_the_run(visit: Visitor) -> None:
    with served_run() as run:
        there = visit()
        page = there.to(run.url)
        page.get_by_role("button", name="Drain and stop…").click()
        page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        assert not run.steering.settings.stopping
        page.get_by_role("button", name="Drain and stop…").click()
        page.get_by_role("dialog").get_by_role("button", name="Drain and stop").click()
        expect(page.locator("#modes")).to_have_text("draining")
        run.live.end()
        expect(there.state).to_have_text("The run is over")
        expect(page.locator("#banner")).to_be_visible()


def test_a_wrong_token_is_refused_and_a_right_one_asked_for_once(visit: Visitor) -> None:
    with served_run(tokens=TOKENS) as run:
        there = visit()
        page = there.to(run.url)
        dialog = page.get_by_role("dialog", name="A token is needed")
        page.get_by_role("switch", name="Pause").click()
        dialog.get_by_role("button", name="Cancel").click()
        expect(page.locator("#switches").get_by_role("status")).to_contain_text("token")
        expect(page.get_by_role("switch", name="Pause")).not_to_be_checked()
        page.get_by_role("switch", name="Pause").click()
        dialog.get_by_label("Token").fill("wrong-horse-battery")
        dialog.get_by_role("button", name="Continue").click()
        expect(dialog).to_contain_text("That token was refused.")
        assert not run.steering.settings.paused
        dialog.get_by_label("Token").fill(TOKENS["anna"])
        dialog.get_by_role("button", name="Continue").click()
        expect(page.locator("#modes")).to_have_text("paused")
        expect(there.decisions).to_contain_text("anna, ")
        page.get_by_role("switch", name="Advice only").check()
        expect(page.locator("#modes")).to_contain_text("advice only")
        expect(dialog).to_be_hidden()


def test_where_reading_wants_a_token_the_page_asks_at_once(visit: Visitor) -> None:
    with served_run(tokens=TOKENS, readers={"wall": "only-looks-at-it"}) as run:
        there = visit()
        page = there.page
        page.goto(run.url)
        dialog = page.get_by_role("dialog", name="A token is needed")
        dialog.get_by_label("Token").fill("only-looks-at-it")
        dialog.get_by_role("button", name="Continue").click()
        expect(there.state).to_have_text("Live")
        for token, paused in ((None, False), (TOKENS["anna"], True)):
            page.get_by_role("switch", name="Pause").click()
            expect(dialog).to_contain_text("may only read")
            if token:
                dialog.get_by_label("Token").fill(token)
            dialog.get_by_role("button", name="Continue" if token else "Cancel").click()
            expect(page.locator("#modes")).to_have_text("paused" if paused else "")
        assert run.steering.settings.paused
        expect(there.state).to_have_text("Live")


def test_a_lost_connection_comes_back_without_a_gap(run: ServedRun, visit: Visitor) -> None:
    there = visit()
    with Relay(run.url) as relay:
        there.to(relay.url)
        relay.cut()
        expect(there.state).to_contain_text("Connection lost")
        expect(there.page.locator("#banner")).to_contain_text("reconnects by itself")
        run.steering.change("someone", {"td": 6.0})
        run.steering.change("someone", {"td": 5.0})
        relay.mend()
        expect(there.state).to_have_text("Live")
        expect(there.decisions).to_contain_text(re.compile("td: 5.* -> 6"))
        # It went on where it was, and had to load nothing again.
        assert sum("/api/history" in url for url in there.requests) == 1


def test_a_service_that_starts_again_is_a_new_run(visit: Visitor) -> None:
    there = visit()
    with served_run() as run:
        there.to(run.url)
    expect(there.state).to_contain_text("Connection lost")
    with served_run("dns", port=urlsplit(run.url).port or 0):
        expect(there.page).to_have_title("dns · elastream")
        expect(there.state).to_have_text("Live")
        expect(there.page.locator(".node.source")).to_be_visible()


def test_everything_can_be_reached_by_keyboard(run: ServedRun, visit: Visitor) -> None:
    page = visit().to(run.url)
    expected = page.locator(CONTROLS).filter(visible=True).count()
    page.evaluate(
        """() => { window.reached = new Set(); window.unseen = [];
        document.addEventListener("focusin", ({ target }) => {
          window.reached.add(target);
          if (target.matches("[type=radio], [type=checkbox]")) return;
          const { outlineStyle } = getComputedStyle(target);
          if (outlineStyle === "none") window.unseen.push(target.outerHTML);
        }); }"""
    )
    for _ in range(expected):
        page.keyboard.press("Tab")
    assert page.evaluate("window.reached.size") == expected
    assert page.evaluate("window.unseen") == []


def test_charts_are_explored_by_mouse_and_by_keyboard(run: ServedRun, visit: Visitor) -> None:
    page = visit().to(run.url)
    times = page.request.get(f"{run.url}/api/history").json()["time"]
    plot = page.locator("#charts .u-over").first
    box = plot.bounding_box()
    assert box
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.2 * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.8 * box["width"], y, steps=3)
    page.mouse.up()
    expect(page.locator("#zoom-span")).to_have_text(re.compile(r"\d+:\d\d to \d+:\d\d"))
    start, end = (
        60 * int(time.split(":")[0]) + int(time.split(":")[1])
        for time in page.locator("#zoom-span").inner_text().split(" to ")
    )
    assert end - start > 0.4 * (times[-1] - times[0])
    page.get_by_role("button", name="Back to live").click()
    expect(page.locator("#zoom")).to_be_hidden()
    page.mouse.move(1, 1)
    expect(page.locator("#cursor-time")).to_have_text("")
    page.get_by_role("group", name=re.compile("^Input")).focus()
    page.keyboard.press("Shift+ArrowLeft")
    expect(page.locator("#cursor-time")).to_have_text(re.compile(r"at \d+:\d\d"))


def test_a_phone_needs_no_horizontal_scrolling(run: ServedRun, visit: Visitor) -> None:
    page = visit(viewport=PHONE, is_mobile=True, has_touch=True).to(run.url)
    expect(page.locator("#operators tbody tr")).to_have_count(4)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


def test_the_theme_follows_the_system_until_one_is_chosen(run: ServedRun, visit: Visitor) -> None:
    page = visit(color_scheme="dark").to(run.url)
    root = page.locator("html")
    expect(root).to_have_attribute("data-theme", "dark")
    page.get_by_label("Theme").select_option("light")
    page.reload()
    expect(root).to_have_attribute("data-theme", "light")


def test_text_of_the_service_stays_text(run: ServedRun, visit: Visitor) -> None:
    there = visit()
    page = there.to(run.url)
    name = "<img src=x onerror=alert(1)>"
    run.steering.change(name, {"td": 7.0})
    run.steering.change("test", {"td": 5.0})
    expect(there.decisions).to_contain_text(name)
    expect(page.locator("#decisions img")).to_have_count(0)


def test_a_large_pipeline_is_laid_out_in_layers_that_do_not_overlap(
    run: ServedRun, visit: Visitor
) -> None:
    page = visit().page
    page.goto(f"{run.url}/health")
    names = [str(number) for number in range(50)]
    chances = Random(7)
    edges = [
        {"origin": str(chances.randrange(max(0, target - 9), target)), "target": str(target)}
        for target in [*range(1, 50), *range(1, 50)]
    ]
    nodes = page.evaluate(
        """async ([names, edges]) => {
          const { layered } = await import("/assets/layout.js");
          const { nodes } = layered(names, edges, () => 50, 10);
          return nodes.map(({ name, layer, across }) => [name, layer, across]);
        }""",
        [names, edges],
    )
    layer = {name: layer for name, layer, _ in nodes}
    assert all(layer[edge["origin"]] < layer[edge["target"]] for edge in edges)
    for number in set(layer.values()):
        places = sorted(across for _, of, across in nodes if of == number)
        assert all(after - before >= 59.999 for before, after in pairwise(places))


def test_runs_of_one_program_are_a_click_apart(visit: Visitor) -> None:
    with socket.create_server(("127.0.0.1", 0)) as found:
        free_port = found.getsockname()[1]
    with served_run(seat=Address.seat("127.0.0.1", free_port)) as first:
        opened = visit()
        page = opened.to(first.url)
        expect(page.locator("#runs")).to_be_hidden()
        with served_run("dns", seat=Address.seat("127.0.0.1", free_port)) as second:
            assert second.url == f"{first.url}/runs/2/"
            page.reload()
            links = page.locator("#runs a")
            expect(links).to_have_count(2)
            expect(page.locator("#runs [aria-current]")).to_have_text(re.compile("twitter"))
            links.nth(1).click()
            expect(page.locator("#pipeline-name")).to_have_text("dns")
            expect(opened.state).to_have_text("Live")
            expect(page.locator("#runs [aria-current]")).to_have_text(re.compile("dns"))
            links.nth(0).click()
            expect(page.locator("#pipeline-name")).to_have_text("twitter")
        assert opened.complaints == []
