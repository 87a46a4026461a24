"""The workers' half: what runs inside long-lived Spark tasks."""
