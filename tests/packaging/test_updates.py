"""The check for new versions: contacted servers, accepted notices, and intervals."""

import base64
import json
import threading

import pytest

pytest.importorskip("cryptography")

import update_notice

from decodescope.app.control.messages import Messages
from decodescope.app.features.updates import controller, session, state
from decodescope.app.features.updates.state import ReleaseNotice, UpdateError, UpdateSource
from decodescope.app.storage.settings import UpdatesSection
from tests.local_server import RequestHandler, serving

PAGE = "https://example.org/decodescope/1.2.0"


class Publisher:
    """A server that publishes a signed notice and counts its requests."""

    def __init__(self, folder) -> None:
        self.key_file = folder / "private.pem"
        self.public_key = base64.b64decode(update_notice.make_key(self.key_file))
        self.document = update_notice.sign_notice(self.key_file, "1.2.0", PAGE).encode()
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.status, self.location = 200, ""
        self.address = ""

    @property
    def source(self) -> UpdateSource:
        return UpdateSource(self.address, self.public_key)


@pytest.fixture
def publisher(tmp_path):
    published = Publisher(tmp_path)

    class ReleaseHandler(RequestHandler):
        def do_GET(self) -> None:
            published.requests.append((self.path, dict(self.headers)))
            self.send_response(published.status)
            if published.location:
                self.send_header("Location", published.location)
            self.end_headers()
            self.wfile.write(published.document)

    with serving(ReleaseHandler, threading.Event()) as address:
        published.address = f"{address}/notice.json"
        yield published


class Notices(Messages):
    """Collects notices instead of showing them."""

    def __init__(self) -> None:
        super(Messages, self).__init__()
        self.shown: list[tuple[str, str]] = []

    def show_notice(self, text, title="", actions=()) -> None:
        self.shown.append((title, text))


@pytest.fixture
def notices(qapp):
    return Notices()


@pytest.fixture
def updates(publisher, notices, monkeypatch):
    """A controller whose program was built with the publisher's address and key; switched on and agreed to."""
    monkeypatch.setattr(controller, "read_source", lambda: publisher.source)
    monkeypatch.setattr(controller, "own_version", lambda: "1.0.0rc1 (from source)")
    made = controller.UpdateController(notices, UpdatesSection(check=True, agreed=True), notices)
    yield made
    made.stop()


def check(updates, qtbot) -> None:
    with qtbot.waitSignal(updates.checked):
        updates.check_if_due()


def test_a_new_version_is_shown_and_one_address_is_contacted_once_a_week(updates, publisher, notices, qtbot):
    check(updates, qtbot)
    assert [(title, "1.2.0" in text) for title, text in notices.shown] == [("New version", True)]
    (path, headers) = publisher.requests[0]
    assert path == "/notice.json"
    assert headers["User-Agent"] == "Decodescope", "neither version nor system"
    assert {"Cookie", "Referer", "Accept-Language"}.isdisjoint(headers)
    updates.check_if_due()
    assert not updates._tasks.is_running("updates"), "it was done this week"
    assert len(publisher.requests) == 1


@pytest.mark.parametrize("settings", [{}, {"check": True}, {"agreed": True}])
def test_disabled_update_check_contacts_no_server(publisher, notices, monkeypatch, settings):
    monkeypatch.setattr(controller, "read_source", lambda: publisher.source)
    made = controller.UpdateController(notices, UpdatesSection(**settings), notices)
    made.check_if_due()
    assert not made._tasks.is_running("updates")
    assert not made.is_due(20_000)
    assert publisher.requests == []


def test_update_check_is_due_after_a_week(notices):
    made = controller.UpdateController(notices, UpdatesSection(check=True, agreed=True, last_day=20_000), notices)
    assert [made.is_due(day) for day in (19_999, 20_000, 20_006, 20_007)] == [True, False, False, True]


@pytest.mark.parametrize("version", ["1.0.0b1", "0.9", "1.0.0rc1", "not a version"])
def test_a_version_that_is_not_newer_is_not_shown(updates, publisher, notices, qtbot, version):
    publisher.document = update_notice.sign_notice(publisher.key_file, version, PAGE).encode()
    check(updates, qtbot)
    assert notices.shown == []


def test_a_forged_answer_is_reported_and_not_used(updates, publisher, notices, qtbot, tmp_path):
    other = tmp_path / "other.pem"
    update_notice.make_key(other)
    publisher.document = update_notice.sign_notice(other, "9.9.9", "https://example.org/evil").encode()
    check(updates, qtbot)
    ((_, text),) = notices.shown
    assert publisher.address in text
    assert "signature" in text
    assert "9.9.9" not in text
    assert "evil" not in text
    assert updates._page == ""


def test_failed_check_is_silent_and_retried_at_the_next_start(updates, publisher, notices, qtbot):
    publisher.status = 503
    check(updates, qtbot)
    assert notices.shown == []
    publisher.status = 200
    check(updates, qtbot)
    assert len(notices.shown) == 1


