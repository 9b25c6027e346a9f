"""Tokens of commands: the gateway takes the SDK's signatures, and nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from jwt.algorithms import RSAAlgorithm

from gateway.access.key_url import KeyUrl
from gateway.access.keys import KeyFile
from gateway.access.tokens import OidcRules, TokenCheck
from gateway.commands.requests import Request, RequestReader
from gateway.kafka import Record
from gateway.sdk import SigningKey, SigningUnavailable
from grouping.model.errors import OperationalError
from grouping.settings.settings import AuthSettings, CommandSettings, Settings

AT = 1_790_000_000
AUDIENCE = "cq.commands"
COMMAND = ("alice", "c1", "SHOW CQS")
PRIVATE = {
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
    "RS256": rsa.generate_private_key(65537, 2048),
}
SECRET = base64.urlsafe_b64encode(bytes(range(32))).rstrip(b"=").decode()


def _private_pem(key: Any) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _folder(path: Path, **keys: Any) -> Path:
    for name, key in keys.items():
        text = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (path / f"{name}.pem").write_bytes(text)
    return path


def _jwks(path: Path, *keys: dict[str, Any]) -> Path:
    file = path / "keys.json"
    file.write_text(json.dumps({"keys": keys}))
    return file


def _check(path: Path) -> TokenCheck:
    return TokenCheck(KeyFile(path), AUDIENCE, 30, 3600)


def test_a_token_is_for_one_cluster(tmp_path: Path) -> None:
    """If two gateways trust the same key, separate audiences keep a token for one from the other."""
    key = PRIVATE["EdDSA"]
    keys = _folder(tmp_path, alice=key)
    checks = {
        name: TokenCheck.of(Settings(auth=AuthSettings(keys=keys, audience=name))) for name in ("", "live", "staging")
    }
    signed = {
        name: SigningKey(_private_pem(key), audience=name or None, clock=lambda: AT).token(AUDIENCE, *COMMAND)
        for name in checks
    }
    for name, check in checks.items():
        taken = [other for other, token in signed.items() if _detail(check, token) is None]
        assert [name] == taken
    assert "Its token does not fit the command; the wrong claims are: aud." == _detail(
        checks["live"], signed["staging"]
    )


def _detail(
    check: TokenCheck, token: bytes | None, command: tuple[str, str, str] = COMMAND, at: float = AT
) -> str | None:
    refusal = check.refusal(token, *command, round(at * 1000))
    assert refusal is None or refusal.code == "not-allowed"
    return None if refusal is None else refusal.detail


@pytest.mark.parametrize("algorithm", PRIVATE)
def test_a_folder_of_public_keys(tmp_path: Path, algorithm: str) -> None:
    """A subscriber's own key speaks for it in each algorithm, from a PEM text and from a file, and for nobody else."""
    key = PRIVATE[algorithm]
    check = _check(_folder(tmp_path, alice=key))
    (tmp_path / "private").write_text(_private_pem(key))
    for given in (_private_pem(key), tmp_path / "private"):
        signer = SigningKey(given, clock=lambda: AT)
        assert _detail(check, signer.token(AUDIENCE, *COMMAND)) is None
        for other in (("bob", "c1", "SHOW CQS"), ("alice2", "c1", "SHOW CQS")):
            assert "signed by a key" in (_detail(check, signer.token(AUDIENCE, *other), other) or "")


def test_a_token_is_of_one_command(tmp_path: Path) -> None:
    """A token does not fit a different id, text or gateway; the detail names the difference."""
    check = _check(_folder(tmp_path, alice=PRIVATE["EdDSA"]))
    signer = SigningKey(_private_pem(PRIVATE["EdDSA"]), clock=lambda: AT)
    token = signer.token(AUDIENCE, *COMMAND)
    assert (
        _detail(check, token, ("alice", "c2", "SHOW CQS"))
        == "Its token does not fit the command; the wrong claims are: jti."
    )
    assert (
        _detail(check, token, ("alice", "c1", "DROP CQ a"))
        == "Its token does not fit the command; the wrong claims are: text_sha256."
    )
    assert (
        _detail(check, signer.token("dev.commands", *COMMAND))
        == "Its token does not fit the command; the wrong claims are: aud."
    )


