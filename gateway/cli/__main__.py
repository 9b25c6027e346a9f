"""``python -m gateway.cli`` is `cq`."""

from gateway.cli.main import main

main()
