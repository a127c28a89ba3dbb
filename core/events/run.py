"""Events of the run as a whole: its start, prefill, ends of sequences, end and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from decodescope.core.common.size_terms import Term

Ending = Literal["eos", "length", "context", "time", "stop_string", "stopped", "given", "grammar"]
"""Why a sequence ended: end token, a limit, a stop string, stopped by the user, end of the given text, or no token
allowed by the grammar.
"""
NoticeKind = Literal[
    "memory_fallback",
    "setting_ignored",
    "read_anew",
    "half_precision",
    "not_told",
    "media_cut",
    "weights_unpacked",
    "not_repeatable",
]
RunEnd = Literal["completed", "stopped"]


@dataclass(frozen=True, slots=True)
class Event:
    """Base class of everything `core.stream` yields."""


@runtime_checkable
class HasEvents(Protocol):
    """A run with its events, such as a `Result`."""

    @property
    def events(self) -> Sequence[Event]:
        """The events in order."""


@dataclass(frozen=True, slots=True)
class PromptToken:
    """One token of the prompt."""

    id: int
    text: str
    """Text it adds, in whole characters: a character of several tokens comes with the last of them."""
    piece: str = ""
    """The token itself where it differs from `text`: the bytes of an incomplete character, ⟨E2⟩."""
    special: bool | None = None
    """Whether the tokenizer marks it as special (skipped in decoding); None if unknown (older recordings)."""


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """Identity of a model, independent of its location: models that differ in any field are different."""

    name: str
    architecture: str = ""
    """Class of the network: LlamaForCausalLM."""
    config_hash: str = ""
    """SHA-256 of the configuration."""
    weights_hash: str = ""
    """SHA-256 of the list of weights (an index, the headers of the files, or the parameters' shapes), not of the
    weights themselves, which would take minutes to read.
    """
    kept_in: str = ""
    """int8 or int4 if the weights were quantized while loading; empty if they are as in the files."""
    memory_hash: str = field(default="", compare=False)
    """Captured runs: SHA-256 of samples of every tensor in memory at the start of the run."""


CallFacts = tuple[tuple[str, str], ...]
"""What a captured call used that a request cannot contain, as (kind, name), explained by `core.explain.call_facts`:
`processor` and `criterion` (class and arguments), `function`, `inputs`, `setting`, `assistant`, `files` (the weights in
memory differ from those on disk), `mode`, `rows` (prompts that share one generator), `draws` (the random numbers are
not known), and `weights` (hash of the weights in memory).
"""


@dataclass(frozen=True, slots=True)
class AdapterUsed:
    """A LoRA adapter of a run."""

    name: str
    strength: float
    """Factor of its effect; 1 is the adapter as it was trained."""
    digest: str
    """Hash of its tensors."""


MediumKind = Literal["sound", "picture"]
MediumPlace = Literal["prompt", "before", "encoder"]
"""Where a model reads a sound or a picture: at placeholder tokens of the prompt, before the prompt's first token, or in
a separate encoder whose states the decoder attends to and which has no position in the text.
"""


@dataclass(frozen=True, slots=True)
class MediumRead:
    """A sound or picture as read by the model: the positions it occupies."""

    path: str
    kind: MediumKind
    digest: str
    """SHA-256 of the file."""
    place: MediumPlace
    first: int
    last: int
    """First and last position: of the prompt's tokens, or counted from 0 where it is read before them or in an encoder.
    Separator tokens of the model (new lines, borders) between the parts of one picture are included.
    """
    rows: int = 0
    columns: int = 0
    """Pictures: the grid of patches, row by row, if the positions form one; else 0."""
    width: int = 0
    height: int = 0
    """Pictures: size of the file in pixels."""
    seconds: float = 0.0
    """Sounds: duration of the file. The positions divide `heard` seconds evenly."""
    heard: float = 0.0
    """Sounds: duration covered by the positions, including padding silence."""


@dataclass(frozen=True, slots=True)
class RunStarted(Event):
    """The run as it will be executed: every default is resolved, nothing computed yet."""

    strategy: str
    model: str
    device: str
    dtype: str
    cache: str
    seed: int
    prompt: tuple[PromptToken, ...]
    settings: tuple[tuple[str, object], ...]
    """Effective settings that differ from the defaults, as (name, value), sorted by name."""
    sequences: int = 1
    vocabulary: int = 0
    context: int | None = None
    """Maximum text length of the model in tokens; None if it has no limit."""
    beginning: tuple[PromptToken, ...] = ()
    """Tokens that the answer begins with (`Request.beginning`): for a branch, part of another run's text."""
    second: str = ""
    """Scoring: name of the comparison model; empty without one."""
    identity: ModelIdentity | None = None
    media: tuple[MediumRead, ...] = ()
    """The sounds and pictures of the request, in order."""
    engine: str = ""
    """The remote engine that runs the model (`vLLM`), `device` its address; empty for a local model. Values that an
    engine does not report are NaN (probabilities and logarithms) or 0 (ranks); a token whose id it does not report has
    a negative number that only distinguishes it from others.
    """
    adapters: tuple[AdapterUsed, ...] = ()
    """The adapters in effect."""
    placement: tuple[tuple[str, int], ...] = ()
    """(device, bytes of weights) of a model that is spread over several devices."""
    call_facts: CallFacts = ()
    """Captured runs: what the call used that a request cannot contain."""
    thinking: tuple[tuple[str, str, str], ...] = ()
    """Marks around the model's thinking: opening, closing, and text that may follow before the answer
    (`core.thinking.ThinkingMark`); () if it has none of its own.
    """
    generator: str = ""
    """Hash of the state in which the random generator was, where that is not the one after `seed`, which is 0 then."""


@dataclass(frozen=True, slots=True)
class Prefilled(Event):
    """The prompt and the given beginning of the answer have been read (one forward pass, including the encoder's)."""

    tokens: int
    seconds: float
    reused: int = 0
    """Tokens taken from the cache of an earlier run instead of being computed."""


@dataclass(frozen=True, slots=True)
class SequenceFinished(Event):
    """A sequence ended."""

    sequence: int
    reason: Ending
    stop_string: str = ""
    """The stop string that ended it."""
    limit: float | None = None
    """The limit that ended it: new tokens (length), tokens of the whole text (context) or seconds (time)."""
    tail: str = ""
    """Text still held back (an incomplete character), emitted as it is."""
    whole: bool | None = None
    """Whether the text is complete under the run's grammar; None without a grammar."""


@dataclass(frozen=True, slots=True)
class Notice(Event):
    """Information for the user that does not stop the run."""

    kind: NoticeKind
    message: str


@dataclass(frozen=True, slots=True)
class Metrics:
    """Metrics of a run; None where a metric does not apply."""

    prompt_tokens: int = 0
    new_tokens: int = 0
    seconds: float = 0.0
    time_to_first_token: float | None = None
    prefill_tokens_per_second: float | None = None
    decode_tokens_per_second: float | None = None
    """After the first token, all sequences together."""
    target_passes: int = 0
    tokens_per_target_pass: float | None = None
    acceptance_rate: float | None = None
    """Speculation: accepted ÷ compared positions of the drafts; siblings of a tree share a position."""
    draft_seconds: float | None = None
    verify_seconds: float | None = None
    overhead_seconds: float | None = None
    predicted_speedup: float | None = None
    """Speculation: by the formula (1 − β^(γ+1)) / ((1 − β)(γc + 1))."""
    cache_bytes: int = 0
    cache_peak_bytes: int = 0
    peak_memory_bytes: int | None = None
    """Measured peak of weights, cache and activations together: torch's allocation on a GPU, the whole process on a
    CPU; None if the system does not report it.
    """


@dataclass(frozen=True, slots=True)
class Finished(Event):
    """Last event of every run that did not end with an error; best sequence first."""

    reason: RunEnd
    sequences: tuple[tuple[int, ...], ...]
    """New tokens only: without the prompt and the given beginning of the answer."""
    texts: tuple[str, ...]
    metrics: Metrics
    scores: tuple[float, ...] | None = None
    order: tuple[int, ...] = ()
    """The `sequence` number that each of `sequences` had while streaming."""


@dataclass(frozen=True, slots=True)
class CacheMeasured(Event):
    """Current size of the key–value cache in bytes. The `parts` add up to `bytes`."""

    step: int
    tokens: int
    bytes: int
    peak: int
    parts: tuple[tuple[str, str, int], ...] = ()
    """(device, part, bytes): device is device, host or disk; part is keys, values, scales, residual, self, cross or
    state.
    """
    layers: tuple[int, ...] = ()
    held: tuple[tuple[int, int], ...] = ()
    """Positions of the text, [start, stop), that the layer with the shortest memory still holds; () if no layer drops
    tokens.
    """
    error: float | None = None
    """Quantized caches: relative error of the keys."""
    spare: int = 0
    """Bytes allocated for later tokens, not part of `bytes`; 0 if the cache has exactly the room that it needs."""
    device_used: int = 0
    """Bytes of all tensors on the GPU; 0 without one."""
    device_reserved: int = 0
    """Further bytes that torch has taken from the GPU's driver: for tensors to come, and for CUDA graphs."""
    device_free: int = 0
    """Bytes that are free for the GPU's driver."""


@dataclass(frozen=True, slots=True)
class CachePlan(Event):
    """Predicted size of the run's cache by length of the text; emitted after the prefill."""

    backend: str
    size: Term
    """Size in bytes as an expression in named values and the text length (tokens read)."""
    start: int
    """Number of tokens in the decoder's text after the prefill."""
    lengths: tuple[int, ...]
    """Text lengths in tokens, ascending, up to the run's limit."""
    predicted: tuple[int, ...]
    """Predicted size in bytes at those lengths."""
    dynamic: tuple[int, ...]
    """Size in bytes of a dynamic cache at those lengths."""
    capacity: int | None = None
    """Allocated capacity in tokens; None if it grows."""
    sinks: int = 0
    """Number of first tokens that are never dropped."""
    window: int | None = None
    """Window of the layer that drops most, in tokens; None if no layer drops tokens."""
    block: int | None = None
    """Quantized cache: tokens quantized at a time; fewer than that stay in full precision."""
    bits: int | None = None
