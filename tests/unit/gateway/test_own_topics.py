"""The forms of the gateway's own topics."""

from __future__ import annotations

from pathlib import Path

from gateway.topics.own_topics import own_topics
from grouping.settings.settings import AuthSettings, Settings


def test_topics_of_a_gateway_without_operators_and_tokens() -> None:
    """The audit trail is kept for ever, and commands keep the times that their senders gave them."""
    wanted = own_topics(Settings())
    assert "-1" == wanted["cq.audit"].config["retention.ms"]
    assert "message.timestamp.type" not in wanted["cq.commands"].config


def test_tokens_are_compared_with_the_brokers_time() -> None:
    """A sender could otherwise choose the time that its token is compared with."""
    auth = AuthSettings(mode="token", keys=Path("keys"), roles={"operator": "root"})
    wanted = own_topics(Settings(auth=auth))
    assert "LogAppendTime" == wanted["cq.commands"].config["message.timestamp.type"]
    assert "message.timestamp.type" not in wanted["cq.commands"].free
    assert "-1" == wanted["cq.audit"].config["retention.ms"]
