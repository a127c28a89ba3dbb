"""Interface of a processor: its setting, its position in the pipeline, its labels, and its function on scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from decodescope.core.common.claim import Claim
from decodescope.core.common.entry_description import EntryDescription
from decodescope.core.common.hf_generation import to_generation_config
from decodescope.core.common.lightweight_dataclass import plain
from decodescope.core.grammar.grammar_setting import GrammarProgress
from decodescope.core.parameter import Parameter, Settings

if TYPE_CHECKING:
    import torch
    from transformers import GenerationConfig

    from decodescope.core.events import StageDetail, StageKind
    from decodescope.core.processors.watermarking.scores import WatermarkScorer

    Transform = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    """(ids [B, T], scores [B, V]) → scores [B, V]; the input is not modified."""
    Uniform = Callable[[int], torch.Tensor]
    DetailFactory = Callable[[], StageDetail | None]
    """Creates the data of a step's picture on demand, in any thread; it keeps figures but no scores."""
    StageObserver = Callable[[int, torch.Tensor, torch.Tensor, int], DetailFactory]
    """(row, its scores [V] before and after the stage, chosen token) → a factory for the step's picture. The factory
    copies what it needs, because the stage's own state has changed by the time it is called."""

ScoreRule = Literal[
    "", "token", "common", "division", "count", "mass", "ratio", "probability", "entropy", "typical", "deviation"
]
"""How a stage's new scores depend on the old ones, for statements about all values of a setting
(`core.counterfactuals.score_bounds`).

- token: each token's new score depends on its own score and the text alone, and is linear on either side of zero.
- common: all scores change by the same amount.
- division: all scores are divided by the setting.
- count, mass, ratio, probability, entropy, typical, deviation: a cut like top-k, top-p, min-p, epsilon, eta, typical
  and top-nσ sampling.
- empty: unknown.
"""
Panel = Literal["sampling", "sampling_advanced", "penalties", "length", "more"]
"""The panel that shows the setting; the first two are for strategies that sample."""


class TokenTextSource(Protocol):
    """Texts of single tokens (`core.models.text.TokenSpellings`)."""

    special: frozenset[int]

    def data(self, token: int) -> bytes | None:
        """Return the bytes that a token spells; None for special tokens."""

    def __getitem__(self, token: int) -> str:
        """Return the token's own text."""


class ProcessorModel(Protocol):
    """The attributes of a model that processors may use (`core.models.loaded_model.LoadedModel`)."""

    @property
    def model(self) -> object:
        """The network."""

    @property
    def device(self) -> torch.device:
        """Device of its scores."""

    @property
    def vocabulary(self) -> int:
        """Number of tokens."""

    @property
    def is_encoder_decoder(self) -> bool:
        """Whether it is an encoder–decoder model."""

    @property
    def is_recurrent(self) -> bool:
        """Whether it keeps a state instead of every token."""

    @property
    def pieces(self) -> TokenTextSource:
        """Texts of its tokens."""

    @property
    def tokenizer(self) -> Any:
        """transformers' tokenizer; None for a model without one."""

    @property
    def thinking_marks(self) -> Sequence[tuple[str, str, str]]:
        """Marks around its thinking (`core.thinking.ThinkingMark`)."""

    @property
    def token_bytes(self) -> Sequence[bytes | None] | None:
        """Bytes that each token adds after other tokens; None for a model without tokenizer."""

    def spellings(self, text: str) -> list[list[int]]:
        """Return the token ids that spell `text`, with and without a space before it."""

    def strips_first_space(self, before: Sequence[int]) -> bool:
        """Return whether an answer after the tokens `before` loses the leading space of its first token."""

    @property
    def strategy_data(self) -> dict[str, object]:
        """Data about it that is kept between runs."""


class Context(NamedTuple):
    """Properties of a run that processors need besides their own setting."""

    model: ProcessorModel
    settings: Settings
    """All settings of the run by name, checked (`core.common.run_settings.RunSettings`)."""
    start: int
    """Length of the decoder's input before the first new token."""
    max_length: int
    encoder_ids: torch.Tensor | None
    eos: torch.Tensor | None
    min_tokens_to_keep: int
    """Minimum number of tokens that a filter keeps."""
    rng: Uniform
    """(rows) → a random number in [0, 1) for each row [B], derived from the run's seed; different at each call."""
    negative_ids: torch.Tensor | None = None
    before: Sequence[int] = ()
    """The decoder's input before the answer: `start` tokens."""
    beginning: Sequence[int] = ()
    """Required beginning of the answer (`Request.beginning`)."""

    @property
    def config(self) -> GenerationConfig:
        """A new GenerationConfig with the settings, for plug-ins."""
        return to_generation_config(self.settings)

    @property
    def options(self) -> Settings:
        """The settings, for plug-ins that read options from here."""
        return self.settings


def applies_always(context: Context) -> bool:
    """Return True: it applies to every run."""
    return True


def has_end(context: Context) -> bool:
    """Return whether there is an end token."""
    return context.eos is not None


