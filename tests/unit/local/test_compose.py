"""`docker/compose.yaml` runs the same roles as `cq up`; checked without a container engine."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.local.kafka import HEAP, PROPERTIES
from gateway.local.launch import role_environment
from gateway.local.valkey import CONFIGURATION
from grouping.settings.assignment import Assignment
from grouping.settings.settings import Settings
from grouping.settings.settings_table import variables
from tests.pages import ROOT, page

ADDRESSES = {"controller.listener.names", "listener.security.protocol.map", "log.dirs"}
"""Kafka's settings that depend on its machine."""


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    """The services of the compose file."""
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text("utf-8"))
    return loaded["services"]


@pytest.mark.parametrize("role", ["gateway", "evaluator"])
def test_roles_are_told_the_same(role: str, services: dict[str, Any]) -> None:
    """Compose gives a role exactly the supervisor's settings, with its own addresses."""
    variables = dict(services[role]["environment"])
    for own in ("CQ_STATUS_FILE", "CQ_METRICS_ADDRESS", "CQ_METRICS_PORT", "CQ_METRICS_EVALUATOR_PORT"):
        variables.pop(own)
    assert variables.pop("CQ_EVALUATOR_STREAMS") is None, "as whoever starts it has it"
    assert role_environment("kafka:19092", "redis://valkey:6379/0", "/var/lib/cq") == variables
    assert [role] == services[role]["command"]


