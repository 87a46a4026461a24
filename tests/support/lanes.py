"""What changed from one assignment of lanes to the next."""


def moved(before, after):
    """The lanes that change hands."""
    return [lane for lane, owner in enumerate(before) if after[lane] != owner]
