"""Selection of a Python interpreter, and the error if there is none."""

import sys

import pytest
from bootstrap_parts import interpreters
from bootstrap_parts.errors import SetupError


@pytest.mark.parametrize(
    ("version", "expected"),
    [((3, 10, 14), False), ((3, 11, 0), True), ((3, 12, 7), True), ((3, 13, 1), True), ((3, 14, 0), False)],
)
def test_range_is_that_of_the_project(version, expected):
    assert interpreters.suits(version) is expected


def test_range_agrees_with_pyproject(root):
    low, high = interpreters.OLDEST, interpreters.NEWEST
    expected = f'requires-python = ">={low[0]}.{low[1]},<{high[0]}.{high[1] + 1}"'
    assert expected in (root / "pyproject.toml").read_text()


def test_32_bit_python_is_not_suitable():
    assert not interpreters.suits((3, 12), is_64_bit=False)


def test_this_python_is_kept():
    assert interpreters.other_than_this() is None


def test_another_python_is_found(monkeypatch, capsys):
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    monkeypatch.setattr(interpreters, "candidates", lambda: [["stub"], ["python3.12"]])
    monkeypatch.setattr(interpreters, "version_of", lambda command: {"python3.12": (3, 12)}.get(command[0]))
    assert interpreters.other_than_this() == ["python3.12"]
    assert "this is Python 3.9; going on with python3.12" in capsys.readouterr().out


def test_missing_python_error_names_the_required_versions(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 14, 0))
    monkeypatch.setattr(interpreters, "candidates", list)
    with pytest.raises(SetupError) as caught:
        interpreters.other_than_this()
    assert "3.11, 3.12 or 3.13; this is Python 3.14" in str(caught.value)
    assert "install one" in caught.value.remedy


def test_newest_names_come_first(monkeypatch):
    monkeypatch.setattr(interpreters, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(interpreters.os, "name", "posix")
    assert [command[0] for command in interpreters.candidates()][:3] == [
        "/bin/python3.13",
        "/bin/python3.12",
        "/bin/python3.11",
    ]


def test_version_is_read_from_the_interpreter():
    assert interpreters.version_of([sys.executable]) == sys.version_info[:2]


def test_stub_that_only_prints_advice_has_no_version(tmp_path):
    stub = tmp_path / "python3.12"
    stub.write_text("#!/bin/sh\necho 'python3.12: command not found, but can be installed' >&2\nexit 127\n")
    stub.chmod(0o755)
    assert interpreters.version_of([str(stub)]) is None
    assert interpreters.version_of([str(tmp_path / "not there")]) is None