@plain(frozen=True)
class Processor:
    """One stage of the pipeline. One file in `core/processors/` defines each."""

    name: str
    """The setting that enables it: a field of GenerationConfig, or a key of `Request.options`."""
    make: Callable[[Any, Context], Transform]
    """(value, context) → the function on scores. Raises ValueError with a readable reason."""
    order: int
    """Default position in the pipeline; transformers' processors are in its order, at steps of ten."""
    label: str
    """Short name of the stage; `{v}` is the setting's value."""
    phrase: str = ""
    """Name of the stage within a sentence, with `{v}` too; empty: the label."""
    plain_phrase: str = ""
    """The same in words that need no knowledge of the field; empty: the phrase."""
    kind: StageKind = "shift"
    has_observed_kind: bool = False
    """Whether it is called a ban from the first time on that it rules out a token (`core.decoding.banned_tokens`)."""
    transformers_classes: tuple[str, ...] = ()
    """Names of transformers' classes that do the same; stages of a foreign `generate` call are recognized by them."""
    transformers_value: str = ""
    """Attribute of those classes with the setting's value; empty: the value is read from the GenerationConfig."""
    parameter: Parameter | None = None
    """Its editor, help and range; None if only a GenerationConfig can set it."""
    extra_parameters: tuple[Parameter, ...] = ()
    """Further settings, without effect while it is off; keys of `Request.options`."""
    description: EntryDescription | None = None
    """Its term of the glossary, unless `resources/glossary` has one."""
    claims: tuple[Claim, ...] = ()
    """Published claims about it, each with the comparison that tests it."""
    panel: Panel = "more"
    shown: int = 100
    """Position among the settings of its panel."""
    is_on: Callable[[Any], bool] = bool
    """Whether a value other than None enables it."""
    applies: Callable[[Context], bool] = applies_always
    samples: bool = False
    """Whether it is used only while sampling."""
    uses_scores_only: bool = False
    """Whether it depends only on the scores, not on the text, so that all nodes of a draft are processed at once."""
    score_rule: ScoreRule = ""
    drafts: bool = True
    """Whether drafters apply it too, to predict the model's choice better; never needed for exactness."""
    reads: bool = False
    """Whether it runs the model a second time with a separate cache, which speculation then manages (`_Guide`)."""
    uses_rng: bool = False
    """Whether it uses a random number of the context once per step."""
    needs_every_token: bool = False
    """Whether it must see every token before the next is judged; drafts, which are judged together, are then refused.
    """
    end: Literal["", "first", "last"] = ""
    """Required position at the start or end, whatever the order of the stages."""
    before_contrast: bool = False
    """DoLa: whether it comes before the layers are contrasted, which keeps only tokens near the best one that remains.
    """
    before_diversity: bool = False
    """Group beam search: whether it comes before the penalty for the choices of earlier groups."""
    reorder_rows: Callable[[Any, torch.Tensor], None] | None = None
    """(transform, rows): rows were reordered, and new row i is old row `rows[i]`; for processors that keep state per
    row.
    """
    observe: Callable[[Any], StageObserver] | None = None
    """(transform) → an observer of its last call, requested after each traced step."""
    progress: Callable[[Any, Sequence[int]], GrammarProgress] | None = None
    """(transform, an answer's tokens without an end token) → the progress of the text in its required form."""
    forces: Callable[[Any, Sequence[int], int], bool] | None = None
    """(transform, an answer's tokens, number of the sequence) → whether its next token is written by force instead of
    chosen.
    """
    make_detector: Callable[[Any, Settings, ProcessorModel], WatermarkScorer] | None = None
    """(value, `Request.options`, model) → the detector of its watermark in a given text; raises ValueError like `make`.
    None if it leaves no watermark.
    """
    aliases: tuple[str, ...] = ()


MAX_DETAIL_TOKENS = 16
"""Maximum number of tokens listed in a stage's detail."""


def transformers_processors() -> Any:
    """Return transformers' module of processors; its annotations are narrower than what its classes accept."""
    from transformers.generation import logits_process  # heavy, and needed only by runs

    return logits_process


def no_detail() -> None:
    """Return None: the detail of a step without any."""


def is_not_one(value: float) -> bool:
    """Return whether the value enables it: any value but 1."""
    return value != 1.0


def is_below_one(value: float) -> bool:
    """Return whether the value enables it: any value below 1."""
    return value < 1.0


def is_inside_unit(value: float) -> bool:
    """Return whether the value enables it: any value between 0 and 1."""
    return 0.0 < value < 1.0


def is_given(value: object) -> bool:
    """Return True: any value enables it."""
    return True


class MinLengthBan:
    """(ids [B, T], scores [B, V]) → scores in which the end tokens are banned until T is `length`."""

    def __init__(self, length: int, ends: torch.Tensor | None) -> None:
        """Initialize the ban. `ends`: token ids of end tokens; ids without a score are ignored."""
        import torch

        self._length, self._ends = length, torch.as_tensor([] if ends is None else ends, dtype=torch.long).reshape(-1)
        self._known = self._ends[:0]
        """End tokens within scores of `_width`, on the device of the scores."""
        self._width = 0

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return a masked copy of the scores, or from that length on the scores themselves."""
        if ids.shape[-1] >= self._length:
            return scores
        if self._width != scores.shape[-1] or self._known.device != scores.device:
            self._width = scores.shape[-1]
            there = (self._ends >= 0) & (self._ends < self._width)  # an index of -1 would be the last token
            self._known = self._ends[there].to(scores.device)
        return scores.index_fill(-1, self._known, -math.inf)


class CountPenalty:
    """Logit − penalty · min(count, max_count), for the number of times that the answer contains the token so far.

    As in OpenAI's API and in vLLM, tokens of the prompt do not count; the given beginning of an answer does.
    Source: the formula in https://platform.openai.com/docs/advanced-usage.
    """

    def __init__(self, penalty: float, start: int, max_count: float = math.inf) -> None:
        """Initialize the penalty. `start`: position of the answer's first token."""
        self._penalty, self._start, self._max_count = penalty, start, max_count

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return scores [B, V] minus the penalties for the answers in `ids` [B, T]; ids without a score are ignored."""
        new, vocabulary = ids[:, self._start :], scores.shape[-1]
        known = (new < vocabulary).to(scores.dtype)
        counts = scores.new_zeros(scores.shape).scatter_add_(-1, new.clamp(max=vocabulary - 1), known)
        return scores - self._penalty * counts.clamp_(max=self._max_count)
