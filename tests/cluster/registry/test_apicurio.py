"""Apicurio, a real registry, by the API of Confluent's: schemas by id, and answers without a schema."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tarfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.local.java import find_java
from gateway.local.program import free_ports
from grouping.process.schema_registry import SchemaRegistry
from schemas.avro_writers import read_writers
from tests.kafka_client import wait_until

_ARTIFACT = "io.apicurio:apicurio-registry-app:2.6.13.Final:tar.gz:all"
_SHA256 = "3cda1b34aa020fb4ac4dd6a66018d757e81e437f97e20a1f92d366b70091c6ba"
_MAVEN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
_RECORD = {"type": "record", "name": "Quote", "fields": [{"name": "symbol", "type": "string"}]}
_PATH = "/apis/ccompat/v7"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the URL of a registry with schemas in memory."""
    folder = tmp_path_factory.mktemp("apicurio")
    _fetch(folder)
    [port] = free_ports(1)
    command = [find_java().command, "-Xmx512m", "-Dquarkus.http.host=127.0.0.1", f"-Dquarkus.http.port={port}"]
    command += ["-jar", str(next(folder.glob("*-runner.jar")))]
    url = f"http://127.0.0.1:{port}{_PATH}"
    with (folder / "log").open("w") as log, subprocess.Popen(command, cwd=folder, stdout=log, stderr=log) as process:
        try:
            wait_until(lambda: _answers(url), "the registry's first answer", 300)
            yield url
        finally:
            process.terminate()


def test_schemas_by_id(registry: str) -> None:
    """The registered schema has its id; an unknown id has no schema."""
    schema_id = _register(registry, "quotes-value", schema=json.dumps(_RECORD))
    found = SchemaRegistry(registry).schema(schema_id)
    assert found is not None
    assert _RECORD == json.loads(found)
    read_writers(f'{{"{schema_id}": {found}}}')
    assert SchemaRegistry(registry).schema(schema_id + 1_000) is None


def test_a_schema_of_another_format(registry: str) -> None:
    """A stream in Avro cannot be read with a schema of Protobuf, and the reason is told."""
    schema_id = _register(
        registry, "orders-value", schema='syntax = "proto3"; message Order { string id = 1; }', schemaType="PROTOBUF"
    )
    found = SchemaRegistry(registry).schema(schema_id)
    assert found is not None
    assert "not of Avro" in json.loads(found)


def test_a_schema_with_references(registry: str) -> None:
    """A schema with references is not read, and the reason is told."""
    _register(registry, "quote", schema=json.dumps(_RECORD))
    outer = {"type": "record", "name": "Trade", "fields": [{"name": "quote", "type": "Quote"}]}
    references = [{"name": "Quote", "subject": "quote", "version": 1}]
    schema_id = _register(registry, "trades-value", schema=json.dumps(outer), references=references)
    found = SchemaRegistry(registry).schema(schema_id)
    assert found is not None
    assert "refers to other schemas" in json.loads(found)


def _fetch(folder: Path) -> None:
    """Unpack the registry's package from Maven."""
    if shutil.which("mvn") is None:
        pytest.skip("there is no Maven")
    command = ["mvn", "-q", "-B", _MAVEN, f"-Dartifact={_ARTIFACT}", f"-DoutputDirectory={folder}"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    if ran.returncode:
        pytest.skip(f"Maven does not bring the registry: {ran.stdout.strip()[-300:]}")
    [package] = folder.glob("*.tar.gz")
    assert _SHA256 == hashlib.sha256(package.read_bytes()).hexdigest()
    with tarfile.open(package) as packed:
        packed.extractall(folder, filter="data")


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/subjects", timeout=2):
            return True
    except OSError:
        return False


def _register(url: str, subject: str, **schema: object) -> int:
    """Register a schema, and return its id."""
    kind = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
    request = urllib.request.Request(f"{url}/subjects/{subject}/versions", json.dumps(schema).encode(), kind)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return int(json.load(answer)["id"])