def test_a_token_is_of_its_time(tmp_path: Path) -> None:
    """Clocks may differ by the skew at both ends; it may not be valid for longer than the setting says."""
    check = _check(_folder(tmp_path, alice=PRIVATE["EdDSA"]))
    token = SigningKey(_private_pem(PRIVATE["EdDSA"]), clock=lambda: AT).token(AUDIENCE, *COMMAND)
    fits = {second: _detail(check, token, at=AT + second) is None for second in (-31, -30, 0, 629, 630)}
    assert {-31: False, -30: True, 0: True, 629: True, 630: False} == fits
    claims = jwt.decode(token, options={"verify_signature": False})
    for exp in (claims["iat"], claims["iat"] + 3601):
        long = jwt.encode(claims | {"exp": exp}, PRIVATE["EdDSA"], "EdDSA", {"kid": "alice"}).encode()
        assert "is valid for" in (_detail(check, long) or "")
    for number in (float("nan"), float("inf"), -1, 10**400, "1", None):
        odd = jwt.encode(claims | {"iat": number, "exp": number}, PRIVATE["EdDSA"], "EdDSA", {"kid": "alice"}).encode()
        assert _detail(check, odd), number


def test_the_algorithm_is_the_key_files(tmp_path: Path) -> None:
    """A token without a signature, or an HMAC by the text of a public key, is nobody's."""
    folder = _folder(tmp_path, alice=PRIVATE["ES256"])
    check = _check(folder)
    good = SigningKey(_private_pem(PRIVATE["ES256"]), clock=lambda: AT).token(AUDIENCE, *COMMAND)
    claims = jwt.decode(good, options={"verify_signature": False})
    unsigned = jwt.encode(claims, "", "none", {"kid": "alice"}).encode()

    def part(value: object) -> bytes:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=")

    signed = part({"alg": "HS256", "kid": "alice"}) + b"." + part(claims)
    hmac = jwt.get_algorithm_by_name("HS256")
    confused = signed + b"." + base64.urlsafe_b64encode(hmac.sign(signed, (folder / "alice.pem").read_bytes()))
    deep = part({"alg": "ES256", "kid": "alice"}) + b"." + base64.urlsafe_b64encode(b"[" * 100_000) + b".x"
    mallory = jwt.encode(claims, PRIVATE["EdDSA"], "EdDSA", {"kid": "alice"}).encode()
    for token in (unsigned, confused, deep, mallory, b"", b"...", b"\xff.\xff.\xff", good[:-6]):
        assert "signed by a key" in (_detail(check, token) or ""), token[:80]
    assert "The command has no token." == _detail(check, None)


def test_a_key_set(tmp_path: Path) -> None:
    """A key speaks for the names that its `subscribers` matches, else for its kid; an issuer's tokens name it."""
    own = {"kty": "oct", "kid": "alice", "alg": "HS256", "k": SECRET}
    public = json.loads(jwt.get_algorithm_by_name("ES256").to_jwk(PRIVATE["ES256"].public_key()))
    issuer = public | {"kid": "desk", "alg": "ES256", "subscribers": ["desk-*", "bob"], "iss": "https://desk"}
    check = _check(_jwks(tmp_path, own, issuer))
    assert _detail(check, SigningKey(json.dumps(own), clock=lambda: AT).token(AUDIENCE, *COMMAND)) is None
    private = json.loads(jwt.get_algorithm_by_name("ES256").to_jwk(PRIVATE["ES256"])) | {"kid": "desk"}
    signer = SigningKey(json.dumps(private | {"iss": "https://desk"}), clock=lambda: AT)
    for name, fits in {"bob": True, "desk-7": True, "alice": False}.items():
        command = (name, "c1", "SHOW CQS")
        assert fits is (_detail(check, signer.token(AUDIENCE, *command), command) is None), name
    nameless = SigningKey(json.dumps(private), clock=lambda: AT)
    command = ("bob", "c1", "SHOW CQS")
    assert "signed by a key" in (_detail(check, nameless.token(AUDIENCE, *command), command) or "")


