"""`python -m earned` is `earned`."""

from earned.cli.main import main

main()
