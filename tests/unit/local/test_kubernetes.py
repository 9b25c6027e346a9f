"""`docker/kubernetes`: objects consistent with each other, the image and the settings; checked without a cluster."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from grouping.settings.assignment import Assignment
from grouping.settings.settings import Settings
from grouping.settings.settings_table import variables
from spark_jobs.runtime.application.spark_options import spark_options
from tests.pages import ROOT, page

_NAMES = ("kubernetes", "kubernetes-cluster", "kubernetes-evaluators")
_FOLDER, _CLUSTER, _EVALUATORS = (ROOT / "docker" / name for name in _NAMES)
_KUBECTL = shutil.which("kubectl")
_PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
_USER = 10001


def _objects(name: str = "*.yaml", folders: Sequence[Path] = (_FOLDER, _CLUSTER, _EVALUATORS)) -> list[dict[str, Any]]:
    """Return the objects of some files, patches of other objects left out."""
    files = [path for folder in folders for path in sorted(folder.glob(name)) if path.name != "kustomization.yaml"]
    loaded = [each for path in files for each in yaml.safe_load_all(path.read_text("utf-8"))]
    return [each for each in loaded if each["kind"] != "StatefulSet" or "selector" in each["spec"]]


def _pods() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each kind of pod with the name of its object."""
    for each in _objects():
        if "template" in each.get("spec", {}):
            yield each["metadata"]["name"], each["spec"]["template"]


def _settings() -> dict[str, str]:
    [found] = [each["data"] for each in _objects() if each["kind"] == "ConfigMap"]
    return dict(found)


def _patch() -> dict[str, Any]:
    """Return the evaluator's container as the folder `cluster` changes it."""
    loaded = yaml.safe_load((_CLUSTER / "evaluator.yaml").read_text("utf-8"))
    [container] = loaded["spec"]["template"]["spec"]["containers"]
    return dict(container)


def _environment(container: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container.get("env", ()) if "value" in each}


def _name(each: dict[str, Any]) -> tuple[str, str]:
    return each["kind"], each["metadata"]["name"]


def test_each_file_is_part_of_the_whole() -> None:
    """Every file is a resource or a patch of its folder's kustomization, and every one of these is there."""
    for folder in (_FOLDER, _CLUSTER, _EVALUATORS):
        whole = yaml.safe_load((folder / "kustomization.yaml").read_text("utf-8"))
        named = {*whole["resources"], *(patch["path"] for patch in whole.get("patches", ()) if "path" in patch)} - {
            "../kubernetes"
        }
        assert named == {path.name for path in folder.glob("*.yaml")} - {"kustomization.yaml"}


@pytest.mark.skipif(_KUBECTL is None, reason="kubectl is not installed")
@pytest.mark.parametrize("folder", [*_NAMES, "of the page"])
def test_kubectl_reads_the_whole(tmp_path: Path, folder: str) -> None:
    """Folders, and the overlay that the page begins with, are put together as the files say, without a cluster."""
    place = ROOT / "docker" / folder
    if folder == "of the page":
        [text] = re.findall(r"```yaml\n( *# kustomization.yaml\n.*?)```", page("deployment.md"), re.S)
        own = textwrap.dedent(text).replace("../cq-gateway/docker/kubernetes", os.path.relpath(_FOLDER, tmp_path))
        (tmp_path / "kustomization.yaml").write_text(own)
        place = tmp_path
    made = list(yaml.safe_load_all(_kubectl("kustomize", str(place))))
    expected = _objects(folders=(_FOLDER,) if folder == "of the page" else sorted({_FOLDER, place}))
    assert set(map(_name, expected)) == set(map(_name, made))
    [evaluator] = [each for each in made if _name(each) == ("StatefulSet", "cq-evaluator")]
    [container] = evaluator["spec"]["template"]["spec"]["containers"]
    assert ("spark://" in _environment(container)["CQ_EVALUATOR_MASTER"]) == (folder == "kubernetes-cluster")
    assert container["image"].startswith("YOUR-REGISTRY/" if folder == "of the page" else "cq-gateway")


@pytest.mark.skipif(_KUBECTL is None, reason="kubectl is not installed")
@pytest.mark.parametrize("name", [name for name, _ in _pods()])
def test_kubectl_knows_each_field_of_a_pod(name: str) -> None:
    """Read into Kubernetes' own types, and written again, nothing is missing: a field of another name would be."""
    [own] = [each for each in _objects() if each["metadata"]["name"] == name and "template" in each.get("spec", {})]
    made = json.loads(_kubectl("set", "env", "--local", "-f", "-", "X=1", "-o", "json", given=json.dumps(own)))
    _assert_within(own, made, name)


