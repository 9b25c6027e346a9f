"""Fetching the jars: the cache, the refusals, and the messages."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from pydantic import SecretStr

from gateway.local import jars
from gateway.local.jars import KAFKA, SPARK, Jar, ensure_jars, read_lock
from gateway.local.java import find_java
from grouping.model.errors import OperationalError
from grouping.settings.settings import JarSettings

BODY = b"as good as a jar"


@pytest.fixture
def lock(monkeypatch: pytest.MonkeyPatch) -> Jar:
    """A lock file of one jar."""
    jar = Jar("org.example", "thing", "1.2", hashlib.sha256(BODY).hexdigest())
    monkeypatch.setattr(jars, "read_lock", lambda *_: [jar])
    return jar


@pytest.fixture
def mirror(tmp_path: Path, lock: Jar) -> Path:
    """A Maven repository in a folder, with that jar."""
    place = tmp_path / "maven" / "org" / "example" / "thing" / "1.2"
    place.mkdir(parents=True)
    (place / lock.file).write_bytes(BODY)
    return tmp_path / "maven"


def _settings(mirror: Path | str, cache: Path) -> JarSettings:
    root = mirror.as_uri() if isinstance(mirror, Path) else mirror
    return JarSettings(mirror=SecretStr(root), cache=cache)


@pytest.mark.parametrize("name", [KAFKA, SPARK])
def test_locks_are_whole(name: str) -> None:
    """Each locked jar has a SHA-256 and a file name of its own, and no line names a host."""
    locked = read_lock(name)
    assert len(locked) == len({jar.file for jar in locked})
    assert all(len(jar.sha256) == 64 and int(jar.sha256, 16) for jar in locked)
    assert "://" not in (Path(jars.__file__).parent / name).read_text("utf-8")


def test_a_jar_is_fetched_once(tmp_path: Path, mirror: Path, lock: Jar) -> None:
    """A cached jar needs no network, no mirror and no progress."""
    seen: list[tuple[int, int]] = []
    folder = ensure_jars(SPARK, _settings(mirror, tmp_path / "cache"), lambda *numbers: seen.append(numbers))
    assert [BODY] == [path.read_bytes() for path in folder.glob("*.jar")]
    assert seen[-1] == (1, 1)
    seen.clear()
    assert folder == ensure_jars(SPARK, _settings("nowhere:", tmp_path / "cache"), lambda *parts: seen.append(parts))
    assert not seen


def test_a_damaged_jar_is_fetched_again(tmp_path: Path, mirror: Path, lock: Jar) -> None:
    """A jar that was cut short in the cache is not used."""
    path = ensure_jars(SPARK, _settings(mirror, tmp_path / "cache")) / lock.file
    path.write_bytes(BODY[:4])
    ensure_jars(SPARK, _settings(mirror, tmp_path / "cache"))
    assert path.read_bytes() == BODY


def test_another_jar_is_refused(tmp_path: Path, mirror: Path, lock: Jar) -> None:
    """A jar whose SHA-256 differs from the lock file never gets into the cache."""
    next(mirror.rglob("*.jar")).write_bytes(b"something else")
    with pytest.raises(OperationalError, match="not the one that was locked"):
        ensure_jars(SPARK, _settings(mirror, tmp_path / "cache"))
    assert not list((tmp_path / "cache").rglob("*.jar"))


def test_no_network_is_one_line_without_secrets(tmp_path: Path, lock: Jar) -> None:
    """An unreachable mirror is reported with a remedy, and its password is not shown."""
    with pytest.raises(OperationalError) as failure:
        ensure_jars(SPARK, _settings("http://me:hush@127.0.0.1:9/maven", tmp_path / "cache"))
    text = f"{failure.value.message} {failure.value.hint}"
    assert lock.file in text
    assert "CQ_JARS_MIRROR" in text
    assert "hush" not in text
    assert "\n" not in text


def test_what_a_killed_fetch_left_goes(tmp_path: Path, mirror: Path, lock: Jar) -> None:
    """A folder of an interrupted fetch is swept by the next one."""
    folder = ensure_jars(SPARK, _settings(mirror, tmp_path / "cache"))
    (folder / lock.file).unlink()
    (folder / ".fetch-old").mkdir()
    ensure_jars(SPARK, _settings(mirror, tmp_path / "cache"))
    assert {lock.file, ".lock"} == {path.name for path in folder.iterdir()}


def test_no_java_is_one_line(tmp_path: Path) -> None:
    """Without a Java the line says which ones will do."""
    with pytest.raises(OperationalError, match="no Java was found") as failure:
        find_java({"PATH": str(tmp_path)})
    assert "17 or 21" in str(failure.value.hint)


def _java(home: Path, version: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    script = f"echo '    java.home = {home}' >&2\necho '    java.specification.version = {version}' >&2\n"
    java.write_text(f"#!/bin/sh\n{script}")
    java.chmod(0o755)
    return java.parent


def test_a_wrong_java_home_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """If a second Java exists, it is used, and a line names the unusable Java with the reason."""
    found = _java(tmp_path / "new", "17")
    for _ in range(2):
        assert 17 == find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(found)}).version
    (line,) = caplog.messages
    assert f"JAVA_HOME is passed over: {tmp_path}/gone/bin/java does not run; Java 17 of {tmp_path}/new is used" == line


def test_an_old_java_is_named(tmp_path: Path) -> None:
    """An unsupported Java is told with its place and version."""
    _java(tmp_path, "1.8")
    with pytest.raises(OperationalError, match=r"no supported Java: .*bin/java is Java 8"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": ""})
