"""A real Kafka broker for tests and benchmarks."""
