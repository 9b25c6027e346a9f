"""Certificates of one day, by openssl: an authority, a server's and a client's certificate signed by it."""

from __future__ import annotations

import subprocess
from pathlib import Path

__all__ = ["make_certificates", "openssl"]

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def openssl(folder: Path, *arguments: str, data: bytes | None = None) -> bytes:
    """Run openssl in a folder and return its output."""
    return subprocess.run(["openssl", *arguments], cwd=folder, input=data, capture_output=True, check=True).stdout


def make_certificates(folder: Path) -> None:
    """Write ``ca.pem``, and certificate, key and both together of ``server`` and ``client``."""
    openssl(folder, "req", "-x509", *_KEY, "-keyout", "ca.key", "-out", "ca.pem", "-days", "1", "-subj", "/CN=ca")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    signing = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "1", "-extfile", "names")
    for name in ("server", "client"):
        openssl(folder, "req", *_KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.pem", *signing)
        (folder / f"{name}.both").write_text(
            (folder / f"{name}.key").read_text() + (folder / f"{name}.pem").read_text()
        )
