"""The Spark engine beside stock Structured Streaming, and its own promises."""
