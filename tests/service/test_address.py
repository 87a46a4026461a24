"""Several runs at one address."""

import json
import socket
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from elastream.service.address import Address
from support.stepped import Stepped


@pytest.fixture
def port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def asked(url):
    with urlopen(url, timeout=10) as answer:
        return json.load(answer)


def serving(seat, name="shop"):
    stepped = Stepped()
    return seat.serving(name, stepped.loop.health, stepped.app, stepped.live.feed.close)


def test_each_run_answers_under_its_own_path_and_the_oldest_under_none(port):
    first, second = (Address.seat("127.0.0.1", port) for _ in range(2))
    assert second.url == f"{first.url}/runs/2/"
    with serving(second, "other"):
        with serving(first):
            listed = second.address.listed()
            assert [(run["number"], run["name"]) for run in listed] == [(2, "other"), (1, "shop")]
            assert asked(f"{second.url}api/pipeline")["name"] == "shop"
            assert asked(f"{first.url}/runs/1/api/runs")[0]["number"] == 1
            assert asked(f"{first.url}/api/pipeline")["operators"]
            with urlopen(f"{first.url}/runs/2", timeout=10) as page:
                assert page.url == second.url
        # The first one is over: the address is the second one's.
        with pytest.raises(HTTPError, match="404"):
            asked(f"{second.address.url}/runs/1/api/pipeline")
        assert asked(f"{second.address.url}/api/pipeline")["operators"]


def test_the_last_one_that_leaves_closes_the_address(port):
    first, second = (Address.seat("127.0.0.1", port) for _ in range(2))
    with serving(first):
        pass
    second.leave()
    second.leave()
    socket.create_server(("127.0.0.1", port)).close()
    with serving(Address.seat("127.0.0.1", port)):
        assert asked(f"http://127.0.0.1:{port}/api/pipeline")["operators"]


def test_any_free_port_is_always_an_address_of_its_own():
    first, second = (Address.seat("127.0.0.1", 0) for _ in range(2))
    assert first.address is not second.address
    first.leave()
    second.leave()
