"""Where events wait between operators: one small interface, and what implements it."""
