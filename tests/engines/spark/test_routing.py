"""From an operator's output to lanes."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from elastream.core.lanes import assign, lanes_of_keys
from elastream.core.pipeline import Pipeline
from elastream.engines.spark.arrow_ipc import from_bytes
from elastream.engines.spark.backends.board import LanePlan
from elastream.engines.spark.backends.lanes import SHARED_LANE
from elastream.engines.spark.backends.outbox import output_of
from elastream.engines.spark.births import Births
from elastream.engines.spark.worker import routing
from elastream.engines.spark.worker.events import Events, to_table
from elastream.engines.spark.worker.named_outputs import packed
from elastream.engines.spark.worker.routing import UNIT
from elastream.errors import InvalidInputError
from support.workers import Workers

LANES = 16


def plan_of(names, active=(0, 1), owners=None):
    even = assign((-1,) * LANES, active, [1.0] * LANES)
    return LanePlan(dict.fromkeys(names, active), dict.fromkeys(names, owners or even))


def router_of(outputs=(), **edges):
    """The router of an operator with these successors, each with a pool of 4."""
    pipeline = Pipeline("test")
    pipeline.add(len, after=pipeline.source("in"), name="work")
    for name, how in edges.items():
        pipeline.add(len, after="work", name=name, pool=4, **how)
    workers = Workers(pipeline.topology(), outputs=outputs)
    router = workers.deployment.member(("work", 0), workers.backend.connect(), 1).router
    router.follow(plan_of(edges))
    return router


def emitted(router, table, born=7.0):
    divided = router.divide(Events(table, Births.evenly(table.num_rows, born)))
    parcels, sent, lost = router.emission([divided])
    assert not lost
    for parcel in parcels:
        assert parcel.births.times().tolist() == [born] * parcel.events
        assert from_bytes(parcel.data).num_rows == parcel.events
    return parcels, sent


def owner_of(parcel, plan=None):
    owners = (plan or plan_of([parcel.operator])).owners[parcel.operator]
    return owners[parcel.lane]


def test_edges_carry_all_events_those_that_match_or_a_share():
    router = router_of(
        every={}, large={"when": lambda batch: pc.greater_equal(batch["n"], 900)},
        some={"share": 0.2}, most={"share": 0.7},
    )  # fmt: skip
    _, sent = emitted(router, pa.table({"n": range(1000)}))
    assert sent["every"] == 1000
    assert sent["large"] == 100
    assert sent["some"] == pytest.approx(200, abs=2)
    assert sent["most"] == pytest.approx(700, abs=2)


def test_shares_are_of_different_events_and_go_on_from_batch_to_batch():
    router = router_of(left={"share": 0.5}, right={"share": 0.5})
    seen = {"left": [], "right": []}
    for first in range(0, 100, 3):
        parcels, _ = emitted(router, pa.table({"n": range(first, first + 3)}))
        for parcel in parcels:
            seen[parcel.operator] += from_bytes(parcel.data)["n"].to_pylist()
    assert sorted(seen["left"] + seen["right"]) == list(range(102))
    assert len(seen["left"]) == pytest.approx(51, abs=1)


def test_units_stay_together_where_no_key_parts_them():
    parcels, _ = emitted(router_of(next={}), pa.table({"n": range(3 * UNIT)}))
    assert sorted((owner_of(each), each.events) for each in parcels) == [
        (0, 2 * UNIT), (1, UNIT),
    ]  # fmt: skip
    assert all(each.lane_of is None for each in parcels)


def test_a_grouping_chooses_the_replica_and_the_lane_is_one_of_its_own():
    router = router_of(next={})
    active = (1, 3)
    plan = plan_of(["next"], active)
    router.follow(plan)
    owners = set()
    for _ in range(20):
        parcels, _ = emitted(router, pa.table({"n": [1]}))
        owners |= {owner_of(each, plan) for each in parcels}
    assert owners == set(active)


def test_a_replica_that_is_busy_is_passed_over_while_another_is_free(monkeypatch):
    router = router_of(next={})
    plan = plan_of(["next"], active=(0, 1, 3))
    router.follow(plan)
    busy = set()
    monkeypatch.setattr(router._pressure, "is_busy", busy.__contains__)

    def sent():
        (parcel,), _ = emitted(router, pa.table({"n": range(UNIT)}))
        return owner_of(parcel, plan)

    assert [sent() for _ in range(4)] == [0, 1, 3, 0]
    busy |= {("next", 1), ("next", 2), ("other", 3)}
    assert [sent() for _ in range(4)] == [3, 0, 3, 0]
    busy |= {("next", 0), ("next", 3)}
    assert [sent() for _ in range(4)] == [1, 3, 0, 1], "all are busy: each has its turn again"


def test_every_key_has_its_lane_and_one_replica_gets_one_parcel():
    words = [f"word {n}" for n in range(200)]
    router = router_of(next={"grouping": "key", "key": "word"})
    parcels, sent = emitted(router, pa.table({"n": range(200), "word": words}))
    assert sent == {"next": 200}
    assert len(parcels) == 2
    seen = []
    for parcel in parcels:
        table = from_bytes(parcel.data)
        assert parcel.lane_of.tolist() == lanes_of_keys(table["word"].to_pylist(), LANES).tolist()
        owners = np.array(plan_of(["next"]).owners["next"])[parcel.lane_of]
        assert len(set(owners.tolist())) == 1
        assert table["n"].to_pylist() == sorted(table["n"].to_pylist()), "in their order"
        seen += table["n"].to_pylist()
    assert sorted(seen) == list(range(200))


@pytest.mark.parametrize("grouping", ["key", "osg"])
@pytest.mark.parametrize("keys", [[[1, 2], [3]], [[1], None], [[1, 2], [3, 4]]])
def test_lists_as_keys_lose_no_events(grouping, keys):
    router = router_of(next={"grouping": grouping, "key": "word"})
    parcels, sent = emitted(router, pa.table({"word": keys}))
    assert sum(parcel.events for parcel in parcels) == sent["next"] == 2


def test_events_that_no_lane_was_found_for_are_not_counted_as_sent(monkeypatch):
    router = router_of(next={"grouping": "key", "key": "word"})
    monkeypatch.setattr(routing, "lanes_of_keys", lambda keys, lanes: np.zeros(1, np.intp))
    with pytest.raises(RuntimeError, match="1 of 2 events for 'next' found a lane"):
        emitted(router, pa.table({"word": ["a", "b"]}))


def lanes_by_word(router, table):
    found = {}
    for parcel in emitted(router, table)[0]:
        lane_of = parcel.lane_of if parcel.lane_of is not None else [parcel.lane] * parcel.events
        words = from_bytes(parcel.data)["word"].to_pylist()
        found |= {word: int(lane) for word, lane in zip(words, lane_of, strict=True)}
    return found


def test_a_key_keeps_its_lane_whatever_the_plan_says_and_however_it_is_encoded():
    router = router_of(next={"grouping": "key", "key": "word"})
    table = pa.table({"word": [f"word {n}" for n in range(40)]})
    before = lanes_by_word(router, table)
    router.follow(plan_of(["next"], active=(2,)))
    coded = pa.table({"word": table["word"].dictionary_encode()})
    assert lanes_by_word(router, coded) == before


def test_the_shared_lane_is_one_place():
    router = router_of(next={"grouping": "pull"})
    router.follow(LanePlan({"next": (0, 1)}, {"next": ()}))
    (parcel,), _ = emitted(router, pa.table({"n": range(UNIT)}))
    assert (parcel.lane, parcel.events) == (SHARED_LANE, UNIT)


@pytest.mark.parametrize(
    ("events", "active", "parts"),
    [(40, 8, [20, 20]), (2000, 8, [63] * 31 + [47]), (100, 1, [25] * 4)],
)
def test_a_large_emission_for_the_shared_lane_is_cut_for_all_who_take_from_it(
    events, active, parts
):
    router = router_of(next={"grouping": "pull"})
    router.follow(LanePlan({"next": tuple(range(active))}, {"next": ()}))
    parcels, sent = emitted(router, pa.table({"n": range(events)}))
    assert [parcel.events for parcel in parcels] == parts
    assert {parcel.lane for parcel in parcels} == {SHARED_LANE}
    seen = [n for parcel in parcels for n in from_bytes(parcel.data)["n"].to_pylist()]
    assert (seen, sent) == (list(range(events)), {"next": events})


def test_what_is_read_as_a_dataframe_is_put_out_besides():
    parcels, sent = emitted(router_of(outputs=["work"], next={}), pa.table({"n": range(5)}))
    assert {parcel.operator: parcel.events for parcel in parcels} == {
        "next": 5, output_of("work"): 5,
    }  # fmt: skip
    assert sent == {"next": 5}


def test_what_was_divided_apart_travels_together():
    router = router_of(next={"grouping": "key", "key": "n"})
    router.follow(plan_of(["next"], active=(0,)))
    divided = [
        router.divide(Events(pa.table({"n": [n, n + 1]}), Births.evenly(2, float(n))))
        for n in (10, 20)
    ]
    (parcel,), sent, _ = router.emission(divided)
    assert from_bytes(parcel.data)["n"].to_pylist() == [10, 11, 20, 21]
    assert parcel.births.times().tolist() == [10.0, 10.0, 20.0, 20.0]
    assert sent == {"next": 4}


def test_events_without_the_successors_key_are_refused():
    router = router_of(next={"grouping": "key", "key": "user"})
    with pytest.raises(InvalidInputError, match="'next' needs 'user', but events from 'work'"):
        router.divide(Events(pa.table({"n": [1]}), Births.evenly(1, 0.0)))


def test_no_events_are_for_nobody_whatever_edges_look_at():
    router = router_of(
        next={"grouping": "key", "key": "user"},
        large={"when": lambda batch: pc.greater_equal(batch["n"], 900)},
    )
    assert emitted(router, to_table(None)) == ((), {"next": 0, "large": 0})


def test_a_null_is_no_match():
    router = router_of(large={"when": lambda batch: pc.greater(batch["n"], 1)})
    assert emitted(router, pa.table({"n": [1, None, 2]}))[1] == {"large": 1}


def test_what_has_a_name_goes_there_alone_and_the_rest_takes_its_edges():
    router = router_of(
        outputs=("work",), alert={"when": lambda batch: pc.greater(batch["n"], 5)}, store={}
    )
    table = packed(
        [
            ("alert", pa.table({"text": ["hot"]})),
            (None, pa.table({"n": [1, 2]})),
            ("alert", pa.table({"text": ["cold"]})),
        ]
    )
    parcels, sent = emitted(router, table)
    rows = {each.operator: from_bytes(each.data).to_pylist() for each in parcels}
    assert sent == {"alert": 2, "store": 2}
    assert rows["alert"] == [{"text": "hot"}, {"text": "cold"}]
    assert rows["store"] == [{"n": 1}, {"n": 2}]
    assert sum(row["text"] is not None for row in rows[output_of("work")]) == 2
    assert len(rows[output_of("work")]) == 4


def test_a_name_that_is_no_successor_is_refused_with_those_that_are():
    table = packed([("alrt", pa.table({"n": [1]}))])
    with pytest.raises(InvalidInputError, match="events for 'alrt', but its successors are: alert"):
        emitted(router_of(alert={}), table)


def test_what_is_for_one_successor_must_go_together():
    table = packed([("alert", pa.table({"n": [1]})), (None, pa.table({"n": [[2]]}))])
    with pytest.raises(InvalidInputError, match="events for 'alert' whose columns do not match"):
        emitted(router_of(alert={}), table)


@pytest.mark.parametrize(
    ("returned", "came"),
    [(True, "bool"), ([True], "1 of bool"), ([1, 2, 3], "3 of int64")],
)
def test_a_condition_returns_a_boolean_for_every_event(returned, came):
    router = router_of(next={"when": lambda batch: returned})
    message = f"work -> next returned {came}, but must return 3 booleans"
    with pytest.raises(InvalidInputError, match=message):
        emitted(router, pa.table({"n": [1, 2, 3]}))
