"""The applications with functions that do their work, and with events to work on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, Unpack

from elastream.workloads import applications
from elastream.workloads.applications import Application, Step
from elastream.workloads.live.dns.operators import add_features, classify_queries, parse_queries
from elastream.workloads.live.dns.traffic import make_queries
from elastream.workloads.live.generation import Generator
from elastream.workloads.live.logs.lines import make_lines
from elastream.workloads.live.logs.operators import find_templates, parse_lines, rate_severity
from elastream.workloads.live.tables import LINES, NEWS_AND_OPINIONS, QUERIES, TWEETS, stored_in
from elastream.workloads.live.twitter import news_and_opinions
from elastream.workloads.live.twitter.operators import (
    classify_users,
    load_lexicon,
    rate_sentiment,
    remove_stop_words,
)
from elastream.workloads.live.twitter.tweets import make_tweets
from elastream.workloads.service_time import with_service_time


class Size(TypedDict, total=False):
    """What the applications' own factories take besides functions."""

    execution_time: float
    pool: int


@dataclass(frozen=True, slots=True)
class LiveApplication(Application):
    """An application whose operators do their work, and where its events come from."""

    generators: Mapping[str, Generator]
    """The events of each source, by the source's name."""


def twitter(store: str | Path, service_ms: float = 0.0, **size: Unpack[Size]) -> LiveApplication:
    """Tweets: without stop words, with their sentiment and their writer's class, stored."""
    steps = _slowed(_tweet_steps(store), service_ms)
    plain = applications.twitter(functions=steps, **size)
    return LiveApplication(plain.topology, plain.behaviour, {"tweets": make_tweets})


def twitter_complex(
    store: str | Path, service_ms: float = 0.0, **size: Unpack[Size]
) -> LiveApplication:
    """News and opinions: where they come from, how they feel, which side they take, stored."""
    steps = {
        "A": Step(news_and_opinions.clean),
        "B": Step(news_and_opinions.sort_by_kind),
        "C": Step(news_and_opinions.classify_source),
        "D": Step(news_and_opinions.estimate_reach),
        "E": stored_in(store, "news_and_opinions", NEWS_AND_OPINIONS),
        "F": Step(news_and_opinions.rate_opinion, setup=load_lexicon),
        "G": Step(news_and_opinions.find_stance),
        "H": Step(news_and_opinions.rate_emphasis),
    }
    plain = applications.twitter_complex(functions=_slowed(steps, service_ms), **size)
    return LiveApplication(plain.topology, plain.behaviour, {"tweets": make_tweets})


def twitter_unequal(
    store: str | Path, service_ms: float = 0.0, **size: Unpack[Size]
) -> LiveApplication:
    """The same tweets with operators of unequal cost; `service_ms` is what the costliest waits."""
    shares = zip(_tweet_steps(store).items(), applications.UNEQUAL, strict=True)
    steps = {name: with_service_time(step, part * service_ms) for (name, step), part in shares}
    plain = applications.twitter_unequal(functions=steps, **size)
    return LiveApplication(plain.topology, plain.behaviour, {"tweets": make_tweets})


def diamond(store: str | Path, service_ms: float = 0.0, **size: Unpack[Size]) -> LiveApplication:
    """Tweets of which one half is looked at for who says it, the other for how it feels; stored."""
    steps = {
        "split": Step(news_and_opinions.prepare),
        "left": Step(news_and_opinions.classify_source),
        "right": Step(news_and_opinions.rate_opinion, setup=load_lexicon),
        "join": stored_in(store, "news_and_opinions", NEWS_AND_OPINIONS),
    }
    plain = applications.diamond(functions=_slowed(steps, service_ms), **size)
    return LiveApplication(plain.topology, plain.behaviour, {"events": make_tweets})


def star(store: str | Path, service_ms: float = 0.0, **size: Unpack[Size]) -> LiveApplication:
    """Tweets from two entrances, rated in the middle; stored, and asked which side they take."""
    steps = {
        "in-1": Step(news_and_opinions.prepare),
        "in-2": Step(news_and_opinions.prepare),
        "hub": Step(news_and_opinions.rate_opinion, setup=load_lexicon),
        "out-1": stored_in(store, "news_and_opinions", NEWS_AND_OPINIONS),
        "out-2": Step(news_and_opinions.find_stance),
    }
    plain = applications.star(functions=_slowed(steps, service_ms), **size)
    return LiveApplication(plain.topology, plain.behaviour, {"events": make_tweets})


def dns(store: str | Path, service_ms: float = 0.0, **size: Unpack[Size]) -> LiveApplication:
    """DNS queries: parsed, measured, told apart from tunnels, stored."""
    steps = {
        "parse": Step(parse_queries),
        "features": Step(add_features),
        "classify": Step(classify_queries),
        "store": stored_in(store, "dns_queries", QUERIES),
    }
    plain = applications.dns(functions=_slowed(steps, service_ms), **size)
    return LiveApplication(plain.topology, plain.behaviour, {"packets": make_queries})


def logs(store: str | Path, service_ms: float = 0.0, **size: Unpack[Size]) -> LiveApplication:
    """Log lines: parsed, reduced to templates, rated, stored."""
    steps = {
        "parse": Step(parse_lines),
        "template": Step(find_templates),
        "severity": Step(rate_severity),
        "store": stored_in(store, "log_lines", LINES),
    }
    plain = applications.logs(functions=_slowed(steps, service_ms), **size)
    return LiveApplication(plain.topology, plain.behaviour, {"lines": make_lines})


def _tweet_steps(store: str | Path) -> dict[str, Step]:
    return {
        "stop-words": Step(remove_stop_words),
        "sentiment": Step(rate_sentiment, setup=load_lexicon),
        "user-class": Step(classify_users),
        "store": stored_in(store, "tweets", TWEETS),
    }


def _slowed(steps: Mapping[str, Step], service_ms: float) -> dict[str, Step]:
    return {name: with_service_time(step, service_ms) for name, step in steps.items()}
