"""A run: what it is and what it has read as it begins, how its texts and itself end, and its figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.common.size_terms import Term

Ending = Literal["eos", "length", "context", "time", "stop_string", "stopped", "given", "grammar"]
"""Why a sequence ended: by itself, at a limit, at a stop text, because somebody stopped it, where the text that was
given ends, or because its grammar allows nothing more."""
NoticeKind = Literal["memory_fallback", "setting_ignored", "read_anew", "half_precision", "not_told", "media_cut"]
RunEnd = Literal["completed", "stopped"]


@dataclass(frozen=True, slots=True)
class Event:
    """Base of everything `core.stream` yields."""


@dataclass(frozen=True, slots=True)
class PromptToken:
    """One token of the prompt: its id and the text it adds."""

    id: int
    text: str
    """Whole characters: one made of several tokens comes with the last of them."""
    piece: str = ""
    """The token by itself where that is not its text: the bytes of a part of a character, ⟨E2⟩."""
    special: bool | None = None
    """Whether decoding skips it, by the tokenizer's own mark; None where that is not known (older recordings)."""


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """Which model it was, wherever it lay: two that differ in any of these are not the same."""

    name: str
    architecture: str = ""
    """The class of the network: LlamaForCausalLM."""
    config_hash: str = ""
    """SHA-256 of its configuration."""
    weights_hash: str = ""
    """SHA-256 of what lists its weights (an index, the headers of the files, or the parameters' shapes): not of the
    weights themselves, which would take minutes to read."""
    kept_in: str = ""
    """int8 or int4 where the weights were packed while loading; empty where they are the file's own numbers."""


MediumKind = Literal["sound", "picture"]
MediumPlace = Literal["prompt", "before", "encoder"]
"""Where a model reads a sound or a picture: at tokens of the prompt that stand for it, before the prompt's first token,
or in an encoder of its own, whose states the decoder looks at and which have no place in the text."""


@dataclass(frozen=True, slots=True)
class MediumRead:
    """A sound or a picture as the model reads it: the positions it takes."""

    path: str
    kind: MediumKind
    digest: str
    """SHA-256 of the file."""
    place: MediumPlace
    first: int
    last: int
    """First and last position: of the prompt's tokens, or counted from 0 where it is read before them or in an encoder.
    A model may put marks of its own (new lines, borders) between the parts of one picture; they are inside."""
    rows: int = 0
    columns: int = 0
    """Of a picture the grid of patches, row by row, where the positions are one; else 0."""
    width: int = 0
    height: int = 0
    """Of a picture: pixels of the file."""
    seconds: float = 0.0
    """Of a sound: how long it is. Its positions share out `heard` seconds evenly."""
    heard: float = 0.0
    """Of a sound: seconds that the positions stand for, the silence included that a model fills up with."""


@dataclass(frozen=True, slots=True)
class RunStarted(Event):
    """The run as it will be done: every default resolved, nothing computed yet."""

    strategy: str
    model: str
    device: str
    dtype: str
    cache: str
    seed: int
    prompt: tuple[PromptToken, ...]
    settings: tuple[tuple[str, object], ...]
    """Effective settings that differ from the defaults, sorted by name; (name, value)."""
    sequences: int = 1
    vocabulary: int = 0
    context: int | None = None
    """Longest text the model was built for, in tokens; None when it has no limit of its own."""
    beginning: tuple[PromptToken, ...] = ()
    """What the answer begins with (`Request.beginning`): a branch of another run's text."""
    second: str = ""
    """Scoring: the name of a second model that reads the same text; empty without one."""
    identity: ModelIdentity | None = None
    media: tuple[MediumRead, ...] = ()
    """The sounds and pictures of the request, in order."""
    engine: str = ""
    """The engine on another machine that runs the model (`vLLM`), `device` its address; empty for one of ours. What an
    engine does not tell is NaN where it is a share or a logarithm, 0 where it is a rank; a token whose id it does not
    tell has a negative number, which only tells it from others."""


@dataclass(frozen=True, slots=True)
class Prefilled(Event):
    """The prompt, and what the answer begins with, has been read (one forward pass, the encoder's included)."""

    tokens: int
    seconds: float
    reused: int = 0
    """Tokens taken from a cache of an earlier run instead of being computed."""


@dataclass(frozen=True, slots=True)
class SequenceFinished(Event):
    """One sequence ended."""

    sequence: int
    reason: Ending
    stop_string: str = ""
    """The one that ended it."""
    limit: float | None = None
    """What ended it: new tokens (length), tokens of the whole text (context) or seconds (time)."""
    tail: str = ""
    """Text that was still held back (an incomplete character), released as it is."""
    whole: bool | None = None
    """Whether it is a whole text of the run's grammar; None where there is none."""


@dataclass(frozen=True, slots=True)
class Notice(Event):
    """Something the reader should know and that did not stop the run."""

    kind: NoticeKind
    message: str


@dataclass(frozen=True, slots=True)
class Metrics:
    """Numbers on a run; None where a run has no such number."""

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
    """Speculation: accepted ÷ examined drafted tokens."""
    draft_seconds: float | None = None
    verify_seconds: float | None = None
    overhead_seconds: float | None = None
    predicted_speedup: float | None = None
    """Speculation: by the formula (1 − β^(γ+1)) / ((1 − β)(γc + 1))."""
    cache_bytes: int = 0
    cache_peak_bytes: int = 0
    peak_memory_bytes: int | None = None
    """Weights, cache and activations together, measured: what torch took on a graphics card, or the whole process on a
    CPU; None where the system does not tell."""


@dataclass(frozen=True, slots=True)
class Finished(Event):
    """Last event of every run that was not ended by an error; best sequence first."""

    reason: RunEnd
    sequences: tuple[tuple[int, ...], ...]
    """New tokens only: without the prompt, and without what the answer begins with."""
    texts: tuple[str, ...]
    metrics: Metrics
    scores: tuple[float, ...] | None = None
    order: tuple[int, ...] = ()
    """Which `sequence` number each of `sequences` had while it streamed."""


@dataclass(frozen=True, slots=True)
class CacheMeasured(Event):
    """Bytes the key–value cache holds now. `parts` sums up to `bytes`."""

    step: int
    tokens: int
    bytes: int
    peak: int
    parts: tuple[tuple[str, str, int], ...] = ()
    """(place, part, bytes): place device/host/disk; part keys, values, scales, residual, self, cross, state."""
    layers: tuple[int, ...] = ()
    held: tuple[tuple[int, int], ...] = ()
    """Places in the text, [start, stop), that the most forgetful layer still holds; () when none forgets."""
    error: float | None = None
    """Quantized caches: relative error of the keys."""


@dataclass(frozen=True, slots=True)
class CachePlan(Event):
    """What the cache of this run is going to take, by length of the text; told once the prompt has been read."""

    backend: str
    size: Term
    """Bytes as arithmetic on named figures and the length of the text (tokens read)."""
    start: int
    """Length of the text the decoder has read with the prompt."""
    lengths: tuple[int, ...]
    """Lengths in tokens that were predicted, ascending, up to the run's limit."""
    predicted: tuple[int, ...]
    """Bytes at those lengths."""
    dynamic: tuple[int, ...]
    """Bytes a cache that keeps everything would take at those lengths."""
    capacity: int | None = None
    """Tokens it was allocated for; None when it grows."""
    sinks: int = 0
    """First tokens that are never forgotten."""
    window: int | None = None
    """Tokens seen at a time by the layer that forgets most; None when none forgets."""
    block: int | None = None
    """Quantized: tokens that are written at a time; fewer than that wait unharmed."""
    bits: int | None = None
