"""The shape of a processor: its setting, its place in the funnel, its words, and the function on scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from core.common.lightweight_dataclass import plain
from core.grammar.grammar_setting import GrammarProgress
from core.parameter import Parameter, Settings

if TYPE_CHECKING:
    import torch
    from transformers import GenerationConfig

    from core.events import StageDetail, StageKind
    from core.processors.watermarking.scores import WatermarkScorer

    Transform = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    """(ids [B, T], scores [B, V]) → scores [B, V]; what came in stays as it is."""
    Uniform = Callable[[int], torch.Tensor]
    DetailFactory = Callable[[], StageDetail | None]
    """What a picture of a step needs, made when somebody looks, by any thread: it holds figures and no scores."""
    StageObserver = Callable[[int, torch.Tensor, torch.Tensor, int], DetailFactory]
    """(row, its scores [V] before and behind the stage, chosen token) → who tells of the step. It has kept what it
    tells of: the stage itself has gone on to later steps by then."""
    import torch

Panel = Literal["sampling", "sampling_advanced", "penalties", "length", "more"]
"""Where a panel shows the setting, and which strategies have it: the first two those that sample."""


class TokenTextSource(Protocol):
    """What single tokens stand for (`core.models.text.TokenSpellings`)."""

    special: frozenset[int]

    def data(self, token: int) -> bytes | None:
        """The bytes that a token spells; None for special tokens."""

    def __getitem__(self, token: int) -> str:
        """The token's own text."""


class ProcessorModel(Protocol):
    """What a processor may ask of a model (`core.models.loaded_model.LoadedModel`)."""

    @property
    def model(self) -> object:
        """The network itself."""

    @property
    def device(self) -> torch.device:
        """Where its scores come from."""

    @property
    def vocabulary(self) -> int:
        """How many tokens it knows."""

    @property
    def is_encoder_decoder(self) -> bool:
        """Whether one half reads and the other writes."""

    @property
    def is_recurrent(self) -> bool:
        """Whether it keeps a state instead of every token."""

    @property
    def pieces(self) -> TokenTextSource:
        """What its tokens stand for."""

    @property
    def token_bytes(self) -> Sequence[bytes | None] | None:
        """What each token writes behind others; None for a model of ids alone."""

    def strips_first_space(self, before: Sequence[int]) -> bool:
        """Whether the text of an answer behind `before` loses the space that its first token begins with."""

    @property
    def remembered(self) -> dict[str, object]:
        """What is kept of it between runs."""


class Context(NamedTuple):
    """What processors need to know of the run besides their own setting."""

    model: ProcessorModel
    config: GenerationConfig
    start: int
    """Length of the decoder's input before the first new token."""
    max_length: int
    encoder_ids: torch.Tensor | None
    eos: torch.Tensor | None
    keep: int
    """Fewest tokens that a filter leaves over."""
    rng: Uniform
    """(rows) → a number of [0, 1) for each row [B], by the run's seed; never twice the same."""
    negative_ids: torch.Tensor | None = None
    options: Settings = MappingProxyType({})
    """`Request.options`: the settings that GenerationConfig has no field for."""
    before: Sequence[int] = ()
    """The decoder's input before the answer: `start` tokens."""
    beginning: Sequence[int] = ()
    """What the answer begins with (`Request.beginning`)."""


def applies_always(context: Context) -> bool:
    """It applies to every run."""
    return True


def has_end(context: Context) -> bool:
    """There is an end token."""
    return context.eos is not None


