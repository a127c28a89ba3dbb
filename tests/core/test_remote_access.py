"""Access to an engine on another machine: addresses, and where keys are sent and stored."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from decodescope import core
from decodescope.core.errors import AddressError, EngineAccessError
from decodescope.core.remote import Address, address, find_key, forget_key, parse
from decodescope.core.remote.remote_model import connect
from tests.core.remote_requests import make_request
from tests.fake_remote_engine import FakeEngine


def test_api_keys_are_sent_only_to_their_own_server(
    machine: FakeEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secret = machine.key = "sk-very-secret"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another")
    with pytest.raises(EngineAccessError, match="401"):
        connect(machine.name())
    assert machine.keys == [""]  # OPENAI_API_KEY is for another machine
    monkeypatch.setenv("DECODESCOPE_API_KEY", "sk-wrong-one")
    with pytest.raises(EngineAccessError) as wrong:
        connect(machine.name())
    assert "sk-wrong-one" not in str(wrong.value) + wrong.value.details
    model = core.load(machine.name(), key=secret)
    core.run(model, make_request())
    assert machine.keys[-1] == f"Bearer {secret}"
    list(core.record(tmp_path / "run.trace", core.stream(model, make_request()), make_request()))
    assert secret.encode() not in (tmp_path / "run.trace").read_bytes()
    assert secret not in repr(model)
    assert find_key(model.address) == secret
    forget_key(model.address)
    assert find_key(model.address) == "sk-wrong-one"


RING = """
class Ring:
    priority, is_locked, kept = 5, False, {}

ring = Ring()

def get_keyring():
    return ring

def _open(what):
    asked.append(what)
    if ring.is_locked:
        raise RuntimeError("Prompt dismissed.")

asked = []

def get_password(service, user):
    _open("get")
    return ring.kept.get((service, user))

def set_password(service, user, key):
    _open("set")
    ring.kept[service, user] = key

def delete_password(service, user):
    _open("delete")
    del ring.kept[service, user]
"""
"""A keyring as the package of that name gives it: it was held against gnome-keyring's Secret Service."""


@pytest.fixture
def ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    (tmp_path / "keyring.py").write_text(RING, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "keyring", raising=False)
    monkeypatch.setattr(address, "_session_keys", {})
    yield importlib.import_module("keyring")
    sys.modules.pop("keyring", None)


def test_keyring_keeps_a_key_after_the_program_ends(ring: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = parse("https://engine.example:8000/v1#m")
    assert address.has_keyring()
    assert address.keep_key(engine, " sk-é测 ", lasting=True)
    monkeypatch.setattr(address, "_session_keys", {})  # as after a restart of the program
    assert find_key(engine) == "sk-é测"
    assert find_key(parse("https://other.example/v1")) == ""
    forget_key(engine)
    assert (find_key(engine), ring.ring.kept) == ("", {})
    address.keep_key(engine, "sk-1", lasting=True)
    address.keep_key(engine, "", lasting=True)
    assert ring.ring.kept == {}


def test_locked_keyring_is_queried_once(ring: Any) -> None:
    engine, ring.ring.is_locked = parse("https://engine.example/v1"), True
    for _ in range(3):
        assert find_key(engine) == ""
    assert ring.asked == ["get"]
    assert not address.keep_key(engine, "sk-1", lasting=True)
    assert find_key(engine) == "sk-1"


def test_missing_keyring_is_detected(ring: Any) -> None:
    ring.ring.priority = 0
    assert not address.has_keyring()
    assert address.has_keyring_package()


@pytest.mark.parametrize(
    "text", ["ftp://host/v1", "http://", "https://ho st/v1", "http://name:pass@localhost/v1", "https://h/v1?key=secret",
             "http://example.com/v1", "http://10.0.0.1:8000/v1"],
)  # fmt: skip
def test_invalid_addresses_raise_an_error_without_secrets(text: str) -> None:
    with pytest.raises(AddressError) as error:
        parse(text)
    assert "pass" not in error.value.cause.split(" ")
    assert "secret" not in str(error.value)


def test_addresses_are_parsed() -> None:
    here = parse("http://localhost:8000#org/name")
    assert here == Address("http", "localhost", 8000, "/v1", "org/name")
    assert str(here) == "http://localhost:8000/v1#org/name"
    assert parse("http://[::1]:8000/v1").is_here
    assert parse("http://10.0.0.1/v1", allow_plain=True).base == "http://10.0.0.1/v1"
    assert parse("https://api.example.com/openai/v1#m").root == "/openai"
