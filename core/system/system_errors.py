"""Words for errors of the operating system: why a file or a connection failed, in the language of the program."""

from __future__ import annotations

import errno
import os
import re

from decodescope.resources.language import mark, tr

DISK_FULL_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""Error codes of a full disk."""


def system_error_reason(error: BaseException) -> str:
    """Return why a file or a connection failed, as a clause without the path and without a full stop.

    Common errors are translated. For others it is the system's message, which is English or in the system's language.
    """
    import socket

    if isinstance(error, UnicodeDecodeError):
        return tr("it is not UTF-8 text")
    if isinstance(error, socket.gaierror):  # its numbers are not those of `errno`
        return tr("no computer with that name was found")
    number = _number(error)
    if number in _REASONS:
        return tr(_REASONS[number])
    if isinstance(error, TimeoutError):
        return tr(_TIMEOUT)
    if isinstance(error, ConnectionError) and number is None:  # of Python's own HTTP client
        return tr(_CLOSED)
    words = ((error.strerror if isinstance(error, OSError) else None) or str(error)).rstrip(".")
    if not words:
        return type(error).__name__
    return words[:1].lower() + words[1:] if words[1:2].islower() else words


def writing_remedy(error: BaseException | None, otherwise: str) -> str:
    """Return what helps when a file could not be written: `otherwise` where neither disk nor name is the cause."""
    number = _number(error)
    if number in DISK_FULL_ERRORS:
        return tr("Free up space on that disk, or choose a folder on another one.")
    return tr("Choose a shorter name.") if number == errno.ENAMETOOLONG else otherwise


def _number(error: BaseException | None) -> int | None:
    """Return the system's number of an error; libraries in Rust have it in the message: `(os error 28)`."""
    if any(kind.__name__ == "SSLError" for kind in type(error).__mro__):  # its numbers are those of OpenSSL
        return None
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    found = _RUST_ERROR.search(str(error)) if os.name == "posix" else None
    return int(found[1]) if found else None


_RUST_ERROR = re.compile(r"\(os error (\d+)\)")
_DISK_FULL = mark("no space left on the disk")
_DENIED = mark("permission denied")
_TIMEOUT = mark("no answer in time")
_CLOSED = mark("the other side closed the connection")
_UNREACHABLE = mark("the network does not reach that computer")
_IN_USE = mark("another program uses it")
_REASONS: dict[int | None, str] = {
    errno.ENOSPC: _DISK_FULL,
    errno.EDQUOT: mark("your share of the disk is used up"),
    errno.EFBIG: mark("the file is too large for that disk"),
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.EROFS: mark("the disk is read-only"),
    errno.ENOENT: mark("there is no such file or folder"),
    errno.ENOTDIR: mark("a part of the path is not a folder"),
    errno.EISDIR: mark("it is a folder"),
    errno.EEXIST: mark("it exists already"),
    errno.ENOTEMPTY: mark("the folder is not empty"),
    errno.ENAMETOOLONG: mark("the name is too long"),
    errno.ELOOP: mark("its links lead back to it"),
    errno.EIO: mark("the disk reports a fault"),
    errno.EBUSY: _IN_USE,
    errno.EADDRINUSE: _IN_USE,
    errno.EMFILE: mark("too many files are open"),
    errno.ENFILE: mark("too many files are open"),
    errno.ENOMEM: mark("there is not enough memory"),
    errno.EADDRNOTAVAIL: mark("this computer does not have that address"),
    errno.ECONNREFUSED: mark("connection refused"),
    errno.ECONNRESET: _CLOSED,
    errno.ECONNABORTED: _CLOSED,
    errno.EPIPE: _CLOSED,
    errno.ETIMEDOUT: _TIMEOUT,
    errno.EHOSTUNREACH: _UNREACHABLE,
    errno.ENETUNREACH: _UNREACHABLE,
}
"""A clause for each error of files and connections that users meet."""
