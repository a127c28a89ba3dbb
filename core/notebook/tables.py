"""Tables of runs: one row per token, or per candidate of a beam search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from decodescope.core.events import BeamStep, Event, TokenChosen
from decodescope.core.notebook.result_rows import make_dataframe

if TYPE_CHECKING:
    import pandas as pd

    from decodescope.core.events.run import HasEvents

_TOKEN_FIELDS = (
    "sequence", "step", "id", "piece", "text", "probability", "raw_probability", "log_probability",
    "raw_log_probability", "rank", "entropy", "seconds", "method", "origin",
)  # fmt: skip
_BEAM_FIELDS = (
    "node", "parent", "id", "piece", "probability", "raw_probability", "log_probability", "score", "normalized", "rank",
    "fate", "group",
)  # fmt: skip


def event_columns(events: Iterable[Event]) -> dict[str, list[object]]:
    """Return a column per property of the tokens; of a beam search, per property of its candidates."""
    kept = list(events)
    steps = [event for event in kept if isinstance(event, BeamStep)]
    if steps:
        pairs = [(step.step, candidate) for step in steps for candidate in step.candidates]
        columns: dict[str, list[object]] = {"step": [step for step, _ in pairs]}
        return columns | {name: [getattr(candidate, name) for _, candidate in pairs] for name in _BEAM_FIELDS}
    tokens = [event for event in kept if isinstance(event, TokenChosen)]
    return {name: [getattr(token, name) for token in tokens] for name in _TOKEN_FIELDS}


def events_table(events: Iterable[Event]) -> pd.DataFrame:
    """Return the columns as a pandas table. Raises ParameterError without pandas."""
    return make_dataframe(event_columns(events))


def runs_table(runs: Sequence[HasEvents]) -> pd.DataFrame:
    """Return the tokens of several runs, with their number in the column `run`. Raises ParameterError without
    pandas.
    """
    merged: dict[str, list[object]] = {}
    total = 0
    for number, run in enumerate(runs):
        columns = event_columns(run.events)
        count = len(columns["step"])
        for name, values in ({"run": [number] * count} | columns).items():
            merged.setdefault(name, [None] * total).extend(values)
        total += count
        for values in merged.values():
            values.extend([None] * (total - len(values)))
    return make_dataframe(merged)