@plain(frozen=True)
class Processor:
    """One stage of the funnel; one file of `core/processors/` each."""

    name: str
    """The setting that switches it on: GenerationConfig's field, or a key of `Request.options`."""
    make: Callable[[Any, Context], Transform]
    """(value, context) → the function on scores. Raises ValueError with a reason for people."""
    order: int
    """Place in the funnel unless a request says otherwise; those of transformers stand in its order, ten apart."""
    label: str
    """A stage's short name; `{v}` is the setting's value."""
    phrase: str = ""
    """What a sentence calls it, likewise; empty: the label."""
    kind: StageKind = "shift"
    parameter: Parameter | None = None
    """Its editor, help and range; None: only a GenerationConfig can set it."""
    beside: tuple[Parameter, ...] = ()
    """What else there is to set, without effect while it is off; keys of `Request.options`."""
    panel: Panel = "more"
    shown: int = 100
    """Place among its panel's settings."""
    is_on: Callable[[Any], bool] = bool
    """Whether a value other than None switches it on."""
    applies: Callable[[Context], bool] = applies_always
    samples: bool = False
    """It takes part only while sampling."""
    blind: bool = False
    """It looks at the scores alone, not at the text: all nodes of a draft go through it at once."""
    drafts: bool = True
    """Drafters apply it too, so that they guess what the model will choose; never needed for exactness."""
    reads: bool = False
    """It runs the model a second time, with a memory of its own: speculation takes that over (`_Guide`)."""
    uses_rng: bool = False
    """It throws `Context.dice` once a step."""
    in_turn: bool = False
    """It must see every token drawn before the next is judged: drafts, which are judged together, are refused."""
    end: Literal["", "first", "last"] = ""
    """Where it has to stand, whatever order the stages are given."""
    before_contrast: bool = False
    """DoLa: it comes before the layers are contrasted, which keeps only tokens near the best one that it leaves."""
    before_diversity: bool = False
    """Group beams: it comes before the penalty for what earlier groups chose."""
    follow: Callable[[Any, torch.Tensor], None] | None = None
    """(transform, rows): beams have changed places, row i was row `rows[i]`; for one that remembers its rows."""
    observe: Callable[[Any], StageObserver] | None = None
    """(transform) → a witness of what it did last, asked for behind each step that is traced."""
    progress: Callable[[Any, Sequence[int]], GrammarProgress] | None = None
    """(transform, an answer's tokens without an end token) → how far a text has come with the form it is held to."""
    signs: Callable[[Any, Settings, ProcessorModel], WatermarkScorer] | None = None
    """(value, `Request.options`, model) → who finds its watermark again in a text that is given; ValueError as `make`
    raises it. None: it leaves none."""
    aliases: tuple[str, ...] = ()


MAX_DETAIL_TOKENS = 16
"""Tokens that a stage's detail names at most."""


def transformers_processors() -> Any:
    """transformers' module of processors; its annotations are narrower than what its classes accept."""
    from transformers.generation import logits_process  # heavy, and only a run needs it

    return logits_process


def no_detail() -> None:
    """A `DetailFactory` of a step of which there is nothing to tell."""


def is_not_one(value: float) -> bool:
    """1 switches it off."""
    return value != 1.0


def is_below_one(value: float) -> bool:
    """1 and more switch it off."""
    return value < 1.0


def is_inside_unit(value: float) -> bool:
    """0, 1 and what lies beyond switch it off."""
    return 0.0 < value < 1.0


def is_given(value: object) -> bool:
    """Any value switches it on."""
    return True


class MinLengthBan:
    """(ids [B, T], scores [B, V]) → scores: the end tokens are ruled out until T is `length`."""

    def __init__(self, length: int, ends: torch.Tensor | None) -> None:
        """`ends`: ids; those that the scores have no place for are never chosen anyway."""
        import torch

        self._length, self._ends = length, torch.as_tensor([] if ends is None else ends, dtype=torch.long).reshape(-1)
        self._known = self._ends[:0]
        """Those that scores of `_width` have a place for, where the scores are."""
        self._width = 0

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """What came in stays as it is; behind that length it is what comes out."""
        if ids.shape[-1] >= self._length:
            return scores
        if self._width != scores.shape[-1] or self._known.device != scores.device:
            self._width = scores.shape[-1]
            there = (self._ends >= 0) & (self._ends < self._width)  # an index of -1 would be the last token
            self._known = self._ends[there].to(scores.device)
        return scores.index_fill(-1, self._known, -math.inf)
