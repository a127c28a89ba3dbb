"""Where a script of pictures may write: below its own folder, and over nothing but pictures."""

from __future__ import annotations

import os
from pathlib import Path

from resources.language import tr

_HEAD = 4096
"""Bytes at the beginning of a file that show what it is."""
_SIGNATURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")


def check_target(path: Path, folder: Path | None) -> None:
    """Raise ValueError for a file that a script must not write; `folder` is None where it may write anywhere.

    Symbolic links are followed: what counts is the file that would be written.
    """
    target = Path(os.path.realpath(path))
    if folder is not None and not target.is_relative_to(os.path.realpath(folder)):
        raise ValueError(
            tr("{file} lies outside of the script's folder. Name a file below it, or add --allow-outside.").format(
                file=target
            )
        )
    if os.path.lexists(target) and not target.is_file():
        raise ValueError(tr("{file} is a folder, a pipe or a device. Choose another name.").format(file=target))
    try:
        if target.exists() and not is_picture(target):
            raise ValueError(
                tr("{file} exists and is not a picture. Choose another name, or move that file away.").format(
                    file=target
                )
            )
    except OSError as error:
        raise ValueError(
            tr("{file} cannot be read: {why}. Choose another name.").format(file=target, why=error.strerror or error)
        ) from None


def is_picture(path: Path) -> bool:
    """Whether the content of a file is a picture, or nothing at all. Raises OSError."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    is_webp = head[:4] == b"RIFF" and head[8:12] == b"WEBP"
    return not head or head.startswith(_SIGNATURES) or is_webp or _is_svg(head)


def _is_svg(head: bytes) -> bool:
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return text.startswith(b"<") and b"<svg" in text