@pytest.mark.parametrize(
    "change",
    [
        {"alg": "none"},
        {"alg": "RS256"},
        {"k": "c2hvcnQ"},
        {"kty": "EC", "alg": "ES256", "crv": "P-256", "x": "AA", "y": "AA"},
        {"kty": "OKP", "alg": "EdDSA", "crv": "Ed25519", "x": SECRET, "d": SECRET},
    ],
)
def test_a_key_that_is_none(tmp_path: Path, change: dict[str, str]) -> None:
    """The gateway does not start with an unknown algorithm, a weak secret, a broken key or a private one."""
    own = {"kty": "oct", "kid": "alice", "alg": "HS256", "k": SECRET}
    with pytest.raises(OperationalError, match="cannot be read") as raised:
        KeyFile(_jwks(tmp_path, own | change))
    assert SECRET not in f"{raised.value.detail}"


def test_keys_that_change(tmp_path: Path) -> None:
    """A key that is added counts from the next batch on; a key that cannot be read any more counts no more."""
    file = KeyFile(_folder(tmp_path, alice=PRIVATE["EdDSA"]))
    _folder(tmp_path, bob=PRIVATE["ES256"])
    file.refresh(1000)
    assert {"alice", "bob"} == file.keys.keys()
    (tmp_path / "bob.pem").write_text("rubbish")
    file.refresh(2000)
    assert {"alice"} == file.keys.keys()
    (tmp_path / "alice.pem").unlink()
    file.refresh(2999)
    assert {"alice"} == file.keys.keys(), "a second has not passed"
    file.refresh(3000)
    assert not file.keys


def test_a_broken_key_set_keeps_no_revoked_key(tmp_path: Path) -> None:
    """The readable entries of a key set count; an unreadable file has no keys."""
    keys = [{"kty": "oct", "kid": name, "alg": "HS256", "k": SECRET} for name in ("alice", "bob", "carol")]
    file = KeyFile(_jwks(tmp_path, *keys))
    _jwks(tmp_path, keys[0], keys[1] | {"k": "c2hvcnQ"})
    file.refresh(1000)
    assert {"alice"} == file.keys.keys()
    (tmp_path / "keys.json").write_text('{"keys": [')
    file.refresh(2000)
    assert not file.keys


def test_a_token_that_begins_later_and_is_for_several(tmp_path: Path) -> None:
    """`nbf` counts as `iat` does; `aud` may be a list that has the gateway."""
    check = _check(_folder(tmp_path, alice=PRIVATE["EdDSA"]))
    token = SigningKey(_private_pem(PRIVATE["EdDSA"]), clock=lambda: AT).token(AUDIENCE, *COMMAND)
    claims = jwt.decode(token, options={"verify_signature": False})

    def detail(**changed: Any) -> str | None:
        signed = jwt.encode(claims | changed, PRIVATE["EdDSA"], "EdDSA", {"kid": "alice"})
        return _detail(check, signed.encode())

    assert [None, None] == [detail(nbf=AT + 30), detail(aud=["other", AUDIENCE])]
    assert detail(nbf=AT + 31) == "Its token was not valid yet when Kafka took the command in."
    assert detail(aud=["other"]) == detail(aud=[]) == "Its token does not fit the command; the wrong claims are: aud."
    assert detail(text_sha256=None) == "Its token does not fit the command; the wrong claims are: text_sha256."


class _Issuer(BaseHTTPRequestHandler):
    body = b""

    def do_GET(self) -> None:
        """Answer with the key set."""
        self.send_response(200 if self.body else 503)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


