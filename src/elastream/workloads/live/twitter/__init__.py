"""Tweets: what they look like, and what the operators of the two applications do to them."""
