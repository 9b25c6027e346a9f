"""Names shared by two processes are made and parsed in a single module; other places that do so are found here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grouping.settings.settings import Settings
from grouping.store.keys import RedisKeys

_ROOT = Path(__file__).parents[3]
_HOMES = {
    "a key of Redis": ("grouping/store/keys.py", r"""\.key\((f?["']|\*)|_key\(["']|["']:["']\.join\("""),
    "a topic or a consumer group": (
        "schemas/topic_names.py",
        r"""\.topic\(f?["']|prefix\b\s*\+\s*["']|["']\{[\w.]*\bprefix\}[a-z-]|startswith\([\w.]*\bprefix\)""",
    ),
    "a key of cq.catalog or cq.ticks": (
        "grouping/store/record_keys.py",
        r"""(?<![\w`])(f?["']|b["'](?!end/%d))(cq|part|stream|timed|end|secret|cut|cursor|settled|closed)/""",
    ),
    "the kind of a part, by its id": (
        "gateway/model/dependencies.py",
        r"""(startswith|removeprefix)\(\(?f?["'][gstvw]_|(_id|name)\[:2\]""",
    ),
}


_STRAYS = {
    "a key of Redis": [
        'working.key("ends")',
        'self._key("pins", stream_id)',
        "settings.key(*parts)",
        '":".join(("cq", name))',
    ],
    "a topic or a consumer group": [
        'settings.topic("results")',
        'prefix + "commands"',
        'f"{settings.prefix}evaluator"',
    ],
    "a key of cq.catalog or cq.ticks": [
        'f"part/{stream_id}/{name}".encode()',
        'b"cq/" + _encode(key)',
        'f"cut/{rest}"',
    ],
    "the kind of a part, by its id": ['name.startswith("g_")', 'not name.startswith(("t_", "v_"))', "part_id[:2]"],
}


@pytest.mark.parametrize("name", _HOMES)
def test_a_stray_name_is_found(name: str) -> None:
    """As they stood in the tree once."""
    assert all(re.search(_HOMES[name][1], stray) for stray in _STRAYS[name])


@pytest.mark.parametrize("name", _HOMES)
def test_a_name_has_one_home(name: str) -> None:
    """No other module makes a name of this kind, or takes it apart."""
    home, pattern = _HOMES[name]
    found = [
        f"{path.relative_to(_ROOT)}:{number}: {line.strip()}"
        for folder in ("gateway", "grouping", "schemas", "spark_jobs")
        for path in sorted((_ROOT / folder).rglob("*.py"))
        if path != _ROOT / home
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if re.search(pattern, line)
    ]
    assert not found, f"{name} is made or read outside of {home}:\n" + "\n".join(found)


def test_the_keys_of_redis_stay() -> None:
    """Data in a data folder is found again: each key is unchanged, and no two keys are equal."""
    keys = RedisKeys.of(Settings(prefix="cq."))
    found = {name: _called(keys, name) for name in RedisKeys.table()}
    assert found.items() >= _KEYS.items()
    assert len({*found.values()}) == len(found)
    assert {*keys.of_stream("gateway")} < {*found.values()}


def _called(keys: RedisKeys, name: str) -> str:
    made = getattr(keys, name)
    return made if isinstance(made, str) else made("gateway")


_PLAIN = (
    "commands-read cursors dead-letters dedicated destinations doubted ends epoch expiries journal leaving numbers "
    "position secrets settled streams subscribers ticks-read version"
).split()
_OF_SOMETHING = (
    "committed cqs free groups ids in-hand lease match-totals matches pins quarantine readers replies-read "
    "segments selects statistics texts timed timers trial unused"
).split()
_KEYS = {
    **{name.replace("-", "_"): f"cq:{name}" for name in _PLAIN},
    **{name.replace("-", "_"): f"cq:{name}:gateway" for name in _OF_SOMETHING},
    "progress": "cq:settled-ticks",
    "dependencies": "cq:parts:gateway",
    "digest_job": "cq:evaluator:digest-job",
    "fence": "cq:lease:gateway:fence",
}
