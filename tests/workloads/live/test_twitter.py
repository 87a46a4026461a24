import numpy as np
import pyarrow as pa
import pytest

from elastream.workloads.live.twitter import news_and_opinions
from elastream.workloads.live.twitter.operators import (
    classify_users,
    load_lexicon,
    rate_sentiment,
    remove_stop_words,
    without_stop_words,
)
from elastream.workloads.live.twitter.tweets import NEWS_SHARE, make_tweets, moods, news


@pytest.fixture(scope="module")
def lexicon():
    return load_lexicon()


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("The tram is on time", "tram time"),
        ("I don't like it, but THEY do!", "don't like but"),
        ("@sunny_fox_1 look at this #transport", "@sunny_fox_1 look #transport"),
        ("is it", ""),
        ("", ""),
        ("  two  spaces ", "two spaces"),
    ],
)
def test_stop_words_go_and_what_decides_the_sentiment_stays(text, content):
    assert without_stop_words(pa.array([text])).to_pylist() == [content]


def test_stop_words_of_a_slice_of_a_chunked_batch():
    batch = pa.concat_tables([make_tweets(0, 10), make_tweets(10, 10)])
    whole = remove_stop_words(batch)["content"]
    assert remove_stop_words(batch.slice(7, 6))["content"].to_pylist() == whole[7:13].to_pylist()


@pytest.mark.parametrize(
    ("content", "mood"),
    [
        ("what a wonderful, lovely day, love it!", "positive"),
        ("horrible service, an awful disaster", "negative"),
        ("not good", "negative"),
        ("tram leaves at noon", "neutral"),
        ("", "neutral"),
    ],
)
def test_the_mood_of_clear_texts(lexicon, content, mood):
    rated = rate_sentiment(pa.table({"content": [content]}), lexicon)
    assert rated["mood"].to_pylist() == [mood]
    assert (rated["sentiment"][0].as_py() > 0) == (mood == "positive")


def test_the_moods_of_generated_opinions_are_found(lexicon):
    batch = rate_sentiment(remove_stop_words(make_tweets(0, 1000)), lexicon)
    opinions = ~news(0, 1000)
    right = np.array(batch["mood"].to_pylist()) == np.array(moods(0, 1000))
    assert right[opinions].mean() > 0.95


@pytest.mark.parametrize(
    ("followers", "verified", "tweets", "user_class"),
    [
        (10, True, 5, "public"),
        (100_000, False, 5, "public"),
        (20_000, False, 100 * 60, "automated"),
        (20_000, False, 5, "influential"),
        (10, False, 100 * 10, "active"),
        (10, False, 5, "casual"),
    ],
)
def test_classes_of_users(followers, verified, tweets, user_class):
    batch = pa.table(
        {
            "followers": [followers],
            "verified": [verified],
            "tweets": [tweets],
            "account_days": [100],
        }
    )
    assert classify_users(batch)["user_class"].to_pylist() == [user_class]


def test_one_user_has_one_profile():
    tweets = make_tweets(0, 5_000).to_pylist()
    profiles = {(t["user"], t["followers"], t["verified"], t["tweets"]) for t in tweets}
    assert len(profiles) == len({user for user, *_ in profiles}) < len(tweets)


def test_news_is_told_from_opinions():
    batch = news_and_opinions.sort_by_kind(news_and_opinions.clean(make_tweets(0, 1000)))
    found = np.array(batch["kind"].to_pylist()) == "news"
    assert (found == news(0, 1000)).mean() > 0.99
    assert found.mean() == pytest.approx(NEWS_SHARE, abs=0.05)


def test_links_and_mentions_are_no_content():
    batch = pa.table({"text": ["@a_1 Read https://t.example/1 about the tram"]})
    assert news_and_opinions.clean(batch)["content"].to_pylist() == ["Read tram"]


def test_loud_tweets_take_sides_sooner():
    batch = pa.table(
        {
            "text": ["Good.", "GOOD!!", "so so", "BAD!!"],
            "sentiment": [0.3, 0.3, 0.0, -0.3],
            "emphasis": pa.nulls(4, pa.float64()),
            "stance": pa.nulls(4, pa.string()),
        }
    )
    loud = news_and_opinions.rate_emphasis(batch)
    assert loud["emphasis"].to_pylist() == [0.0, 0.75, 0.0, 0.75]
    quiet = news_and_opinions.find_stance(batch)
    assert quiet["stance"].to_pylist() == ["undecided"] * 4
    expected = ["undecided", "for", "undecided", "against"]
    assert news_and_opinions.find_stance(loud)["stance"].to_pylist() == expected


def test_reach_goes_from_nobody_to_everybody():
    batch = pa.table({"followers": [0, 999, 10**9], "reach": pa.nulls(3, pa.float64())})
    assert news_and_opinions.estimate_reach(batch)["reach"].to_pylist() == [0.0, 0.5, 1.0]
