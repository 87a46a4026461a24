"""Other engines with the same four functions, each in an environment of its own."""
