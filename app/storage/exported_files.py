"""Write tables as CSV or JSON files. Numbers keep their full precision."""

from __future__ import annotations

import json
import math
from itertools import repeat
from pathlib import Path

from decodescope.app.state.recorded_run import WINDOW_REQUEST_KEY
from decodescope.app.state.request_json import request_to_json
from decodescope.app.state.run import Run
from decodescope.app.state.text_formats import CsvRows, to_csv
from decodescope.core.system.file_writing import atomic_write
from decodescope.core.system.system_errors import system_error_reason, writing_remedy
from decodescope.resources.language import tr

__all__ = ["CSV", "JSON", "CsvRows", "as_json", "to_csv", "write_table"]

CSV, JSON = "csv", "json"


def write_table(rows: CsvRows, path: Path, guard_formulas: bool = True) -> None:
    """Write `rows`, header first, in the format of the path's suffix. Raises OSError."""
    text = as_json(rows) if path.suffix.lower() == ".json" else to_csv(rows, guard_formulas)
    path.write_text(text, encoding="utf-8", errors="replace", newline="")  # replaces lone surrogates


def as_json(rows: CsvRows) -> str:
    """Return a JSON list with one object per row, keyed by the header; non-finite numbers and missing cells are
    null.
    """
    head, *lines = rows or [()]
    keys = [str(key) for key in head]
    objects = [
        dict(zip(keys, [*map(_json_value, line), *repeat(None, len(keys) - len(line))], strict=True)) for line in lines
    ]
    return json.dumps(objects, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _json_value(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def save_run(run: Run, path: Path) -> None:
    """Write the run atomically: an existing file stays until the new one is complete. Raises TraceError."""
    try:
        with atomic_write(path) as part:
            _write_recording(run, part)
    except OSError as error:
        raise _write_error(path, error) from None


def _write_recording(run: Run, path: Path) -> None:
    from decodescope.core.trace import Failure, Recorder

    recorder = Recorder(path, run.request, {WINDOW_REQUEST_KEY: request_to_json(run.request)})
    for event in run.events:
        recorder.write(event)
    error = run.outcome.error if run.outcome is not None else None
    recorder.close(Failure(error.kind, error.title, error.cause, error.remedy) if error is not None else None)
    if recorder.trouble is not None:
        raise recorder.trouble


def _write_error(path: Path, error: OSError) -> Exception:
    from decodescope.core.errors import TraceError

    return TraceError(
        tr("{path} cannot be written: {why}.").format(path=path, why=system_error_reason(error)),
        writing_remedy(error, tr("Choose another folder or another name.")),
    )
