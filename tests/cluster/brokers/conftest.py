"""The cluster shared by these tests; each leaves it whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.brokers.brokers import Brokers, three_brokers


@pytest.fixture(scope="package")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """Three brokers."""
    with three_brokers(tmp_path_factory.mktemp("brokers")) as brokers:
        yield brokers
