"""Writes `state_v3.sql`: a state as elastream left it when its tables had version 3.

    git checkout 368f14e
    python -m tests.engines.spark.backends.make_state_v3

It keeps what `make_state_v2` has put into it, and needs the package of its time, as that does.
"""

from tests.engines.spark.backends.make_state_v2 import main

if __name__ == "__main__":
    main(3)
