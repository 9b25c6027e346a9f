"""The topics that a stream may read: not another gateway's, recognised by its topics' options."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from gateway.topics.own_topics import own_topics
from gateway.topics.source_policy import check_source, readable_names
from grouping.model.errors import InputError
from grouping.settings.settings import Settings, StreamSettings

_NAMES = {"qcommands", "qreplies", "qcatalog", "qpending", "quotes"}


def _topics(configs: dict[str, dict[str, str]]) -> SimpleNamespace:
    return SimpleNamespace(names=lambda: _NAMES, configs=lambda names: {each: configs.get(each, {}) for each in names})


def test_four_names_close_no_prefix() -> None:
    """Topics created by a subscriber, with a gateway's names, keep nobody from topics with the same prefix."""
    made = {"cleanup.policy": "delete", "retention.ms": "-1", "max.message.bytes": "1048588"}
    check_source(Settings(), _topics(dict.fromkeys(_NAMES, made)), "quotes", "alice")  # type: ignore[arg-type]


def test_another_gateways_topics_are_closed() -> None:
    """A gateway's own topics have its options."""
    options = {name: dict(form.config) for name, form in own_topics(Settings(prefix="q")).items()}
    with pytest.raises(InputError, match="belongs to another gateway") as refusal:
        check_source(Settings(), _topics(options), "qcommands", "alice")  # type: ignore[arg-type]
    assert "not-allowed" == refusal.value.code


def test_hints_name_readable_topics_alone() -> None:
    """A near name is readable to the subscriber."""
    settings = Settings(streams=StreamSettings(topics="q*", grants={"alice": "quotes"}))
    assert ["quotes"] == readable_names(settings, _topics({}), "alice")  # type: ignore[arg-type]
    assert [] == readable_names(settings, _topics({}), "bob")  # type: ignore[arg-type]
