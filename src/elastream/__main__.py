"""`python -m elastream` is the command line."""

from elastream.cli import main

main()
