"""Progress of commands on standard error, which is cleared before anything else is printed."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm import tqdm


def progress_bar(is_quiet: bool, **options: Any) -> tqdm[Any]:
    """Return a bar of tqdm with these options. When it is closed, also by an error, the next text has a line of its
    own: on a terminal the bar's line is empty again, in a file it is ended.
    """
    from tqdm import tqdm

    return tqdm(file=sys.stderr, leave=not sys.stderr.isatty(), disable=is_quiet, **options)


class ProgressLine:
    """A line of text on a terminal that replaces the one before, and is cleared at the end of the `with` block."""

    def __init__(self, is_quiet: bool = False) -> None:
        self._bar = progress_bar(is_quiet or not sys.stderr.isatty(), bar_format="{desc}")

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._bar.close()

    def show(self, text: str) -> None:
        """Show a text."""
        self._bar.set_description_str(text)
