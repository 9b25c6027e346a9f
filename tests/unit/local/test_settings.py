"""Settings come from the environment, and secrets stay out of sight."""

from __future__ import annotations

import pickle

import pytest

from grouping.settings.settings import Settings


@pytest.mark.parametrize(
    ("variable", "value", "path", "expected"),
    [
        ("CQ_PREFIX", "dev.", ("prefix",), "dev."),
        ("CQ_METRICS_PORT", "9100", ("metrics", "port"), 9100),
        ("CQ_KAFKA_BOOTSTRAP", "k:1,l:2", ("kafka", "bootstrap"), "k:1,l:2"),
        ("CQ_KAFKA_EXTRA", '{"client.id": "x"}', ("kafka", "extra"), {"client.id": "x"}),
        ("CQ_RESULTS_DEDICATED_LIMIT", "0", ("results", "dedicated_limit"), 0),
        ("CQ_EVALUATOR_STREAMS", '{"fast": "quotes"}', ("evaluator", "streams"), {"fast": "quotes"}),
        ("CQ_EVALUATOR_EVENTS_PER_BATCH", "7", ("evaluator", "events_per_batch"), 7),
    ],
)
def test_settings_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, path: tuple[str, ...], expected: object
) -> None:
    """`CQ_` and a setting's path in capitals sets it, and leaves its neighbours as they are."""
    monkeypatch.setenv(variable, value)
    found: object = Settings()
    for name in path:
        found = getattr(found, name)
    assert expected == found
    assert Settings().timers.wait_seconds == 30.0


def test_a_password_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Redis URL, which may hold a password, is in no repr."""
    monkeypatch.setenv("CQ_REDIS_URL", "redis://:hush@127.0.0.1:6379/0")
    assert "hush" not in repr(Settings())
    assert "hush" in Settings().redis.url.get_secret_value()


@pytest.mark.parametrize(
    ("evaluator", "expected"),
    [
        ({"name": "fats", "streams": {"fast": "quotes"}}, 'gives the evaluator "fats" no streams'),
        ({"streams": {"a/b": "quotes"}}, 'names an evaluator "a/b"'),
        ({"streams": {"": "quotes"}}, 'names an evaluator ""'),
    ],
)
def test_an_evaluator_has_a_name_and_streams(evaluator: dict[str, object], expected: str) -> None:
    """An evaluator without any stream is a mistake."""
    with pytest.raises(ValueError, match=expected):
        Settings.model_validate({"evaluator": evaluator})


def test_what_may_be_a_password_is_not_shown() -> None:
    """Raw options hold passwords: neither the settings' text nor an error about them shows one."""
    hushed = Settings.model_validate({"kafka": {"extra": {"sasl.password": "hush"}}})
    assert "hush" not in repr(hushed) + str(hushed)
    with pytest.raises(ValueError, match="extra") as refusal:
        Settings.model_validate({"kafka": {"extra": {"sasl.password": ["hush"]}}})
    assert "hush" not in str(refusal.value)


def test_a_dump_of_settings_shows_no_secret() -> None:
    """Raw options show only their names; the program itself has the values."""
    given = {
        "kafka": {"extra": {"sasl.password": "hush"}, "password": "hush"},
        "evaluator": {"spark": {"spark.hadoop.fs.s3a.secret.key": "hush"}, "spark_secret": "hush"},
        "redis": {"sentinel_password": "hush"},
    }
    settings = Settings.model_validate(given)
    shown = f"{settings.model_dump()} {settings.model_dump_json()}"
    assert "hush" not in shown
    assert "spark.hadoop.fs.s3a.secret.key" in shown
    assert {"sasl.password": "hush"} == settings.kafka.extra == pickle.loads(pickle.dumps(settings)).kafka.extra
    assert settings == Settings.model_validate(settings.model_dump()) == Settings(**dict(settings))


def test_no_more_copies_are_asked_for_than_there_are() -> None:
    """Nothing could be written otherwise; where the broker says how many there are, it also refuses."""
    with pytest.raises(ValueError, match=r"needs kafka\.replication 3"):
        Settings.model_validate({"kafka": {"replication": 2, "min_isr": 3}})
    assert Settings.model_validate({"kafka": {"min_isr": 3}}).kafka.min_isr == 3


def test_a_url_is_no_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """`s3a://b/c` as a path would be a folder named `s3a:`; it is told where a URL belongs."""
    monkeypatch.setenv("CQ_DATA", "s3a://bucket/cq")
    with pytest.raises(ValueError, match=r"evaluator\.checkpoints"):
        Settings()
