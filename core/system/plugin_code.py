"""Register the source files of plug-ins, so that an exception or a hanging call can be attributed to one of them."""

from __future__ import annotations

import os
import traceback
from types import FrameType, TracebackType
from typing import NamedTuple

from decodescope.core.errors import PluginError
from decodescope.resources.language import tr

_sources: dict[str, str] = {}
"""Title of the plug-in by path of a source file, or of a package's folder, ending in a separator."""
_MAX_MESSAGE = 300


class PluginLocation(NamedTuple):
    """A line of a plug-in."""

    title: str
    path: str
    line: int

    @property
    def words(self) -> str:
        """The location as text: `“Ban vowels” (ban_vowels.py, line 12)`."""
        name = os.path.basename(self.path)
        if not self.line:
            return tr("“{plugin}” ({file})").format(plugin=self.title, file=name)
        return tr("“{plugin}” ({file}, line {line})").format(plugin=self.title, file=name, line=self.line)


def register_source(path: str, title: str) -> None:
    """Attribute the code of a file, or of all files below a folder whose path ends in a separator, to a plug-in."""
    _sources[path] = title


def _title_of(path: str) -> str | None:
    if (title := _sources.get(path)) is not None:
        return title
    return next((name for known, name in _sources.items() if known.endswith(os.sep) and path.startswith(known)), None)


def locate_in_traceback(traces: TracebackType | None) -> PluginLocation | None:
    """Return the innermost line of a plug-in that a traceback passes through; None without any."""
    found = None
    while traces is not None:
        path = traces.tb_frame.f_code.co_filename
        if _sources and (title := _title_of(path)) is not None:
            found = PluginLocation(title, path, traces.tb_lineno or 0)
        traces = traces.tb_next
    return found


def locate_in_stack(frame: FrameType | None, excluded: str) -> PluginLocation | None:
    """Return the innermost line of a plug-in on a thread's stack; None if there is none, or if code below the folder
    `excluded` has been called from there.
    """
    while frame is not None:
        path = frame.f_code.co_filename
        if (title := _title_of(path)) is not None:
            return PluginLocation(title, path, frame.f_lineno or 0)
        if path.startswith(excluded):
            return None
        frame = frame.f_back
    return None


def attribute_error(error: BaseException) -> PluginError | None:
    """Return an error that names the plug-in whose code raised `error`; None if no plug-in is involved."""
    location, cause = locate_in_traceback(error.__traceback__), error.__cause__
    if location is None and cause is not None:  # a generator turns StopIteration into RuntimeError
        location = locate_in_traceback(cause.__traceback__)
    if location is None:
        return None
    return make_plugin_error(location, describe(error), "".join(traceback.format_exception(error)))


def describe(error: BaseException) -> str:
    """Return class and message of an exception in one line, even if its `__str__` fails."""
    try:
        message = str(error).strip().split("\n")[0][:_MAX_MESSAGE]
    except Exception:
        message = ""
    kind = type(error).__name__
    return f"{kind}: {message}" if message else kind


def make_plugin_error(location: PluginLocation, problem: str, details: str = "") -> PluginError:
    """Return the error of a plug-in that failed at `location`; `problem` completes the sentence."""
    return PluginError(
        tr("The plug-in {location} failed: {problem}.").format(location=location.words, problem=problem.rstrip(".")),
        tr("Correct the file, or turn the plug-in off."),
        details,
        location.path,
        location.line,
    )
