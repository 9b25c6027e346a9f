"""Options of each kind of Kafka client, and secrets from files."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from redis import SSLConnection

from grouping.model.errors import OperationalError
from grouping.settings.kafka_options import client_options, java_options, token_url
from grouping.settings.settings import KafkaSettings, RedisSettings, Settings
from grouping.store.connection import connect
from spark_jobs.runtime.kafka.client_credentials import ClientCredentials
from spark_jobs.runtime.kafka.record_writer import producer_options


def test_java_logs_in_as_librdkafka_does(tmp_path: Path) -> None:
    """Java's client gets certificates by their text, and a password whatever is in it."""
    for name in ("ca", "certificate", "key"):
        (tmp_path / name).write_text(f"{name} in PEM")
    kafka = KafkaSettings(
        security="SASL_SSL", mechanism="SCRAM-SHA-256", username="cq", password=SecretStr('p"\\w'),
        ca_file=tmp_path / "ca", certificate_file=tmp_path / "certificate", key_file=tmp_path / "key",
    )  # fmt: skip
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    expected = {
        "kafka.request.timeout.ms": "10000",
        "kafka.default.api.timeout.ms": "20000",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-256",
        "kafka.sasl.jaas.config": f'{module} required username="cq" password="p\\"\\\\w";',
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.certificates": "ca in PEM",
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": "certificate in PEM",
        "kafka.ssl.keystore.key": "key in PEM",
        "kafka.bootstrap.servers": kafka.bootstrap,
    }
    assert expected == java_options(kafka)
    assert 'p"\\w' == client_options(kafka)["sasl.password"]
    assert "w" not in repr(kafka.password)


def test_a_broker_that_hangs_is_waited_for_as_long_as_an_operator_says() -> None:
    """By all kinds of clients; all tries of Java's client together take no less time than one."""
    kafka = KafkaSettings(extra={"socket.timeout.ms": "30000"})
    assert "30000" == client_options(kafka)["socket.timeout.ms"]
    found = java_options(kafka)
    assert ("30000", "60000") == (found["kafka.request.timeout.ms"], found["kafka.default.api.timeout.ms"])
    assert "kafka.socket.timeout.ms" not in found
    assert 60_000 == producer_options(Settings(kafka=kafka))["request_timeout_ms"]


def test_tokens_are_asked_for_by_both() -> None:
    """The client's secret is no password of SASL."""
    kafka = KafkaSettings(
        security="SASL_SSL", mechanism="OAUTHBEARER", username="cq", password=SecretStr("hush"), token_url="https://t"
    )
    assert "https://t" == token_url(kafka)
    assert "sasl.password" not in client_options(kafka)
    found = java_options(kafka)
    assert "https://t" == found["kafka.sasl.oauthbearer.token.endpoint.url"]
    assert found["kafka.sasl.jaas.config"].endswith(
        'OAuthBearerLoginModule required clientId="cq" clientSecret="hush";'
    )


def test_java_options_that_are_given_win(tmp_path: Path) -> None:
    """A truststore and a login of one's own are not mixed with derived ones."""
    own = {"kafka.ssl.truststore.location": "trust.jks", "kafka.sasl.jaas.config": "own;"}
    extra = {"ssl.ca.location": str(tmp_path / "absent"), "sasl.mechanism": "PLAIN", "sasl.username": "u", **own}
    assert own.items() <= java_options(KafkaSettings(extra=extra)).items()
    assert not any(".type" in name for name in java_options(KafkaSettings(extra=extra)))


@pytest.mark.parametrize(
    "given",
    [
        {"mechanism": "PLAIN", "username": "u"},
        {"mechanism": "PLAIN", "security": "SSL", "username": "u"},
        {"mechanism": "PLAIN", "security": "SASL_SSL"},
        {"mechanism": "OAUTHBEARER", "security": "SASL_SSL", "username": "u"},
        {"mechanism": "PLAIN", "security": "SASL_SSL", "username": "u", "token_url": "https://t"},
        {"mechanism": "GSSAPI"},
    ],
)
def test_half_a_login_is_refused(given: dict[str, str]) -> None:
    """A mechanism needs SASL, a user, and with OAUTHBEARER an endpoint; its password is not shown."""
    with pytest.raises(ValueError, match="mechanism|token_url") as refusal:
        Settings.model_validate({"kafka": {**given, "password": "hush"}})
    assert "hush" not in str(refusal.value)


