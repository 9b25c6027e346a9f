"""The cost of security and monitoring: events per second with TLS, logins and metrics being read, and without.

All sides do the work of `executors`, from and to one broker, by its plain listener or by the listener with TLS, client
certificates and SCRAM; constant tables come from Redis behind TLS and ACL. On the guarded sides, in one process and on
two executors, the metrics are read every second. Tokens guard commands, of which there are none here.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from pydantic import SecretStr

from gateway.local.jars import SPARK, ensure_jars
from grouping.settings.settings import Settings
from tests.benchmarks.rates.executors import median_rates, on_cluster, prepare
from tests.benchmarks.report import Report
from tests.cluster.guarded.servers import PASSWORDS, GuardedServers, guarded_servers
from tests.cluster.standalone.cluster import standalone
from tests.ground import Ground

__all__ = ["add_options", "main"]

_OPEN, _GUARDED, _SPREAD = "in plain text, local[2]", "guarded, local[2]", "guarded, two executors"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the sizes."""
    parser.add_argument("--guarded-events", type=int, default=1_000_000, help="events of one run")
    parser.add_argument("--guarded-rounds", type=int, default=3, help="applications of each side")


def main(options: argparse.Namespace, folder: Path) -> None:
    """Measure and report."""
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        for part in ("servers", "cluster", "data"):
            (base / part).mkdir()
        with guarded_servers(base / "servers", "~* &* +@all") as servers, standalone(base / "cluster") as cluster:
            servers.allow(
                [("cq", "topic", "*", "all"), ("cq", "group", "*", "all"), ("cq", "transactional_id", "*", "all")]
            )
            plain, guarded = (
                _settings(servers, base / "data", inner=True),
                _settings(servers, base / "data", inner=False),
            )
            prepare(Ground(plain), options.guarded_events)
            sides = {_OPEN: plain, _GUARDED: guarded, _SPREAD: on_cluster(guarded, cluster.master)}
            rates = median_rates(sides, options.guarded_events, options.guarded_rounds, (_GUARDED, _SPREAD))
    report = Report(options.command)
    for side, rate in rates.items():
        report.add(side, rate, "events/s")
    report.add(f"{_GUARDED} ÷ {_OPEN}", rates[_GUARDED] / rates[_OPEN])
    report.add(f"{_SPREAD} ÷ {_OPEN}", rates[_SPREAD] / rates[_OPEN], "", "0.8")
    report.write(folder)


def _settings(servers: GuardedServers, data: Path, *, inner: bool) -> Settings:
    base = Settings(data=data)
    files = {
        "ca_file": servers.certificates / "ca.pem",
        "certificate_file": servers.certificates / "client.pem",
        "key_file": servers.certificates / "client.key",
    }
    login = {"username": "cq", "password": SecretStr(PASSWORDS["cq"])}
    kafka: dict[str, object] = {"bootstrap": servers.inner}
    if not inner:
        kafka = {"bootstrap": servers.bootstrap, "security": "SASL_SSL", "mechanism": "SCRAM-SHA-256", **files, **login}
    jars = str(ensure_jars(SPARK, base.jars))
    return base.model_copy(
        update={
            "kafka": base.kafka.model_copy(update=kafka),
            "redis": base.redis.model_copy(update={"url": SecretStr(servers.redis_url), **files, **login}),
            "evaluator": base.evaluator.model_copy(update={"jars": jars}),
        }
    )
