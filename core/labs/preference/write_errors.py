"""What could not be written, told."""

from __future__ import annotations

from pathlib import Path

from core.errors import FileNotWrittenError
from resources.language import tr


def not_written_error(target: Path | str, error: Exception | None = None) -> FileNotWrittenError:
    """The error that names it, and the system's reason where there is one."""
    reason = (error.strerror if isinstance(error, OSError) else None) or tr("it cannot be written")
    return FileNotWrittenError(
        tr("{target} was not written: {reason}.").format(target=target, reason=reason),
        tr("Choose a folder you may write to."),
        str(error or ""),
    )