def test_secrets_come_from_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the line end; the variable itself wins, and a file that is not there is told of."""
    (tmp_path / "secret").write_text("hush\n")
    monkeypatch.setenv("CQ_KAFKA_PASSWORD_FILE", str(tmp_path / "secret"))
    assert "hush" == Settings().kafka.password.get_secret_value()
    assert "127.0.0.1:9092" == Settings().kafka.bootstrap
    assert "hush" not in repr(Settings())
    monkeypatch.setenv("CQ_KAFKA_PASSWORD", "other")
    assert "other" == Settings().kafka.password.get_secret_value()
    monkeypatch.setenv("CQ_REDIS_PASSWORD_FILE", str(tmp_path / "absent"))
    with pytest.raises(FileNotFoundError, match="absent"):
        Settings()


@pytest.mark.parametrize(
    ("url", "reason"),
    [("http://127.0.0.1:1/token", "Connection refused"), ("data:application/json,[]", "but no token")],
)
def test_a_token_endpoint_that_fails_is_told(url: str, reason: str) -> None:
    """In one line, with the endpoint and without the secret: the stream's reason in `cq status`."""
    options = {"token.endpoint.url": url, "client.id": "cq", "client.secret": "hush"}
    credentials = ClientCredentials({f"sasl.oauthbearer.{name}": value for name, value in options.items()})
    with pytest.raises(OperationalError, match=reason) as refusal:
        asyncio.run(credentials.token())
    assert f'the token endpoint "{url}" gives no' in refusal.value.line
    assert "hush" not in refusal.value.line
    assert refusal.value.__cause__ is None


def test_sentinels_have_a_login_of_their_own() -> None:
    """User, password and TLS are the Sentinels' own; options without a value are the server's."""

    def found(**own: Any) -> dict[str, Any]:
        redis = RedisSettings(sentinels="s1:26379, s2:26379", password=SecretStr("hush"), **own)
        manager = connect(Settings(redis=redis)).connection_pool.sentinel_manager
        assert [("s1", 26379), ("s2", 26379)] == [
            (each.connection_pool.connection_kwargs["host"], each.connection_pool.connection_kwargs["port"])
            for each in manager.sentinels
        ]
        pool = manager.sentinels[1].connection_pool
        tls = {"tls": issubclass(pool.connection_class, SSLConnection)}
        return tls | {name: pool.connection_kwargs.get(name) for name in ("username", "password", "ssl_ca_certs")}

    plain, guarded, nobody = (
        SecretStr("redis://cache/0"),
        SecretStr("rediss://cache/0"),
        {"username": None, "password": None},
    )
    ca = Path("ca.pem")
    assert {"tls": False, "ssl_ca_certs": None, **nobody} == found(url=plain, ca_file=ca)
    assert {"tls": True, "ssl_ca_certs": "ca.pem", **nobody} == found(url=guarded, ca_file=ca)
    assert {"tls": False, "ssl_ca_certs": None, **nobody} == found(url=guarded, ca_file=ca, sentinel_tls=False)
    login = {"sentinel_username": "watch", "sentinel_password": SecretStr("psst"), "sentinel_tls": True}
    expected = {"tls": True, "ssl_ca_certs": "ca.pem", "username": "watch", "password": "psst"}
    assert expected == found(url=plain, ca_file=ca, **login)


def test_redis_is_told_who_we_are() -> None:
    """User, password and certificates; the URL's user and password win, and without TLS there is no certificate."""
    redis = RedisSettings(
        url=SecretStr("rediss://cache/0"), username="cq", password=SecretStr("hush"), ca_file=Path("ca.pem")
    )
    found = connect(Settings(redis=redis)).connection_pool.connection_kwargs
    assert ("cq", "hush", "ca.pem") == (found["username"], found["password"], found["ssl_ca_certs"])
    plain = redis.model_copy(update={"url": SecretStr("redis://other:own@cache/0")})
    found = connect(Settings(redis=plain)).connection_pool.connection_kwargs
    assert ("other", "own") == (found["username"], found["password"])
    assert "ssl_ca_certs" not in found
