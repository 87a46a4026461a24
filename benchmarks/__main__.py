"""`make bench`: every benchmark, one after the other; fails when a target is missed."""

from benchmarks import planning, routing

ALL = (planning, routing)

if __name__ == "__main__":
    results = [benchmark.main() for benchmark in ALL]
    raise SystemExit(not all(results))
