"""Kafka and Valkey with certificates, passwords and ACLs."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from gateway.local.jars import KAFKA, ensure_jars, show_progress
from gateway.local.java import find_java
from gateway.local.kafka import LOGGING, PROPERTIES
from gateway.local.program import free_ports
from gateway.local.valkey import valkey_program
from grouping.settings.settings import Settings
from tests.cluster.guarded.certificates import make_certificates
from tests.cluster.guarded.tls_front import tls_front
from tests.cluster.guarded.token_server import token_server
from tests.kafka_client import DEADLINE

__all__ = ["PASSWORDS", "GuardedServers", "guarded_servers"]

PASSWORDS = {name: f"hush-{name}" for name in ("cq", "alice", "bob", "carol")}
"""Passwords of the product, and of subscribers."""
_LOGIN = "org.apache.kafka.common.security"


@dataclass(frozen=True, slots=True)
class GuardedServers:
    """Where the servers are."""

    bootstrap: str
    inner: str
    """Kafka's listener of the administrator, in plain text."""
    redis_url: str
    token_url: str
    certificates: Path

    def allow(self, acls: Iterable[Sequence[str]]) -> None:
        """Allow the listed rules: user, kind of resource, its name, operations.

        A name with ``*`` at its end is a prefix; ``*`` alone is every name.
        """
        bindings = [_binding(user, kind, name, one) for user, kind, name, some in acls for one in some.split(", ")]
        admin = AdminClient({"bootstrap.servers": self.inner})
        for done in admin.create_acls(bindings).values():
            done.result(DEADLINE)

    def make_topic(self, name: str) -> None:
        """Make a topic of one partition."""
        admin = AdminClient({"bootstrap.servers": self.inner})
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(DEADLINE)


def _binding(user: str, kind: str, name: str, operation: str) -> AclBinding:
    begins = name.removesuffix("*")
    pattern = ResourcePatternType.PREFIXED if begins not in ("", name) else ResourcePatternType.LITERAL
    return AclBinding(
        ResourceType[kind.upper()], begins or name, pattern, f"User:{user}", "*",
        AclOperation[operation.upper()], AclPermissionType.ALLOW,
    )  # fmt: skip


@contextmanager
def guarded_servers(folder: Path, redis_acl: str) -> Iterator[GuardedServers]:
    """Start the servers, with these rules for Redis's user `cq`, and end them with the block."""
    make_certificates(folder)
    with ExitStack() as closing:
        tokens = closing.enter_context(token_server(folder, "cq", PASSWORDS["cq"]))
        outer, inner, controller, port = free_ports(4)
        kafka = folder / "kafka"
        kafka.mkdir()
        (kafka / "server.properties").write_text(_properties(folder, outer, inner, controller, tokens))
        (kafka / "log4j2.properties").write_text(LOGGING)
        jars = ensure_jars(KAFKA, Settings().jars, show_progress)
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={tokens}/keys"
        java = [find_java().command, "-Dlog4j2.configurationFile=log4j2.properties", allowed, "-Xmx512m"]
        java += ["-cp", str(jars / "*")]
        scram = [
            f"--add-scram=SCRAM-SHA-{bits}=[name={name},password={PASSWORDS[name]}]"
            for name in PASSWORDS
            for bits in (256, 512)
        ]
        form = ["kafka.tools.StorageTool", "format", "-t", "guarded-cluster-test-1", "-c", "server.properties"]
        subprocess.run([*java, *form, *scram], cwd=kafka, check=True, capture_output=True)
        with (folder / "kafka.log").open("wb") as log:
            broker = subprocess.Popen(
                [*java, "kafka.Kafka", "server.properties"], cwd=kafka, stdout=log, stderr=subprocess.STDOUT
            )
        closing.callback(_end, broker)
        valkey = valkey_program(folder / "redis", folder / "redis.log", port)
        valkey.prepare()
        (folder / "redis" / "users").write_text(f"user default off\nuser cq on >{PASSWORDS['cq']} {redis_acl}\n")
        with (folder / "redis" / "valkey.conf").open("a") as configuration:
            configuration.write("aclfile users\n")
        with (folder / "redis.log").open("wb") as log:
            closing.callback(_end, subprocess.Popen(valkey.command, cwd=valkey.folder, stdout=log))
        front = closing.enter_context(tls_front(folder, port))
        guarded = GuardedServers(
            f"127.0.0.1:{outer}", f"127.0.0.1:{inner}", f"rediss://127.0.0.1:{front}/0", f"{tokens}/token", folder
        )
        deadline = time.monotonic() + 300
        while b"Kafka Server started" not in (folder / "kafka.log").read_bytes():
            assert broker.poll() is None, (folder / "kafka.log").read_text()
            assert time.monotonic() < deadline, (folder / "kafka.log").read_text()
            time.sleep(0.05)
        yield guarded


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _properties(certificates: Path, outer: int, inner: int, controller: int, tokens: str) -> str:
    listener = "listener.name.outer."
    users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
    own = {
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"OUTER://127.0.0.1:{outer},INNER://127.0.0.1:{inner},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"OUTER://127.0.0.1:{outer},INNER://127.0.0.1:{inner}",
        "listener.security.protocol.map": "OUTER:SASL_SSL,INNER:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "INNER",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        listener + "ssl.keystore.type": "PEM",
        listener + "ssl.keystore.location": str(certificates / "server.both"),
        listener + "ssl.truststore.type": "PEM",
        listener + "ssl.truststore.location": str(certificates / "ca.pem"),
        listener + "ssl.client.auth": "required",
        listener + "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        listener + "plain.sasl.jaas.config": f"{_LOGIN}.plain.PlainLoginModule required {users};",
        listener + "scram-sha-256.sasl.jaas.config": f"{_LOGIN}.scram.ScramLoginModule required;",
        listener + "scram-sha-512.sasl.jaas.config": f"{_LOGIN}.scram.ScramLoginModule required;",
        listener + "oauthbearer.sasl.jaas.config": f"{_LOGIN}.oauthbearer.OAuthBearerLoginModule required;",
        listener + "oauthbearer.sasl.server.callback.handler.class":
            f"{_LOGIN}.oauthbearer.OAuthBearerValidatorCallbackHandler",
        "sasl.oauthbearer.jwks.endpoint.url": f"{tokens}/keys",
        "sasl.oauthbearer.expected.audience": "kafka",
    }  # fmt: skip
    return "".join(f"{name}={value}\n" for name, value in (PROPERTIES | own).items())