def test_tokens_of_an_issuer(tmp_path: Path) -> None:
    """Ordinary OIDC tokens count for whom their subject is, by the issuer's keys, which may be used for an hour."""
    public = json.loads(RSAAlgorithm.to_jwk(PRIVATE["RS256"].public_key())) | {"kid": "i1", "use": "sig"}
    now, kept = [0.0], {"kty": "oct", "kid": "file", "alg": "HS256", "k": SECRET, "subscribers": ["*"]}
    with HTTPServer(("127.0.0.1", 0), _Issuer) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        keys = KeyUrl(f"http://127.0.0.1:{server.server_port}/jwks", "https://issuer", lambda: now[0])
        rules = OidcRules("email", {"ann@example.com": "alice"})
        check = TokenCheck(KeyFile(_jwks(tmp_path, kept)), AUDIENCE, 30, 3600, keys, rules)
        claims: dict[str, Any] = {"aud": [AUDIENCE], "iat": AT, "exp": AT + 600, "iss": "https://issuer"}
        claims |= {"sub": "auth0|7", "email": "ann@example.com"}

        def code(command: tuple[str, str, str] = COMMAND, key: str = "i1", **changed: Any) -> str | None:
            token = jwt.encode(claims | changed, PRIVATE["RS256"], "RS256", {"kid": key}).encode()
            refusal = check.refusal(token, *command, AT * 1000)
            return None if refusal is None else refusal.code

        assert "unavailable" == code(), "the issuer has told no keys yet"
        with pytest.raises(OSError):
            keys.read()
        _Issuer.body = json.dumps({"keys": [public, {"kty": "EC", "kid": "odd", "crv": "P-521"}]}).encode()
        keys.read()
        assert [None, None] == [code(), code(("alice", "c2", "DROP CQ a"))]
        assert ["not-allowed"] * 5 == [
            code(("bob", "c1", "SHOW CQS")),
            code(email="alice"),
            code(email="alice", sub="alice"),
            code(iss="https://other"),
            code(key="odd"),
        ]
        text_hash = base64.urlsafe_b64encode(hashlib.sha256(b"SHOW CQS").digest()).rstrip(b"=").decode()
        assert code(text_sha256=text_hash, jti="c1") is None
        assert "not-allowed" == code(("alice", "c1", "DROP CQ a"), text_sha256=text_hash, jti="c1")
        now[0] = 3600.0
        assert "unavailable" == code()
        server.shutdown()


def _request(reader: RequestReader, token: bytes | None) -> Request:
    subscriber, command_id, text = COMMAND
    value = json.dumps({"command_id": command_id, "subscriber": subscriber, "text": text}).encode()
    headers = [] if token is None else [("cq_token", token)]
    return reader.checked(reader.read(Record(AUDIENCE, 0, 0, AT * 1000, b"alice", value, headers)))


def test_a_refused_command_uses_up_nothing(tmp_path: Path) -> None:
    """Neither its command id nor the rate of its subscriber is used up; without the setting no token is needed."""
    auth = AuthSettings(mode="token", keys=_folder(tmp_path, alice=PRIVATE["EdDSA"]))
    settings = Settings(auth=auth)
    reader = RequestReader(settings, lambda name: 1)
    token = SigningKey(_private_pem(PRIVATE["EdDSA"]), clock=lambda: AT).token(AUDIENCE, *COMMAND)
    for _ in range(20):
        forged = _request(reader, None)
        refusal = reader.refusal(forged, AT * 1000)
        assert forged.remember is None
        assert refusal is not None
        assert "not-allowed" == refusal.code
    signed = _request(reader, token)
    assert reader.refusal(signed, AT * 1000) is None
    assert signed.remember is not None
    assert _request(RequestReader(Settings(), lambda name: 0), None).refusal is None


def test_settings_that_do_not_fit(tmp_path: Path) -> None:
    """Tokens need keys, and may not outlive the memory of command ids."""
    with pytest.raises(OperationalError, match="no keys are set"):
        TokenCheck.of(Settings(auth=AuthSettings(mode="token")))
    auth = AuthSettings(mode="token", keys=_folder(tmp_path, alice=PRIVATE["EdDSA"]))
    with pytest.raises(OperationalError, match="longer than command ids"):
        TokenCheck.of(Settings(auth=auth, commands=CommandSettings(remember_days=0.01)))


def test_a_signing_key_that_is_none(tmp_path: Path) -> None:
    """The error and the representation never show the key."""
    for given in (
        "{}",
        f'{{"kty": "none", "k": "{SECRET}"}}',
        "-----BEGIN PRIVATE KEY-----\nAAAA",
    ):
        with pytest.raises(SigningUnavailable) as raised:
            SigningKey(given)
        assert SECRET not in str(raised.value)
    with pytest.raises(SigningUnavailable, match="cannot be read"):
        SigningKey(tmp_path / "nowhere")
    assert "SigningKey(EdDSA, kid=None)" == repr(SigningKey(_private_pem(PRIVATE["EdDSA"])))
    assert "PRIVATE" not in repr(AuthSettings(signing_key=_private_pem(PRIVATE["EdDSA"])))
