"""Tweets, made from their numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elastream.workloads.live.generation import Draws, Phrases, in_blocks, numbered, texts_of
from elastream.workloads.live.twitter import vocabulary as words

USERS = 50_000
NEWS_SHARE = 0.2
MOODS = ("positive", "neutral", "negative")
_MOOD_WEIGHTS = (0.4, 0.3, 0.3)
_PHRASES = Phrases(words.OPINIONS + words.NEWS)


@in_blocks
def make_tweets(first: int, count: int) -> pa.Table:
    """The tweets with the numbers first .. first + count - 1."""
    draws = numbered(first, count)
    # A few users write most of the tweets, as everywhere.
    users = (USERS * draws.uniform("user") ** 3).astype(np.uint64)
    return pa.table(
        {
            "id": pa.array(draws.numbers.astype(np.int64)),
            **_profiles(users),
            "text": _texts(draws),
        }
    )


def news(first: int, count: int) -> NDArray[np.bool_]:
    """Which of these tweets are news; the others are opinions."""
    return _is_news(numbered(first, count))


def moods(first: int, count: int) -> list[str]:
    """What the writers of these tweets feel; those of news feel nothing in particular."""
    draws = numbered(first, count)
    return [MOODS[mood] for mood in np.where(_is_news(draws), 1, _mood(draws)).tolist()]


def _is_news(draws: Draws) -> NDArray[np.bool_]:
    return draws.uniform("kind") < NEWS_SHARE


def _mood(draws: Draws) -> NDArray[np.int64]:
    return draws.weighted("mood", _MOOD_WEIGHTS)


def _profiles(users: NDArray[np.uint64]) -> dict[str, pa.Array]:
    draws = Draws(users)
    followers = 10 ** (6 * draws.uniform("followers") ** 1.7)
    days = 30 + draws.below("days", 4_000)
    a_day = 10 ** (2.4 * draws.uniform("a day") ** 2 - 0.5)
    known = draws.uniform("verified") < np.where(followers > 50_000, 0.6, 0.01)
    return {
        "user": _user_names(users),
        "followers": pa.array(followers.astype(np.int64)),
        "verified": pa.array(known),
        "tweets": pa.array((days * a_day).astype(np.int64)),
        "account_days": pa.array(days),
    }


def _user_names(users: NDArray[np.uint64]) -> pa.Array:
    draws = Draws(users)
    return pc.binary_join_element_wise(
        draws.one_of("quality", words.USER_QUALITIES),
        draws.one_of("noun", words.USER_NOUNS),
        texts_of(users.astype(np.int64)),
        "_",
    )


def _texts(draws: Draws) -> pa.Array:
    templates = np.where(
        _is_news(draws),
        len(words.OPINIONS) + draws.below("news", len(words.NEWS)),
        draws.below("opinion", len(words.OPINIONS)),
    )
    mood = _mood(draws)
    subjects = pa.array(draws.below("subject", len(words.SUBJECTS)))
    links = draws.below("link", 36**5)
    fields = {
        "subject": words.SUBJECTS.take(subjects),
        "hashtag": words.HASHTAGS.take(subjects),
        "hashtag_too": draws.one_of("hashtag too", words.FURTHER_HASHTAGS),
        "feeling": _of_mood(draws, "feeling", words.FEELINGS, mood),
        "feeling_too": _of_mood(draws, "feeling too", words.FEELINGS, mood),
        "reaction": _of_mood(draws, "reaction", words.REACTIONS, mood),
        "mark": _of_mood(draws, "mark", words.MARKS, mood),
        "opener": draws.one_of("opener", words.OPENERS),
        "intensity": draws.one_of("intensity", words.INTENSITIES),
        "event": draws.one_of("event", words.EVENTS),
        "outlet": draws.one_of("outlet", words.OUTLETS),
        "place": draws.one_of("place", words.PLACES),
        "mention": _user_names(draws.below("mention", USERS).astype(np.uint64)),
        "number": texts_of(2 + draws.below("number", 400)),
        "link": pc.binary_join_element_wise("https://t.example/", texts_of(links), ""),
    }
    return _PHRASES.fill(templates, fields)


def _of_mood(draws: Draws, aspect: str, texts: pa.Array, mood: NDArray[np.int64]) -> pa.Array:
    """One of the texts that belong to the mood; `texts` has equally many for each, in order."""
    each = len(texts) // len(MOODS)
    return texts.take(pa.array(mood * each + draws.below(aspect, each)))
