"""The words that generated tweets are made of. Nobody and nothing in them exists."""

from __future__ import annotations

import pyarrow as pa

OPINIONS = (
    "{opener} {subject} is {intensity} {feeling}{mark} {hashtag}",
    "@{mention} I {reaction} {subject}{mark} {hashtag}",
    "@{mention} {subject} again? It was {feeling} and {feeling_too}{mark}",
    "{opener} we have waited for this for {number} days. {subject} in {place}: {feeling}{mark}",
    "I {reaction} what they did with {subject}. {opener} it is {intensity} {feeling} {hashtag}",
    "{subject} and me, part {number}: {intensity} {feeling}{mark} {hashtag} {hashtag_too}",
)
NEWS = (
    "BREAKING: {subject} {event} in {place} {link} {hashtag}",
    "{outlet} reports that {subject} {event}, {number} people are affected {link}",
    "Update on {subject}: it {event} according to officials in {place} {hashtag} {link}",
    "{place}: {subject} {event} after {number} hours, says the council {link} {hashtag}",
)

SUBJECTS = pa.array(
    [
        "the new tram line", "the night bus", "the vaccine centre", "the local hospital",
        "the budget vote", "the city council", "the football final", "the marathon",
        "the weather report", "the heat wave", "the power grid", "the broadband network",
        "the phone update", "the film week", "the book week", "the school reform",
        "the exam season", "the housing plan", "the water supply", "the farmers market",
    ]
)  # fmt: skip
HASHTAGS = pa.array(
    [
        "#transport", "#transport", "#health", "#health", "#politics", "#politics", "#sports",
        "#sports", "#weather", "#weather", "#energy", "#tech", "#tech", "#culture", "#culture",
        "#education", "#education", "#housing", "#environment", "#food",
    ]
)  # fmt: skip
"""The hashtag of the subject at the same place."""
FURTHER_HASHTAGS = pa.array(["#today", "#local", "#life", "#thread", "#monday", "#myview"])

FEELINGS = pa.array(
    [
        "wonderful", "great", "lovely", "excellent", "amazing", "a pleasure", "so helpful", "fun",
        "as usual", "what it is", "back", "the same as before", "open", "in the city", "over", "on",
        "terrible", "awful", "a disaster", "horrible", "so sad", "a mess", "annoying", "a failure",
    ]
)  # fmt: skip
"""As many good ones as neutral ones as bad ones, in this order."""
REACTIONS = pa.array(
    [
        "love", "really enjoy", "am happy about", "am so proud of", "adore", "admire",
        "heard about", "read about", "went to see", "keep looking at", "wrote about", "know",
        "hate", "can't stand", "am angry about", "am so tired of", "am worried about", "regret",
    ]
)  # fmt: skip
"""In the same order of moods."""
MARKS = pa.array([".", "!", " 🙂", "!!", "…", " 🤷", ".", "", "!", " 😡", "!!", " 😢"])
"""In the same order of moods."""
OPENERS = pa.array(
    ["Look,", "Hm,", "For me", "By the way,", "This morning", "I think", "As I said,", "Just"]
)
INTENSITIES = pa.array(["very", "really", "just", "so", "quite", "still", "once more", "simply"])

EVENTS = pa.array(
    [
        "has been delayed", "will reopen on Monday", "is under review", "has been approved",
        "draws a record crowd", "enters its second week", "has been cancelled", "starts today",
        "will cost more than planned", "is back to normal",
    ]
)  # fmt: skip
OUTLETS = pa.array(
    ["The Harbour Gazette", "Northside Daily", "Radio Hilltop", "The Evening Ledger"]
)
PLACES = pa.array(["Eastport", "Millbrook", "Northgate", "Oldtown", "Riverside", "Westhaven"])

USER_QUALITIES = pa.array(
    ["quiet", "green", "lucky", "early", "brave", "salty", "urban", "paper", "silver", "sunny"]
)
USER_NOUNS = pa.array(
    ["otter", "falcon", "teapot", "cyclist", "gardener", "walnut", "comet", "harbor", "fox", "lamp"]
)
