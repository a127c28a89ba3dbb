"""What is asked of the inside of one step, and what is found there: plain data that crosses to the worker and home."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from app.state.run import Run
from app.state.worker_messages import ErrorReport, LoadRequest
from resources.language import tr

if TYPE_CHECKING:
    from core import Unit

QueryKind = Literal["layers", "influence", "attention", "page"]


class LayerQuery(NamedTuple):
    """What the reader wants to see of the step that the inspector speaks of."""

    kind: QueryKind
    unit: Unit = "word"
    other_token: int | None = None
    """Another candidate of the step: why not that one."""
    replacement: str | None = None
    """What stands in the place of a part that is taken out: None, so that what follows moves up, or the text of a
    token; "" is the tokenizer's own for nothing in particular."""


@dataclass(frozen=True, slots=True)
class ModelQuery:
    """A question to the model of a run."""

    query: LayerQuery
    load: LoadRequest
    ids: tuple[int, ...]
    """Prompt and text, up to the token that is asked for, or of a page to its last one."""
    prompt_length: int
    """Tokens of the prompt: what an encoder reads, where there is one."""
    step: int
    """Place in `ids` of the token that is asked for; of a page its first."""
    media: tuple[str, ...] = ()
    """Sounds and pictures that the run was given."""
    cancel: threading.Event = field(default_factory=threading.Event, compare=False)


class LayerView(NamedTuple):
    """What one layer would have chosen."""

    layer: int
    """0: before the first one."""
    word: str
    first_probability: float
    probability: float
    """Of the token that was chosen."""
    rank: int
    special: bool | None = None
    """Whether `word` is a special token."""


class PositionWeight(NamedTuple):
    """What places [start, stop) of the text have to do with a step: nats of influence, or a share of attention."""

    start: int
    stop: int
    weight: float


class LayerAttention(NamedTuple):
    """How much one layer read of every place before a step."""

    layer: int
    """0: the mean of all of them."""
    weights: tuple[float, ...]


LayerFindings = tuple[LayerAttention, ...] | tuple[tuple[LayerView, ...], ...] | tuple[PositionWeight, ...]


class LayerResult(NamedTuple):
    """A part of the answer, and how far it is; the last one has ended."""

    request: ModelQuery
    findings: LayerFindings = ()
    done: int = 0
    total: int = 0
    error: ErrorReport | None = None
    has_ended: bool = False


class InfluenceMap(NamedTuple):
    """Weights of the text that views draw."""

    kind: QueryKind
    weights: tuple[PositionWeight, ...]

    @property
    def largest(self) -> float:
        """The greatest size of any; 0 without one."""
        return max((abs(one.weight) for one in self.weights), default=0.0)


def make_model_query(run: Run, index: int, query: LayerQuery) -> ModelQuery:
    """The question for token `index` of the shown text; a page begins at the text's first token and ends with its
    last."""
    before = [token.id for token in run.before]
    written = [token.id for token in run.tokens]
    step = len(before) + index
    ids = (*before, *written) if query.kind == "page" else (*before, *written[: index + 1])
    if query.kind == "page":
        step = max(1, len(before))
    return ModelQuery(query, run.request.load, ids, len(run.prompt), step, tuple(map(str, run.request.media)))


def query_unsupported_reason(run: Run | None, index: int | None) -> str:
    """Why nothing can be asked of a step now; empty where it can."""
    if run is None or index is None or index >= len(run.tokens):
        return tr("There is no token yet.")
    if run.outcome is None and run.finished is None:
        return tr("The run is still under way.")
    if not run.before and index == 0:
        return tr("Nothing stands before the first token.")
    return ""


def deciding_layer(layers: Sequence[LayerView]) -> int:
    """The lowest layer from which on the first choice stays what it is in the end."""
    last = layers[-1].word
    agrees = [view.word == last for view in layers]
    return len(agrees) - next((n for n, same in enumerate(reversed(agrees)) if not same), len(agrees))
