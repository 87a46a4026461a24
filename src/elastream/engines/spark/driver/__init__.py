"""The driver's half: starts generations of workers, publishes plans, and observes."""
