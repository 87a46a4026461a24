"""What a pipeline has to work on: recorded input rates."""
