"""An archive of Kafka's Java classes is used if there is one."""

from __future__ import annotations

from pathlib import Path

from gateway.local.java import Java
from gateway.local.kafka import archive_path, kafka_program


def _java(home: Path) -> Java:
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text(str(home))
    return Java(home, 17)


def _options(java: Java, jars: Path) -> list[str]:
    program = kafka_program(jars / "kafka", jars / "log", (1, 2), java, jars)
    return [each for each in program.command if "Archive" in each or "-Xlog" in each]


def test_without_an_archive_nothing_is_asked_of_java(tmp_path: Path) -> None:
    assert [] == _options(_java(tmp_path / "java"), tmp_path)


def test_an_archive_is_named_and_java_does_not_report_one_that_does_not_fit(tmp_path: Path) -> None:
    java = _java(tmp_path / "java")
    path = archive_path(java, tmp_path)
    path.touch()
    assert [f"-XX:SharedArchiveFile={path}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"] == _options(java, tmp_path)


def test_each_java_has_an_archive_of_its_own(tmp_path: Path) -> None:
    first, other = (archive_path(_java(tmp_path / name), tmp_path) for name in ("first", "other"))
    assert first != other
