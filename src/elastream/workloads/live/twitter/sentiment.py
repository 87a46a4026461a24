"""How a tweet feels, by VADER: a lexicon and rules for the language of social media.

C. J. Hutto and E. Gilbert, "VADER: A parsimonious rule-based model for sentiment analysis of
social media text", ICWSM 2014.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elastream.errors import MissingExtraError

try:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer
except ImportError:
    raise MissingExtraError("the sentiment of tweets", "applications") from None

CLEAR = 0.05
"""From where on a score is not neutral: the threshold that VADER's authors give."""


def load_lexicon() -> Any:
    """Read the lexicon, once per replica."""
    return SentimentIntensityAnalyzer()


def rate_sentiment(batch: pa.Table, lexicon: Any) -> pa.Table:
    """Add `sentiment`, in [-1, 1], and `mood`: positive, neutral or negative."""
    scores = scores_of(batch, lexicon)
    return batch.append_column("sentiment", pa.array(scores)).append_column(
        "mood", moods_of(scores)
    )


def scores_of(batch: pa.Table, lexicon: Any) -> NDArray[np.float64]:
    """The score of every `content`."""
    texts = batch["content"].to_pylist()
    scores = (lexicon.polarity_scores(text)["compound"] for text in texts)
    return np.fromiter(scores, np.float64, len(texts))


def moods_of(scores: NDArray[np.float64]) -> pa.Array:
    """What the scores stand for."""
    clear = pc.make_struct(pa.array(scores >= CLEAR), pa.array(scores <= -CLEAR))
    return pc.case_when(clear, "positive", "negative", "neutral")
