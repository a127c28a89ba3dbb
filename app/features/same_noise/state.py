"""Results of the pages' queries, and values, words and rows derived from them. No Qt."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from decodescope import core
from decodescope.app.state.worker_messages import ErrorReport, RunRequest
from decodescope.core import strategies

if TYPE_CHECKING:
    from decodescope.app.state.run import Run
    from decodescope.core import FlipMap, SettingAtlas, SettingEffects, Twin, VariedSetting

PageName = Literal["atlas", "effects", "twin"]
PAGES: tuple[PageName, ...] = ("atlas", "effects", "twin")
TwinKind = Literal["setting", "prompt", "cache", "model"]
TWIN_KINDS: tuple[TwinKind, ...] = ("setting", "prompt", "cache", "model")
KEYED_NOISE = "keyed_noise"
_SETTING_DECIMALS = 6
"""Decimals of a setting's editor in the window."""


class AtlasInput(NamedTuple):
    """Input of the atlas page."""

    setting: str
    low: float
    high: float
    word: str
    tokens: int
    passes: int
    """Limit of work, in forward passes."""


class TwinInput(NamedTuple):
    """Input of the twin page."""

    kind: TwinKind
    name: str = ""
    """The changed setting, or the name of the other cache or model."""
    value: object = None
    """New value of the setting, or the changed prompt."""
    draws: bool = True
    """Whether both texts are drawn with keyed noise; otherwise the shown text is compared."""
    realigns: bool = False
    """Whether the noise follows the text before each word, not its position."""


class AtlasResult(NamedTuple):
    """An atlas, and the texts of its tokens."""

    atlas: SettingAtlas
    pieces: Mapping[int, str]
    seconds: float

    def text_of(self, number: int) -> str:
        """Return a text; without a tokenizer, the names of its tokens."""
        one = self.atlas[number]
        return one.text or "".join(self.pieces[token] for token in one.ids)


class EffectsResult(NamedTuple):
    """The effects of a run's settings."""

    effects: SettingEffects
    is_exact: bool


class TwinResult(NamedTuple):
    """A comparison, and where the words of the first text flip over all values of the changed setting."""

    twin: Twin
    flips: FlipMap | None
    flips_problem: str
    """Why there is no flip map, as a sentence; empty if there is one, or if none was requested."""
    pieces: tuple[tuple[str, ...], tuple[str, ...]]
    """Texts of the tokens of both texts."""


@dataclass(slots=True)
class PageState:
    """The state of one page: its query in progress and its last result."""

    query: Any = None
    """The query in progress; None without one."""
    progress: Any = None
    result: Any = None
    error: ErrorReport | None = None
    was_stopped: bool = False
    subject: Run | None = None
    """The run that the result is about."""

    @property
    def is_busy(self) -> bool:
        """Whether a query is in progress."""
        return self.query is not None


def sampling_request(request: RunRequest) -> RunRequest:
    """Return the request with sampling and keyed noise: its own strategy if that can have it, else plain sampling with
    the settings that both strategies have.
    """
    changes = {"do_sample": True, KEYED_NOISE: True, "num_return_sequences": None}
    strategy = strategies.registry.get(request.strategy)
    if strategy is not None and KEYED_NOISE in strategy.parameter_names:
        return request.with_settings(changes)
    sampling = strategies.selected_by(strategies.Flags(samples=True))
    values = {name: value for name, value in request.settings.items() if name in sampling.parameter_names}
    plain = request.with_strategy(sampling, values)
    return RunRequest.with_settings(plain, changes)


def round_value_in(low: float, high: float, is_whole: bool) -> float:
    """Return the number with the fewest decimals in low < value ≤ high, nearest to the middle; the middle if it needs
    more decimals than a setting's editor has.
    """
    middle = (low + high) / 2
    if is_whole:
        return float(min(max(math.floor(low) + 1, round(middle)), math.floor(high)))
    for decimals in range(_SETTING_DECIMALS + 1):
        step = 10.0**-decimals
        candidates = [round(middle, decimals), round(middle + step / 2, decimals), round(middle - step / 2, decimals)]
        inside = [value for value in candidates if low < value <= high and value != 0]
        if inside:
            return min(inside, key=lambda value: abs(value - middle))
    return middle


def value_label(value: float) -> str:
    """Return a value of a setting for labels."""
    return f"{value:,.0f}" if value == round(value) and abs(value) >= 100 else f"{value:.4g}"


class MarkedWord(NamedTuple):
    """The first word in which a text differs from another one."""

    start: int
    """Characters before it."""
    stop: int
    other: str
    """What the other text has there; empty if it ends."""


def first_differing_word(text: str, other: str) -> MarkedWord | None:
    """Return the first word in which `text` differs from `other`; None for equal texts."""
    if text == other:
        return None
    place = next((n for n, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), min(len(text), len(other)))
    start = place
    while start > 0 and not text[start - 1].isspace():
        start -= 1
    return MarkedWord(start, _word_end(text, place), other[start : _word_end(other, place)])


def _word_end(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    while place < len(text) and not text[place].isspace():
        place += 1
    return place


def band_cells(texts: Sequence[Sequence[int]]) -> list[list[tuple[int, int]]]:
    """Return the cells of each row of the map: ranges [first, last] of neighbouring texts with a common beginning of
    one more token than the row before. Texts that have ended have no cell.
    """
    rows: list[list[tuple[int, int]]] = []
    for depth in range(max((len(ids) for ids in texts), default=0)):
        cells: list[tuple[int, int]] = []
        for number, ids in enumerate(texts):
            if len(ids) <= depth:
                continue
            if cells and cells[-1][1] == number - 1 and texts[number - 1][: depth + 1] == ids[: depth + 1]:
                cells[-1] = (cells[-1][0], number)
            else:
                cells.append((number, number))
        rows.append(cells)
    return rows


def mean_probability(log_probability: float, tokens: int) -> float:
    """Return the geometric mean of the tokens' probabilities."""
    return math.exp(log_probability / tokens) if tokens else 1.0


def varied_setting(name: str, vocabulary: int = 0) -> VariedSetting | None:
    """Return a setting that can be followed; None for others."""
    return next((one for one in core.varied_settings(vocabulary) if one.name == name), None)


def atlas_table(result: AtlasResult) -> list[list[object]]:
    """Return a header and a row per interval."""
    columns = result.atlas.columns()
    return [list(columns), *(list(row) for row in zip(*columns.values(), strict=True))]


def effects_table(effects: SettingEffects) -> list[list[object]]:
    """Return a header and a row per setting."""
    columns = effects.columns()
    return [list(columns), *(list(row) for row in zip(*columns.values(), strict=True))]


def twin_table(result: TwinResult) -> list[list[object]]:
    """Return a header and a row per token of the first text; both texts if their tokens cannot be compared."""
    if not len(result.twin):
        return [["first", "second"], list(result.twin.written)]
    columns = result.twin.columns()
    return [list(columns), *(list(row) for row in zip(*columns.values(), strict=True))]
