"""``python -m gateway.cli`` is `cq`."""

from gateway.cli.entry import main

main()
