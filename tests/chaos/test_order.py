"""Whatever is killed, paused or replaced: every event comes out once, and keys keep their order."""

import pytest
from tests.chaos.schedule import Chaos, out_of_order


@pytest.mark.parametrize("seed", [1, 2])
def test_keys_keep_their_order_while_everything_changes(tmp_path, seed):
    chaos = Chaos(tmp_path / "state", seed)
    ids = chaos.run()
    assert sorted(ids) == list(range(chaos.events)), chaos.log
    assert out_of_order(ids) == {}, chaos.log


def test_without_a_key_every_event_comes_out_once(tmp_path):
    chaos = Chaos(tmp_path / "state", seed=3, grouping="shuffle", seconds=4, faults=5)
    assert sorted(chaos.run()) == list(range(chaos.events)), chaos.log


def test_keys_keep_their_order_through_a_chain(tmp_path):
    chaos = Chaos(tmp_path / "state", seed=4, seconds=4, faults=6, chain=True)
    ids = chaos.run()
    assert sorted(ids) == list(range(chaos.events)), chaos.log
    assert out_of_order(ids) == {}, chaos.log
