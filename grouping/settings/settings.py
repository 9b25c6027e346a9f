"""Every setting, with its default. The environment variable of a setting is ``CQ_`` and its path in capitals."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from grouping.settings.addresses import check_redis_url, check_servers
from grouping.settings.auth_settings import AuthSettings
from grouping.settings.evaluator_settings import EvaluatorSettings
from grouping.settings.limit_settings import LimitSettings
from grouping.settings.masked_options import Options
from grouping.settings.secret_files import SecretFiles
from schemas.topic_names import ClientNames, TopicNames

__all__ = ["AuthSettings", "Codec", "KafkaSettings", "RedisSettings", "Settings"]


Codec = Literal["gzip", "lz4", "none"]
"""Compression of record batches."""

_names = lru_cache(maxsize=16)(TopicNames)
"""Returns the topics under a prefix. They are cached, since each command needs them several times."""


class KafkaSettings(BaseModel):
    """The Kafka cluster."""

    bootstrap: str = Field("127.0.0.1:9092", description="bootstrap servers: HOST:PORT, separated by commas")
    replication: int = Field(
        -1, description="replicas of each topic that the gateway creates; -1 for the broker's default"
    )
    min_isr: int = Field(
        -1, description="replicas that must be in sync for a write to succeed; -1 for the broker's default"
    )
    security: Literal["", "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        "", description="security protocol of the brokers: `PLAINTEXT`, `SSL` (TLS), `SASL_PLAINTEXT` or `SASL_SSL`"
    )
    mechanism: Literal["", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] = Field(
        "", description="SASL mechanism: `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512` or `OAUTHBEARER`"
    )
    username: str = Field("", description="user name; with OAUTHBEARER the client's id")
    password: SecretStr = Field(SecretStr(""), description="password of the user; with OAUTHBEARER the client's secret")
    token_url: str = Field("", description="OAuth 2 token endpoint for OAUTHBEARER")
    token_scope: str = Field("", description="scope to request at the token endpoint")
    ca_file: Path | None = Field(None, description="PEM file of the authorities that sign the brokers' certificates")
    certificate_file: Path | None = Field(
        None, description="PEM file of the client certificate, if the brokers require one"
    )
    key_file: Path | None = Field(None, description="PEM file of the certificate's key, in PKCS #8")
    key_password: SecretStr = Field(SecretStr(""), description="password of the key")
    extra: Options = Field(
        {}, repr=False, description="further librdkafka and Spark options (JSON); the settings above take precedence"
    )

    @field_validator("bootstrap")
    @classmethod
    def _is_address(cls, text: str) -> str:
        return check_servers(text)

    @model_validator(mode="after")
    def _copies_suffice(self) -> Self:
        if 0 < self.replication < self.min_isr:
            raise ValueError(f"min_isr {self.min_isr} needs kafka.replication {self.min_isr} or more")
        return self

    @model_validator(mode="after")
    def _login_is_whole(self) -> Self:
        if self.mechanism and not (self.security or self.extra.get("security.protocol", "")).upper().startswith("SASL"):
            raise ValueError("a mechanism needs kafka.security SASL_SSL or SASL_PLAINTEXT")
        if self.mechanism and not self.username:
            raise ValueError(f"mechanism {self.mechanism} needs kafka.username")
        if (self.mechanism == "OAUTHBEARER") != bool(self.token_url):
            raise ValueError("mechanism OAUTHBEARER needs kafka.token_url, and no other mechanism has it")
        return self


class RedisSettings(BaseModel):
    """The Redis or Valkey server."""

    url: SecretStr = Field(
        SecretStr("redis://127.0.0.1:6379/0"),
        description="URL of the server that holds the working copy; `rediss://` for TLS",
    )
    username: str = Field("", description="ACL user, if the URL names none")
    password: SecretStr = Field(SecretStr(""), description="password of the ACL user, if the URL has none")
    ca_file: Path | None = Field(None, description="PEM file of the authorities that sign the server's certificate")
    certificate_file: Path | None = Field(
        None, description="PEM file of the client certificate, if the server requires one"
    )
    key_file: Path | None = Field(None, description="PEM file of the certificate's key")
    sentinels: str = Field(
        "", description="Sentinels that name the primary: HOST:PORT, separated by commas; empty for none"
    )
    sentinel_name: str = Field("mymaster", description="name by which the Sentinels know the primary")
    sentinel_username: str = Field("", description="ACL user of the Sentinels")
    sentinel_password: SecretStr = Field(
        SecretStr(""), description="password of the Sentinels' ACL user; empty if they require none"
    )
    sentinel_tls: bool | None = Field(
        None, description="whether connections to Sentinels use TLS; empty: as the URL of the server says"
    )

    @field_validator("url")
    @classmethod
    def _is_url(cls, url: SecretStr) -> SecretStr:
        check_redis_url(url.get_secret_value())
        return url


class CommandSettings(BaseModel):
    """Commands and replies."""

    partitions: int = Field(4, description="partitions of cq.commands and of cq.replies when the gateway creates them")
    batch: int = Field(5000, description="largest number of commands executed in one commit")
    remember_days: float = Field(7.0, description="days for which a command id is remembered")
    text_bytes: int = Field(512 * 1024, description="longest statement, in bytes")


class StreamSettings(BaseModel):
    """Source topics."""

    topics: str = Field("*", description="topics that CREATE STREAM may read: shell patterns, separated by commas")
    grants: dict[str, str] = Field(
        {},
        description="which of these topics a subscriber, or a role `@name`, may read (JSON of patterns); empty for all",
    )
    access: Literal["open", "granted"] = Field(
        "open",
        description="who may read streams, tables and views whose CREATE does not say: `open` for everybody; "
        "`granted` for their owners, operators and the subscribers that a GRANT names",
    )
    registries: SecretStr = Field(
        SecretStr(""),
        description="URLs of the schema registries that CREATE STREAM may name, separated by commas; a login "
        "(`https://user:password@host`) belongs here, not in the statement",
    )
    compaction_lag_ms: int = Field(
        86_400_000,
        description="least `min.compaction.lag.ms` of a table's compacted topic, in ms, so that a replayed "
        "micro-batch finds the same rows as its first run",
    )


class ResultSettings(BaseModel):
    """Topics of results."""

    partitions: int = Field(32, description="partitions of cq.results when the gateway creates it")
    dedicated_limit: int = Field(
        500,
        description="largest number of live dedicated destinations; 0 for none. If the topics of ended destinations "
        "are counted too, twice this number",
    )
    compression: Codec = Field(
        "lz4", description="compression of results: `lz4`, `gzip` or `none`; replies, ends and digests use gzip"
    )
    shared: bool = Field(
        True, description="whether subscribers may share topics of results, as SHARED and VIRTUAL destinations do"
    )
    virtual_limit: int = Field(200, description="largest number of topics of groups with virtual destinations")
    retention_hours: float = Field(168.0, description="hours for which results are kept")
    linger_seconds: float = Field(
        3600.0,
        description="seconds from the last `cq.end` on a topic of dedicated or virtual destinations until the topic is "
        "deleted",
    )


class MetricsSettings(BaseModel):
    """Metrics and health over HTTP."""

    address: str = Field(
        "127.0.0.1",
        description="address on which gateway and evaluator serve metrics and health; 0.0.0.0 for every address",
    )
    port: int = Field(0, ge=0, le=65535, description="the gateway's port; 0 for any free one")
    evaluator_port: int = Field(0, ge=0, le=65535, description="the evaluator's port; 0 for any free one")


class LogSettings(BaseModel):
    """The logs of the roles."""

    form: Literal["text", "json"] = Field(
        "text", description="form of log lines: `text`, or `json` for one object a line"
    )
    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="lowest level that gateway and evaluator log; SIGUSR1 changes it to DEBUG, SIGUSR2 back"
    )
    bytes: int = Field(
        100_000_000,
        ge=10_000,
        description="size at which `cq up` rotates a role's log; the previous log is kept as `ROLE.log.1`",
    )


class TraceSettings(BaseModel):
    """Traces of OpenTelemetry."""

    endpoint: str = Field(
        "", description="collector that gets traces over OTLP, such as `http://127.0.0.1:4318`; empty for none"
    )
    headers: SecretStr = Field(
        SecretStr(""), description="headers that the collector requires: `NAME=VALUE`, separated by commas"
    )
    share: float = Field(
        0.0001, ge=0, le=1, description="share of events that are traced, and of commands without `traceparent`"
    )

    @field_validator("endpoint")
    @classmethod
    def _packages_are_there(cls, endpoint: str) -> str:
        if endpoint and any(find_spec(name) is None for name in ("opentelemetry", "opentelemetry.sdk")):
            raise ValueError("traces need the packages of `cq-gateway[traces]`")
        return endpoint


class SupervisorSettings(BaseModel):
    """The supervisor of `cq up`."""

    hang_seconds: float = Field(60.0, description="seconds without a sign of life after which a role is restarted")


class JarSettings(BaseModel):
    """The source of the jars of Kafka and of Spark's connector."""

    mirror: SecretStr = Field(SecretStr(""), description="root of a Maven repository; empty for Maven Central")
    cache: Path | None = Field(None, description="folder that keeps the jars; by default in the user's cache folder")


