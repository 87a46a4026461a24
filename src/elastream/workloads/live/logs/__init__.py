"""System logs: what their lines look like, and what can be read from them."""