def test_a_redirection_is_not_followed(publisher):
    publisher.status, publisher.location = 302, publisher.address.replace("notice", "elsewhere")
    with pytest.raises(UpdateError, match="302"):
        session.fetch_notice(publisher.address)
    assert [path for path, _ in publisher.requests] == ["/notice.json"]


def test_an_answer_without_end_is_cut_off(publisher):
    publisher.document = b"x" * (session.MAX_BYTES + 1)
    with pytest.raises(UpdateError, match="too long"):
        session.fetch_notice(publisher.address)


def test_unreachable_server_raises_update_error():
    with pytest.raises(UpdateError, match="cannot be reached"):
        session.fetch_notice("http://127.0.0.1:9/notice.json")


def signed(publisher, content: bytes) -> bytes:
    """Return a document with any content, signed by the publisher."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    signature = load_pem_private_key(publisher.key_file.read_bytes(), None).sign(content)
    parts = {"notice": content, "signature": signature}
    return json.dumps({name: base64.b64encode(value).decode() for name, value in parts.items()}).encode()


def test_only_complete_notices_of_this_program_are_accepted(publisher):
    complete = {"program": "decodescope", "version": "1.2.0", "page": PAGE}
    document = signed(publisher, json.dumps(complete).encode())
    assert state.verify_notice(document, publisher.public_key) == ReleaseNotice("1.2.0", PAGE)
    for change in (
        {"program": "another"}, {"version": None}, {"version": ""}, {"version": "1" * 41},
        {"page": "http://example.org"}, {"page": "file:///etc/passwd"}, {"page": "javascript:alert(1)"}, {"page": 3},
    ):  # fmt: skip
        with pytest.raises(UpdateError) as raised:
            state.verify_notice(signed(publisher, json.dumps(complete | change).encode()), publisher.public_key)
        assert raised.value.is_suspicious
    for content in (b"[]", b"not JSON", b"\xff", b'{"program": "decodescope"}'):
        with pytest.raises(UpdateError):
            state.verify_notice(signed(publisher, content), publisher.public_key)


@pytest.mark.parametrize(
    "document",
    [b"", b"{}", b"[]", b"null", b'{"notice": "e30=", "signature": ""}', b'{"notice": 1, "signature": 2}', b"\xff" * 9,
     b'{"notice": "e30=", "signature": "%s"}' % (b"A" * 88), b"[" * 60_000],
)  # fmt: skip
def test_damaged_document_raises_update_error(publisher, document):
    with pytest.raises(UpdateError) as raised:
        state.verify_notice(document, publisher.public_key)
    assert raised.value.is_suspicious


def test_changed_byte_fails_the_signature_check(publisher):
    outer = json.loads(publisher.document)
    content = base64.b64decode(outer["notice"]).replace(b"1.2.0", b"1.2.1")
    outer["notice"] = base64.b64encode(content).decode()
    with pytest.raises(UpdateError, match="signature"):
        state.verify_notice(json.dumps(outer).encode(), publisher.public_key)


def test_the_source_is_read_from_a_file_and_may_be_missing(tmp_path):
    key = base64.b64encode(bytes(32)).decode()
    file = tmp_path / "updates.toml"
    assert state.read_source(file) is None
    for text, found in (
        (f'address = "https://example.org/n.json"\npublic_key = "{key}"', True),
        (f'address = "http://example.org/n.json"\npublic_key = "{key}"', False),
        (f'address = ""\npublic_key = "{key}"', False),
        ('address = "https://example.org/n.json"\npublic_key = "AAAA"', False),
        ('address = "https://example.org/n.json"\npublic_key = "*"', False),
        ("address = 3\npublic_key = 4", False),
        ("not TOML", False),
    ):
        file.write_text(text)
        assert (state.read_source(file) is not None) is found, text
    assert state.why_unavailable(None)
    assert state.why_unavailable(UpdateSource("https://example.org", bytes(32))) == ""


def test_the_source_of_this_copy_is_empty_or_valid():
    """Either nothing is announced anywhere, and the check cannot be switched on, or both texts are filled in."""
    import tomllib

    from decodescope import resources

    table = tomllib.loads(resources.path("updates.toml").read_text(encoding="utf-8"))
    assert (state.read_source() is not None) == any(table.values())


def test_script_creates_a_private_key_and_does_not_replace_it(tmp_path, capsys):
    key = tmp_path / "private.pem"
    assert update_notice.main(["key", str(key)]) == 0
    public = base64.b64decode(capsys.readouterr().out)
    assert key.stat().st_mode & 0o077 == 0
    assert update_notice.main(["key", str(key)]) == 1
    assert "exists" in capsys.readouterr().err
    assert update_notice.main(["sign", str(key), "--version", "2.0", "--page", PAGE]) == 0
    assert state.verify_notice(capsys.readouterr().out.encode(), public) == ReleaseNotice("2.0", PAGE)
    (tmp_path / "no.pem").write_text("x")
    assert update_notice.main(["sign", str(tmp_path / "no.pem"), "--version", "2.0", "--page", PAGE]) == 1
