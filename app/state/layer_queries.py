"""Possible queries about the layers at one step, and their findings: plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from decodescope.app.state.run import Run
from decodescope.core import adapters
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core import Unit

QueryKind = Literal["layers", "influence", "attention", "adapters", "page"]


class LayerQuery(NamedTuple):
    """A query about the step shown in the inspector."""

    kind: QueryKind
    unit: Unit = "word"
    other_token: int | None = None
    """Another candidate of the step, for “why not that one”."""
    replacement: str | None = None
    """What replaces a removed part: None closes the gap, a token's text replaces it, and "" is the tokenizer's neutral
    token.
    """


class LayerView(NamedTuple):
    """The token that one layer would have chosen."""

    layer: int
    """0 means the input embeddings."""
    word: str
    first_probability: float
    probability: float
    """Probability of the chosen token."""
    rank: int
    special: bool | None = None
    """Whether `word` is a special token."""


class PositionWeight(NamedTuple):
    """Effect of positions [start, stop) on a step: influence in nats, or a fraction of the attention."""

    start: int
    stop: int
    weight: float


class LayerAttention(NamedTuple):
    """Attention of one layer to every position before a step."""

    layer: int
    """0 means the average of all layers."""
    weights: tuple[float, ...]


class TokenChange(NamedTuple):
    """A token with its probability and rank without and with the adapters."""

    word: str
    before: float
    after: float
    rank_before: int
    rank_after: int
    is_chosen: bool
    special: bool | None = None


class AdapterFinding(NamedTuple):
    """Effect of the adapters on a step."""

    changes: tuple[TokenChange, ...]
    divergence: float
    """Kullback–Leibler divergence in nats."""


LayerFindings = (
    tuple[AdapterFinding, ...]
    | tuple[LayerAttention, ...]
    | tuple[tuple[LayerView, ...], ...]
    | tuple[PositionWeight, ...]
)


class LayerResult(NamedTuple):
    """A part of the findings, with the progress."""

    findings: LayerFindings = ()
    done: int = 0
    total: int = 0


class InfluenceMap(NamedTuple):
    """Weights of the text for the views to draw."""

    kind: QueryKind
    weights: tuple[PositionWeight, ...]

    @property
    def largest(self) -> float:
        """The largest absolute weight; 0 if there are none."""
        return max((abs(one.weight) for one in self.weights), default=0.0)


def has_adapters(run: Run) -> bool:
    """Return whether a run used adapters with a strength other than 0."""
    return any(one.strength for one in adapters.check_adapters(run.request.adapters or ()))


def query_unsupported_reason(run: Run | None, index: int | None) -> str:
    """Return why a step cannot be queried now; empty if it can."""
    if run is None or index is None or index >= len(run.tokens):
        return tr("There are no tokens yet.")
    if run.outcome is None and run.finished is None:
        return tr("The run is still in progress.")
    if not run.before and index == 0:
        return tr("There is nothing before the first token.")
    return ""


def deciding_layer(layers: Sequence[LayerView]) -> int:
    """Return the lowest layer from which the top token no longer changes."""
    last = layers[-1].word
    agrees = [view.word == last for view in layers]
    return len(agrees) - next((n for n, same in enumerate(reversed(agrees)) if not same), len(agrees))
