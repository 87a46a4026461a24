"""DNS traffic: what it looks like, and how to find the tunnels in it."""