def test_the_settings_are_known(services: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The names in the compose file are names of settings, not misspelled ones that nobody reads."""
    for name, value in services["gateway"]["environment"].items():
        assert name in {*variables(), "CQ_STATUS_FILE"}
        if value is not None:
            monkeypatch.setenv(name, value)
    settings = Settings()
    assert ("kafka:19092", Path("/var/lib/cq")) == (settings.kafka.bootstrap, settings.data)
    assert settings.redis.url.get_secret_value() == "redis://valkey:6379/0"


def test_a_further_evaluator_is_like_the_first(services: dict[str, Any]) -> None:
    """Except its profile, its checkpoints, and its name, to which the setting on the page assigns streams."""
    first, further = services["evaluator"], dict(services["evaluator-fast"])
    [(variable, name)] = further["environment"].items() - first["environment"].items()
    assert ("CQ_EVALUATOR_NAME", ["evaluators"]) == (variable, further.pop("profiles"))
    assert not {*first["volumes"]} & {*further["volumes"]}
    assert first == further | {each: first[each] for each in ("environment", "volumes")}
    [streams] = re.findall(
        r"CQ_EVALUATOR_STREAMS='(.*)' \\\n +docker compose .*--profile evaluators", page("deployment.md")
    )
    evaluator = {"name": name, "streams": json.loads(streams)}
    assert ("", name) == Assignment.of(Settings.model_validate({"evaluator": evaluator})).names


def test_each_role_is_scraped(services: dict[str, Any]) -> None:
    """At the port of its settings; a service added by a profile is looked for by its name."""
    loaded = yaml.safe_load((ROOT / "docker" / "monitoring" / "prometheus.yml").read_text("utf-8"))
    found = {}
    for job in loaded["scrape_configs"]:
        found |= {target: job["job_name"] for each in job["static_configs"] for target in each["targets"]}
        for looked in job.get("dns_sd_configs", ()):
            found |= {f"{name}:{looked['port']}": job["job_name"] for name in looked["names"]}
    ports = {"gateway": "CQ_METRICS_PORT", "evaluator": "CQ_METRICS_EVALUATOR_PORT"}
    roles = {name: each["command"][0] for name, each in services.items() if "build" in each}
    assert found == {
        f"{name}:{services[name]['environment'][ports[role]]}": f"cq-{role}" for name, role in roles.items()
    }


def test_grafana_finds_the_dashboard_and_prometheus(services: dict[str, Any]) -> None:
    """Compose mounts the paths named in Grafana's files, and each panel uses the data source that they define."""
    monitoring = ROOT / "docker" / "monitoring"
    mounted = dict(volume.split(":")[:2] for volume in services["grafana"]["volumes"])
    own = {target: (ROOT / "docker" / source) for source, target in mounted.items()}
    provisioning = own["/etc/grafana/provisioning"]
    [provider] = yaml.safe_load((provisioning / "dashboards" / "cq.yaml").read_text("utf-8"))["providers"]
    assert own[provider["options"]["path"]].samefile(monitoring / "dashboards")
    [source] = yaml.safe_load((provisioning / "datasources" / "prometheus.yaml").read_text("utf-8"))["datasources"]
    host, port = source["url"].removeprefix("http://").split(":")
    assert port == services[host]["ports"][0].rpartition(":")[2]
    panels = json.loads((monitoring / "dashboards" / "cq.json").read_text("utf-8"))["panels"]
    assert {(source["type"], source["uid"])} == {tuple(panel["datasource"].values()) for panel in panels}


def test_kafka_is_configured_the_same(services: dict[str, Any]) -> None:
    """Every property of the embedded broker, addresses aside, is that of the container's."""
    environment = services["kafka"]["environment"]
    expected = {
        f"KAFKA_{name.replace('.', '_').upper()}": PROPERTIES[name] for name in PROPERTIES if name not in ADDRESSES
    }
    assert expected == {name: environment.get(name) for name in expected}
    assert f"-Xms{HEAP} -Xmx{HEAP}" == environment["KAFKA_HEAP_OPTS"]


def test_valkey_is_configured_the_same(services: dict[str, Any]) -> None:
    """Every line of the embedded server's file, addresses aside, is an argument of the container's."""
    lines = (line.split(maxsplit=1) for line in CONFIGURATION.splitlines() if not line.startswith("#"))
    expected = {f"--{name}": value.strip('"') for name, value in lines if name not in {"bind", "dir"}}
    arguments = services["valkey"]["command"][1:]
    assert expected == dict(zip(arguments[::2], arguments[1::2], strict=True))


def test_images_are_pinned(services: dict[str, Any]) -> None:
    """Every image that is not built here has a full version."""
    images = {name: service["image"] for name, service in services.items() if "build" not in service}
    base = re.search(r"^FROM (\S+)", (ROOT / "docker" / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    assert base is not None
    for image in [*images.values(), base[1]]:
        assert re.search(r":v?\d+\.\d+\.\d+", image), image


def test_nobody_is_root(services: dict[str, Any]) -> None:
    """No service runs as root, and each can tell whether it is well."""
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text("utf-8")
    assert dockerfile.rindex("USER cq") > dockerfile.rindex("RUN ")
    for name, service in services.items():
        assert "build" in service or service["user"].split(":")[0] not in {"root", "0"}, name
        assert service["healthcheck"]["test"], name


def test_the_image_has_the_locked_versions() -> None:
    """The image installs a subset of the tested packages, byte by byte."""
    whole = _locked(ROOT / "requirements.lock")
    image = _locked(ROOT / "docker" / "requirements.lock")
    assert image == {name: whole[name] for name in image}
    assert "pyspark" in image


def _locked(path: Path) -> dict[str, str]:
    """Return the requirement and its hashes, by the package's name."""
    # Where a package is needed depends on the others that are installed: the marker is none of its version.
    text = re.sub(r" ; [^\\\n]+(?= \\)", "", path.read_text("utf-8").strip())
    entries = re.split(r"\n(?=\S)", text)
    return {entry.partition("==")[0]: entry for entry in entries}


def test_the_image_has_the_command_and_its_metadata() -> None:
    """The sources of the distribution are copied before its installation, and a container runs `cq`."""
    lines = (ROOT / "docker" / "Dockerfile").read_text("utf-8").splitlines()
    installed = next(number for number, line in enumerate(lines) if "--no-deps --editable ." in line)
    copied = {name for line in lines[:installed] if line.startswith("COPY ") for name in line.split()[1:-1]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    packages = {each.rstrip("*") for each in project["tool"]["setuptools"]["packages"]["find"]["include"]}
    about = {"pyproject.toml", project["project"]["readme"], *project["project"]["license-files"]}
    assert packages | about <= copied
    assert project["project"]["scripts"].keys() == {"cq"}
    assert 'ENTRYPOINT ["cq"]' in lines


def test_the_runbook_looks_from_within() -> None:
    """An operator with a shell on the cluster alone finds the three commands at the top of the runbook."""
    top = page("runbook.md").partition("\n## ")[0]
    assert {"status", "top", "doctor"} <= {*re.findall(r"exec .*\bcq (\w+)", top)}
    assert {"docker", "kubectl"} <= {*re.findall(r"^(\w+) ", top, re.MULTILINE)}