def _kubectl(*arguments: str, given: str = "") -> str:
    """Return the output of kubectl, for commands that need no cluster."""
    assert _KUBECTL is not None
    ran = subprocess.run([_KUBECTL, *arguments], input=given, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def _assert_within(part: Any, whole: Any, where: str) -> None:
    """Check that a value is contained in another: objects may have more fields there, and lists more items behind."""
    if isinstance(part, dict):
        for name, value in part.items():
            assert name in whole, f"{where}.{name}"
            _assert_within(value, whole[name], f"{where}.{name}")
    elif isinstance(part, list):
        assert len(part) <= len(whole), where
        for number, value in enumerate(part):
            _assert_within(value, whole[number], f"{where}[{number}]")
    else:
        assert part == whole, where


def test_the_settings_are_known() -> None:
    """Names are names of settings, and secrets are files."""
    known = set(variables())
    given = {**_settings(), **_environment(_patch())}
    for _, pod in _pods():
        for container in pod["spec"]["containers"]:
            given |= _environment(container)
    assert len(given) > 15
    for name, value in given.items():
        assert name in known, name
        assert name.endswith("_FILE") or not re.search("PASSWORD|SIGNING_KEY", name), name
        assert "@" not in value, name


def test_what_the_settings_name_is_mounted() -> None:
    """Each path lies in a volume of every pod that reads the settings."""
    paths = [value for value in _settings().values() if value.startswith("/")]
    assert paths
    for name, pod in _pods():
        for container in pod["spec"]["containers"]:
            if "envFrom" in container:
                mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
                assert all(any(f"{path}/".startswith(f"{mount}/") for mount in mounts) for path in paths), name


@pytest.mark.parametrize(("name", "pod"), list(_pods()))
def test_a_pod_is_bounded_and_watched(name: str, pod: dict[str, Any]) -> None:
    """A pod runs as the image's user with no rights, has resource limits, and has probes."""
    spec = pod["spec"]
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text("utf-8")
    assert f"--uid {_USER}" in dockerfile
    assert (True, _USER) == (spec["securityContext"]["runAsNonRoot"], spec["securityContext"]["runAsUser"])
    assert spec["automountServiceAccountToken"] is False
    volumes = {volume["name"] for volume in spec["volumes"]} | {"data"}
    for container in spec["containers"]:
        assert {"cpu", "memory"} == container["resources"]["requests"].keys()
        assert "memory" in container["resources"]["limits"]
        own = container["securityContext"]
        assert (False, True, ["ALL"]) == (
            own["allowPrivilegeEscalation"], own["readOnlyRootFilesystem"], own["capabilities"]["drop"],
        )  # fmt: skip
        ports = {port["name"] for port in container["ports"]}
        for probe in _PROBES:
            [asked] = [container[probe][kind] for kind in ("httpGet", "tcpSocket") if kind in container[probe]]
            assert asked["port"] in ports, name
            assert asked.get("path", "/healthz") in ("/healthz", "/readyz", "/readyz?standby")
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
        assert "/tmp" in {mount["mountPath"] for mount in container["volumeMounts"]}


def test_a_standby_counts_as_ready() -> None:
    """The probe is not `/readyz`: a rollout with `/readyz` would wait for ever, as one of two always waits.

    With a weaker probe the active role would be stopped while the other still starts.
    """
    assert _settings()["CQ_STANDBY"] == "true"
    probes = [
        pod["spec"]["containers"][0]["readinessProbe"]
        for name, pod in _pods()
        if name in ("cq-gateway", "cq-evaluator")
    ]
    assert ["/readyz?standby"] * 2 == [probe["httpGet"]["path"] for probe in probes]


def test_a_further_evaluator_is_like_the_first() -> None:
    """Except its name, to which the settings of the overlay assign streams."""
    first, further = (
        next(pod for each, pod in _pods() if each == name) for name in ("cq-evaluator", "cq-evaluator-fast")
    )
    name = _environment(further["spec"]["containers"][0])["CQ_EVALUATOR_NAME"]
    further["spec"]["containers"][0]["env"].remove({"name": "CQ_EVALUATOR_NAME", "value": name})
    assert first["spec"] == json.loads(json.dumps(further["spec"]).replace("cq-evaluator-fast", "cq-evaluator"))
    [patch] = yaml.safe_load((_EVALUATORS / "kustomization.yaml").read_text("utf-8"))["patches"]
    [added] = yaml.safe_load(patch["patch"])
    variable = added["path"].rpartition("/")[2]
    assert "CQ_EVALUATOR_STREAMS" == variable and variable in variables()
    evaluator = {"name": name, "streams": json.loads(added["value"])}
    assert ("", name) == Assignment.of(Settings.model_validate({"evaluator": evaluator})).names


def test_spark_is_guarded() -> None:
    """Master and workers read the secret from a file of Spark's, the driver from a file of ours; all mount the file."""
    file = _environment(_patch())["CQ_EVALUATOR_SPARK_SECRET_FILE"]
    assert file.startswith("/run/secrets/cq/")
    for name in ("cq-spark-master", "cq-spark-worker"):
        [pod] = [pod for each, pod in _pods() if each == name]
        [container] = pod["spec"]["containers"]
        named = container["args"][container["args"].index("--properties-file") + 1]
        [mount] = [mount for mount in container["volumeMounts"] if mount["name"] == "secrets"]
        [volume] = [volume for volume in pod["spec"]["volumes"] if volume["name"] == "secrets"]
        assert (f"{mount['mountPath']}/spark.conf", True) == (named, mount["readOnly"])
        assert "spark.conf" in {item["key"] for item in volume["secret"].get("items", [{"key": "spark.conf"}])}


def test_metrics_are_served_where_they_are_asked_for() -> None:
    """Port and address are the settings'; the policy lets Prometheus in."""
    settings = _settings()
    assert settings["CQ_METRICS_ADDRESS"] == "0.0.0.0"
    for name, role in (("cq-gateway", "CQ_METRICS_PORT"), ("cq-evaluator", "CQ_METRICS_EVALUATOR_PORT")):
        [pod] = [pod for each, pod in _pods() if each == name]
        [port] = [port for port in pod["spec"]["containers"][0]["ports"] if port["name"] == "metrics"]
        assert settings[role] == str(port["containerPort"]) == pod["metadata"]["annotations"]["prometheus.io/port"]
        policies = [each for each in _objects("network.yaml", [_FOLDER]) if each["kind"] == "NetworkPolicy"]
        assert [port["containerPort"]] == [rule["port"] for rule in policies[0]["spec"]["ingress"][0]["ports"]]


def test_selectors_select() -> None:
    """Each object selects existing pods, by their labels; `part-of` is added by kustomize."""
    labels = [pod["metadata"]["labels"] | {"app.kubernetes.io/part-of": "cq-gateway"} for _, pod in _pods()]
    for each in _objects():
        spec = each.get("spec", {})
        selector = spec.get("selector") or spec.get("podSelector")
        if selector is not None:
            wanted = selector.get("matchLabels", selector)
            assert any(wanted.items() <= some.items() for some in labels), each["metadata"]["name"]


def test_the_servers_are_let_out_to() -> None:
    """The policy has the ports of Kafka and Redis in the settings."""
    settings = _settings()
    wanted = {int(settings["CQ_KAFKA_BOOTSTRAP"].rpartition(":")[2])}
    wanted.add(int(re.findall(r":(\d+)", settings["CQ_REDIS_URL"])[0]))
    [policy] = [each for each in _objects("network.yaml", [_FOLDER]) if each["kind"] == "NetworkPolicy"]
    out = {port["port"] for rule in policy["spec"]["egress"] for port in rule["ports"]}
    assert wanted | {53} == out


def test_cores_are_those_that_are_asked_for() -> None:
    """Spark has as many tasks as the pod has cores, here and on the workers."""
    [evaluator] = [pod["spec"]["containers"][0] for name, pod in _pods() if name == "cq-evaluator"]
    assert f"local[{evaluator['resources']['requests']['cpu']}]" == _environment(evaluator)["CQ_EVALUATOR_MASTER"]
    [worker] = [pod["spec"]["containers"][0] for name, pod in _pods() if name == "cq-spark-worker"]
    options = json.loads(_environment(_patch())["CQ_EVALUATOR_SPARK"])
    offered = dict(zip(worker["args"][:-1:2], worker["args"][1:-1:2], strict=True))
    assert options["spark.executor.cores"] == offered["--cores"] == worker["resources"]["requests"]["cpu"]


def test_the_cluster_is_reached(tmp_path: Path) -> None:
    """Driver, master and workers listen on ports that the policy opens; the evaluator accepts its options."""
    given = _environment(_patch())
    options = json.loads(given["CQ_EVALUATOR_SPARK"])
    (tmp_path / "spark-sql-kafka-0-10.jar").touch()
    evaluator = {"master": given["CQ_EVALUATOR_MASTER"], "jars": str(tmp_path), "spark": options, "spark_secret": "s"}
    assert options.items() <= spark_options(Settings.model_validate({"evaluator": evaluator})).items()
    [policy] = [each for each in _objects("network.yaml", [_CLUSTER]) if each["kind"] == "NetworkPolicy"]
    for rules in (policy["spec"]["ingress"], policy["spec"]["egress"]):
        [rule] = rules
        [span] = rule["ports"]
        used = [int(port) for name, port in options.items() if name.endswith(".port")]
        used += [port["containerPort"] for name, pod in _pods() if "spark" in name
                 for port in pod["spec"]["containers"][0]["ports"] if port["name"] != "pages"]  # fmt: skip
        assert len(used) == 6
        assert all(span["port"] <= port <= span["endPort"] for port in used)
    services = {each["metadata"]["name"]: each for each in _objects() if each["kind"] == "Service"}
    host, port = re.findall(r"spark://([\w-]+):(\d+)", given["CQ_EVALUATOR_MASTER"])[0]
    assert int(port) == services[host]["spec"]["ports"][0]["port"]
    [host_of_driver] = [each for each in _patch()["env"] if each["name"] == "CQ_EVALUATOR_DRIVER_HOST"]
    assert "status.podIP" == host_of_driver["valueFrom"]["fieldRef"]["fieldPath"]
    [worker] = [pod["spec"]["containers"][0] for name, pod in _pods() if name == "cq-spark-worker"]
    assert worker["args"][-1] == given["CQ_EVALUATOR_MASTER"]
