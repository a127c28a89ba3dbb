"""Reasons of the operating system's errors: a clause of the program, and a remedy that fits."""

from __future__ import annotations

import errno
import http.client
import os
import socket
import ssl
from pathlib import Path

import pytest

from decodescope import app, core
from decodescope.core.system.system_errors import _REASONS, system_error_reason, writing_remedy

SOURCES = [Path(package.__path__[0]) for package in (app, core)]


def test_source_takes_reasons_of_system_errors_from_one_place() -> None:
    uses = [path.name for folder in SOURCES for path in folder.rglob("*.py") if "strerror" in path.read_text("utf-8")]
    assert uses == ["system_errors.py"]


@pytest.mark.parametrize("number", sorted(errno.errorcode))
def test_reason_of_each_system_error_is_a_clause(number: int) -> None:
    reason = system_error_reason(OSError(number, os.strerror(number), "/home/mia/fox.json"))
    assert reason
    assert not reason[:2].istitle()
    assert not reason.endswith(".")
    assert "fox.json" not in reason


@pytest.mark.parametrize("number", [number for number in _REASONS if number is not None])
def test_reason_of_a_common_error_is_the_programs(number: int) -> None:
    assert system_error_reason(OSError(number, "Systemnachricht")) == _REASONS[number]


def test_reason_of_an_unknown_host_names_it() -> None:
    error = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    assert system_error_reason(error) == "no computer with that name was found"


def test_reason_of_an_invalid_certificate_is_not_that_of_its_number() -> None:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed: self-signed certificate")
    assert system_error_reason(error) == "certificate verify failed: self-signed certificate"


def test_reason_of_a_connection_that_ends_early_is_the_programs() -> None:
    assert system_error_reason(http.client.RemoteDisconnected("Remote end closed connection without response")) == (
        "the other side closed the connection"
    )


def test_reason_without_number_is_the_message_of_the_error() -> None:
    assert system_error_reason(OSError("The folder is gone.")) == "the folder is gone"
    assert system_error_reason(ValueError()) == "ValueError"


@pytest.mark.skipif(os.name != "posix", reason="other systems have other numbers")
def test_reason_of_a_rust_library_is_the_programs() -> None:
    error = ValueError("Error while serializing: I/O error: No space left on device (os error 28)")
    assert system_error_reason(error) == "no space left on the disk"
    assert "space" in writing_remedy(error, "")


def test_remedy_of_a_full_disk_offers_space() -> None:
    otherwise = "Choose another folder."
    assert "space" in writing_remedy(OSError(errno.ENOSPC, "No space left on device"), otherwise)
    assert "shorter" in writing_remedy(OSError(errno.ENAMETOOLONG, "File name too long"), otherwise)
    assert writing_remedy(PermissionError(errno.EACCES, "Permission denied"), otherwise) == otherwise
