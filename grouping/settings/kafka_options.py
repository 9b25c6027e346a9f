"""Options of Kafka's clients (librdkafka and Java) for the addresses of the cluster and for the login.

The options in `kafka.extra` have librdkafka's names. If the Java client has another name for an option, this module
translates the name.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from grouping.settings.settings import KafkaSettings

__all__ = ["client_options", "java_options", "token_url"]

_JAVA = "kafka."
"""The prefix of options in `kafka.extra` that are only for Spark's Kafka source."""
_SILENCE = "socket.timeout.ms"
_SILENT = {_SILENCE: "10000"}
"""The time in milliseconds after which a client gives up a broker that does not answer. Kafka itself considers a broker
dead after nine seconds. The default of librdkafka is a minute.
"""
_NOT_JAVA = frozenset((
    _SILENCE,
    "ssl.ca.location", "ssl.certificate.location", "ssl.key.location",
    "sasl.username", "sasl.password", "sasl.mechanisms",
    "sasl.oauthbearer.method", "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret", "sasl.oauthbearer.scope",
))  # fmt: skip
"""Names of librdkafka's options that the Java client does not know."""
_LOGIN = "org.apache.kafka.common.security"
_MODULES = {
    "PLAIN": f"{_LOGIN}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_LOGIN}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_LOGIN}.scram.ScramLoginModule",
    "OAUTHBEARER": f"{_LOGIN}.oauthbearer.OAuthBearerLoginModule",
}


def client_options(kafka: KafkaSettings) -> dict[str, str]:
    """Return librdkafka's options. Typed settings take precedence over `kafka.extra`; options for Spark are left out.

    Example:
        >>> client_options(KafkaSettings(bootstrap="k:1", extra={"client.id": "x", "kafka.client.id": "y"}))
        {'socket.timeout.ms': '10000', 'client.id': 'x', 'bootstrap.servers': 'k:1'}
    """
    extra = {name: value for name, value in kafka.extra.items() if not name.startswith(_JAVA)}
    return _SILENT | extra | _typed(kafka) | {"bootstrap.servers": kafka.bootstrap}


def _typed(kafka: KafkaSettings) -> dict[str, str]:
    password = kafka.password.get_secret_value()
    options = {
        "security.protocol": kafka.security,
        "sasl.mechanism": kafka.mechanism,
        "ssl.ca.location": kafka.ca_file,
        "ssl.certificate.location": kafka.certificate_file,
        "ssl.key.location": kafka.key_file,
        "ssl.key.password": kafka.key_password.get_secret_value(),
    }
    if kafka.mechanism == "OAUTHBEARER":
        options |= {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": kafka.token_url,
            "sasl.oauthbearer.client.id": kafka.username,
            "sasl.oauthbearer.client.secret": password,
            "sasl.oauthbearer.scope": kafka.token_scope,
        }
    else:
        options |= {"sasl.username": kafka.username, "sasl.password": password}
    return {name: str(value) for name, value in options.items() if value}


def java_options(kafka: KafkaSettings) -> dict[str, str]:
    """Return the options of Spark's Kafka source. Their names have the prefix ``kafka.``.

    Certificates and keys are passed as text, so executors on other machines need no files. Options of `extra` with the
    prefix ``kafka.`` take precedence over derived options.

    Raises:
        OSError: The file of a certificate or key cannot be read.

    Example:
        >>> found = java_options(KafkaSettings(extra={"security.protocol": "SSL", "kafka.client.id": "y"}))
        >>> found["kafka.security.protocol"], found["kafka.client.id"], found["kafka.request.timeout.ms"]
        ('SSL', 'y', '10000')
    """
    options = client_options(kafka)
    shared = _java_patience(int(options[_SILENCE]))
    shared |= {_JAVA + name: value for name, value in options.items() if name not in _NOT_JAVA}
    own = {name: value for name, value in kafka.extra.items() if name.startswith(_JAVA)}
    if "kafka.ssl.truststore.location" not in own:
        shared |= _trusted(options)
    if "kafka.ssl.keystore.location" not in own:
        shared |= _certificate(options)
    return shared | _login(options) | own | {"kafka.bootstrap.servers": kafka.bootstrap}


def _java_patience(silent_ms: int) -> dict[str, str]:
    """Return the options for the timeout of a single answer, and of all attempts of a request together.

    The second timeout is needed because Spark looks for events with the Java admin client. The client gives up a
    hanging broker only after all attempts of a request have timed out, and Spark then makes another client. Without
    this timeout, the client's `NetworkClient` would wait for an hour.
    """
    return {"kafka.request.timeout.ms": str(silent_ms), "kafka.default.api.timeout.ms": str(2 * silent_ms)}


def _trusted(options: Mapping[str, str]) -> dict[str, str]:
    if not (file := options.get("ssl.ca.location")):
        return {}
    return {"kafka.ssl.truststore.type": "PEM", "kafka.ssl.truststore.certificates": Path(file).read_text("utf-8")}


def _certificate(options: Mapping[str, str]) -> dict[str, str]:
    certificate, key = options.get("ssl.certificate.location"), options.get("ssl.key.location")
    if not (certificate and key):
        return {}
    return {
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": Path(certificate).read_text("utf-8"),
        "kafka.ssl.keystore.key": Path(key).read_text("utf-8"),
    }


def _login(options: Mapping[str, str]) -> dict[str, str]:
    """Return the JAAS configuration for the login of a Java client; {} if the options have no user."""
    mechanism = options.get("sasl.mechanism") or options.get("sasl.mechanisms", "")
    who = {"username": options.get("sasl.username"), "password": options.get("sasl.password")}
    further = {"kafka.sasl.mechanism": mechanism}
    if mechanism == "OAUTHBEARER":
        named = {"clientId": "client.id", "clientSecret": "client.secret", "scope": "scope"}
        who = {ours: options.get(f"sasl.oauthbearer.{name}") for ours, name in named.items()}
        handler = f"{_LOGIN}.oauthbearer.OAuthBearerLoginCallbackHandler"
        further["kafka.sasl.login.callback.handler.class"] = handler
    given = {name: value for name, value in who.items() if value}
    if mechanism not in _MODULES or not given:
        return {}
    written = " ".join(f"{name}={_quoted(value)}" for name, value in given.items())
    return further | {"kafka.sasl.jaas.config": f"{_MODULES[mechanism]} required {written};"}


def _quoted(text: str) -> str:
    r"""Return a text quoted for JAAS.

    Example:
        >>> print(_quoted('a"b\\c'))
        "a\"b\\c"
    """
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def token_url(kafka: KafkaSettings) -> str:
    """Return the URL of the token endpoint for OAUTHBEARER; "" without one."""
    return client_options(kafka).get("sasl.oauthbearer.token.endpoint.url", "")