class TimerSettings(BaseModel):
    """Digests."""

    wait_seconds: float = Field(30.0, description="seconds that a tick waits for events published before it")
    spark_from: int = Field(
        100_000,
        description="if at least this number of destinations are due at one time, Spark computes their digests; "
        "0 for never",
    )


class Settings(BaseSettings):
    """The settings of all roles.

    Example:
        >>> Settings(prefix="dev.").topics.commands
        'dev.commands'
    """

    model_config = SettingsConfigDict(
        # The rejected value may be a password.
        hide_input_in_errors=True,
        env_prefix="CQ_",
        env_nested_delimiter="_",
        env_nested_max_split=1,
        nested_model_default_partial_update=True,
    )

    prefix: str = Field("cq.", description="prefix of the names of the gateway's topics and Redis keys")
    data: Path = Field(Path("cq-data"), description="folder for checkpoints and, with `cq up`, the embedded servers")
    standby: bool = Field(
        default=False,
        description="whether a gateway or an evaluator waits as a standby while another one runs under the prefix",
    )
    kafka: KafkaSettings = KafkaSettings()
    redis: RedisSettings = RedisSettings()
    commands: CommandSettings = CommandSettings()
    auth: AuthSettings = AuthSettings()
    streams: StreamSettings = StreamSettings()
    results: ResultSettings = ResultSettings()
    limits: LimitSettings = LimitSettings()
    evaluator: EvaluatorSettings = EvaluatorSettings()
    timers: TimerSettings = TimerSettings()
    metrics: MetricsSettings = MetricsSettings()
    logs: LogSettings = LogSettings()
    traces: TraceSettings = TraceSettings()
    supervisor: SupervisorSettings = SupervisorSettings()
    jars: JarSettings = JarSettings()

    @field_validator("data")
    @classmethod
    def _is_a_folder(cls, data: Path) -> Path:
        if re.match(r"[a-z][a-z0-9+.-]+:/", str(data), re.IGNORECASE):
            raise ValueError("data is a folder of this machine; give a URL for checkpoints in evaluator.checkpoints")
        return data

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Let arguments and environment variables take precedence over secrets from files."""
        return init_settings, env_settings, SecretFiles(settings_cls)

    @property
    def topics(self) -> TopicNames:
        """The topics under the prefix."""
        return _names(self.prefix)

    @property
    def clients(self) -> ClientNames:
        """The consumer groups and other names of the processes, under the prefix."""
        return ClientNames(self.prefix)
