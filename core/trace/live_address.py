"""The address at which an open window receives runs, in a file that only this user can read."""

from __future__ import annotations

import json
import os
import secrets
import stat
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from decodescope.core.common.program_name import user_folder

ADDRESS_FILE = "live-window.json"
_TOKEN_BYTES = 32
RECEIVED = b"\x06"
"""What the window answers when it has the end of a run."""


def address_file() -> Path:
    """Return the path of the file, in the user's data folder."""
    return user_folder("data") / ADDRESS_FILE


@dataclass(frozen=True, slots=True)
class LiveAddress:
    """The address of the window that was used last, and the token that a sender must present."""

    address: str
    """Path of its local socket, or name of its pipe on Windows."""
    token: str

    @classmethod
    def create(cls, address: str) -> LiveAddress:
        """Return the address with a new random token."""
        return cls(address, secrets.token_urlsafe(_TOKEN_BYTES))

    @classmethod
    def find(cls) -> LiveAddress | None:
        """Return the published address; None if there is none, or if other users could have read or written it."""
        try:
            with open(address_file(), encoding="utf-8") as file:
                status = os.fstat(file.fileno())
                if sys.platform != "win32" and (status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077):
                    return None
                match json.load(file):
                    case {"address": str(address), "token": str(token)} if address and token:
                        return cls(address, token)
        except (OSError, ValueError, RecursionError):
            return None
        return None

    def publish(self) -> None:
        """Write the file with mode 0600, in place of another window's. Raises OSError."""
        target = address_file()
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.{os.getpid()}")
        with suppress(OSError):
            part.unlink()
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump(asdict(self), file)
        os.replace(part, target)

    def withdraw(self) -> None:
        """Delete the file, unless a later window has replaced it."""
        if LiveAddress.find() == self:
            with suppress(OSError):
                address_file().unlink()
