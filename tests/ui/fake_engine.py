"""A scripted engine instead of a model: every run is the same, with the requested delays and faults."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from decodescope.app.control.adapters import AdapterInfo, AdapterQuery
from decodescope.app.control.memory_fit import MemoryEstimate, MemoryQuery
from decodescope.app.control.prompt_length import TokenCount, TokenCountQuery
from decodescope.app.session.kernel_builder import NativeStepQuery
from decodescope.app.session.local_models import LocalModels
from decodescope.app.session.queries.base import Query, Report
from decodescope.app.session.queries.layer_inspection import LayerInspectionQuery
from decodescope.app.session.queries.model_export import ModelExportQuery, ModelExportResult
from decodescope.app.session.queries.prefix_file import PrefixQuery, PrefixResult
from decodescope.app.state import conversation
from decodescope.app.state.layer_queries import LayerAttention, LayerResult, LayerView, PositionWeight
from decodescope.app.state.worker_messages import LoadRequest, ModelInfo, RunRequest
from decodescope.core.errors import AdapterError, CacheError, DecodescopeError
from decodescope.core.events import (
    Alternative,
    CacheMeasured,
    Event,
    Finished,
    Metrics,
    Prefilled,
    PromptToken,
    RunStarted,
    SequenceFinished,
    Stage,
    TokenChosen,
)

STORY = (
    " fox| named| Mia|.| She| lived| in| a| den| under| the| hill|.| Every| day|,| she| danced| until| evening|.| One|"
    " afternoon|,| Mia| heard| somebody| crying| from| the| river|.| “|What| was| that|?|”| asked| the| fox|.| Nobody|"
    " answered|.| Behind| a| tree| sat| a| lost| bird|."
).split("|")
VOCABULARY = 2048


def chosen(step: int, text: str, sequence: int = 0, seconds: float = 0.008) -> TokenChosen:
    """Return a token whose numbers depend only on its step."""
    p = 0.08 + 0.9 * abs(math.sin(step * 1.7 + sequence))
    rank = 1 if p > 0.4 else 2 + step % 5
    alternatives = [_alternative(step, place, p) for place in range(6)]
    alternatives[min(rank, 6) - 1] = _alternative(step, rank - 1, p, text, 400 + step)
    return TokenChosen(
        step, sequence, 400 + step, text, text, p * 0.9, p, math.log(p * 0.9), math.log(p), rank,
        entropy=2.2 * (1 - p), seconds=seconds, alternatives=tuple(alternatives), method="sampled",
        funnel=(
            Stage("raw", "raw", VOCABULARY, 1.0, 1.0, kind="model", phrase="the model"),
            Stage("temperature", "T 0.8", VOCABULARY, 1.0, 1.0, value=0.8, phrase="temperature 0.8"),
            Stage("top_p", "top-p 0.92", 14, 0.92, 0.9, (), 0.92, "cut", "top-p 0.92"),
        ),
    )  # fmt: skip


def _alternative(step: int, place: int, p: float, text: str = "", token: int = 0) -> Alternative:
    words = (" rabbit", " girl", " bear", " boy", " mouse", " bird")
    share = p if text else max(0.001, (1 - p) / (place + 2))
    stored = 0.0 if place > 3 and not text else share
    return Alternative(
        token or 900 + place, text or words[place % 6], share * 0.9, stored, math.log(share * 0.9),
        math.log(stored) if stored else -math.inf, place + 1,
    )  # fmt: skip


def begun(part: int | str) -> PromptToken:
    """Return the given beginning of an answer: words, or a token of the story by its id."""
    if isinstance(part, str):
        return PromptToken(0, part)
    return PromptToken(part, STORY[part - 400] if 400 <= part < 400 + len(STORY) else f" <{part}>")


def count_words(messages: Sequence[Mapping[str, str]]) -> int:
    """Words of a conversation."""
    return sum(len(message["content"].split()) for message in messages)


def _wait(hold: threading.Event, cancel: threading.Event) -> bool:
    """Wait until the run may continue; return True if it is canceled instead."""
    while not cancel.is_set() and not hold.wait(0.01):
        pass
    return cancel.is_set()


@dataclass
class ScriptedEngine:
    """`delay` seconds before each token (waited for on the cancel event, so stopping is prompt)."""

    tokens: list[str] = field(default_factory=lambda: list(STORY))
    delay: float = 0.0
    load_error: DecodescopeError | None = None
    fail_at: int | None = None
    error: BaseException | None = None
    info: ModelInfo | None = None
    hold: threading.Event | None = None
    """When given, each run waits for it after its tenth token."""
    loads: list[LoadRequest] = field(default_factory=list)
    runs: list[RunRequest] = field(default_factory=list)
    closed: int = 0
    """How many streams were closed or exhausted."""
    context: int = 512
    """Words of a chat that have a place."""
    fail_caches: tuple[str, ...] = ()
    """Runs with these fail at their third token."""
    prefixes: list[PrefixQuery] = field(default_factory=list)
    exports: list[ModelExportQuery] = field(default_factory=list)
    reckoned: list[RunRequest] = field(default_factory=list)
    estimate: MemoryEstimate | None = None
    looks: list[LayerInspectionQuery] = field(default_factory=list)
    is_quick: bool = True

    def load(self, request: LoadRequest) -> ModelInfo:
        """Fail as scripted, or describe a small model."""
        self.loads.append(request)
        if self.load_error is not None:
            raise self.load_error
        return self.info or ModelInfo(
            request.model, request.model, "cpu", "float32", 2, "", 5_700_000, 512, VOCABULARY, has_chat=True
        )

    def answer(self, query: Query, report: Report) -> object:
        """Answer as scripted; run the queries that have no script, without a model."""
        match query:
            case NativeStepQuery():
                return self.is_quick
            case AdapterQuery():
                return self._check_adapter(query)
            case PrefixQuery():
                return self._handle_prefix(query)
            case ModelExportQuery():
                return self._export_model(query)
            case TokenCountQuery():
                words = query.prompt.split() if isinstance(query.prompt, str) else query.prompt
                return TokenCount(len(words), self.context)
            case MemoryQuery():
                self.reckoned.append(query.request)
                return self.estimate
            case LayerInspectionQuery():
                for part in self._inspect_layers(query):
                    report(part)
                return None
        return query.run(LocalModels(), report)

    def _check_adapter(self, query: AdapterQuery) -> AdapterInfo:
        """Describe any adapter; one whose name contains “wrong” does not fit."""
        if "wrong" in query.path:
            raise AdapterError("It does not fit this model.", "Choose another one.")
        return AdapterInfo("LoRA", "", (8,), 4, 12_000)

    def prepare(self, request: RunRequest) -> RunRequest:
        """Trim a chat to the context, counting a word as a token."""
        if isinstance(request.prompt, str):
            return request
        stored = conversation.trim(request.prompt, self.context, 0, request.when_full, count_words)
        return request if len(stored) == len(request.prompt) else replace(request, prompt=stored)

    def _handle_prefix(self, query: PrefixQuery) -> PrefixResult:
        """Fail as scripted, or report success."""
        self.prefixes.append(query)
        if self.error is not None:
            raise self.error
        return PrefixResult(query.path, 12, 4096, "" if query.ids else "Once upon a time")

    def _export_model(self, query: ModelExportQuery) -> ModelExportResult:
        """Fail as scripted, or report success."""
        self.exports.append(query)
        if self.error is not None:
            raise self.error
        return ModelExportResult(query.path, 4096)

    def _inspect_layers(self, request: LayerInspectionQuery) -> Iterator[LayerResult]:
        """Yield results in two parts: four layers, or a weight for each position before the step."""
        self.looks.append(request)
        if self.error is not None:
            raise self.error
        layers = tuple(LayerView(n, STORY[n] if n < 3 else STORY[3], 0.5, n / 8, 5 - n) for n in range(5))
        weights = tuple(PositionWeight(n, n + 1, (-1) ** n * (n + 1) / 10) for n in range(request.step))
        half, whole = request.step // 2, request.step
        if request.query.kind in ("layers", "page"):
            count = len(request.ids) - request.step if request.query.kind == "page" else 1
            yield from (LayerResult((layers,), n + 1, count) for n in range(count))
            return
        if request.query.kind == "attention":
            shares = [LayerAttention(n, tuple((n + 1) / (m + 2) for m in range(whole))) for n in range(4)]
            yield LayerResult(tuple(shares), 1, 1)
            return
        yield LayerResult(weights[:half], half, whole)
        if not (request.cancel.is_set() or (self.hold is not None and _wait(self.hold, request.cancel))):
            yield LayerResult(weights[half:], whole, whole)

    def stream(self, request: RunRequest, cancel: threading.Event) -> Iterator[Event]:
        """The script's events."""
        self.runs.append(request)
        try:
            yield from self._events(request, cancel)
        finally:
            self.closed += 1

    def _events(self, request: RunRequest, cancel: threading.Event) -> Iterator[Event]:
        texts = int(request.settings.get("num_return_sequences", 1))
        words = str(request.prompt).split(" ")
        prompt = tuple(PromptToken(i, (" " if i else "") + word) for i, word in enumerate(words))
        settings = tuple(sorted(request.settings.items()))
        yield RunStarted(
            request.strategy, request.model, "cpu", "float32", request.cache, request.seed, prompt, settings, texts,
            VOCABULARY, 512, tuple(map(begun, request.beginning)),
        )  # fmt: skip
        yield Prefilled(len(prompt), 0.016)
        written = 0
        for step, text in enumerate(self.tokens):
            if cancel.is_set() or (self.delay and cancel.wait(self.delay)):
                break
            if step == self.fail_at and self.error is not None:
                raise self.error
            if step == 3 and request.cache in self.fail_caches:
                raise CacheError(f"{request.cache} gives up at token {step}.", "Choose another cache.")
            for sequence in range(texts):
                yield chosen(step, text, sequence)
            written += 1
            yield CacheMeasured(step, len(prompt) + step, 4096 * (len(prompt) + step), 4096 * (len(prompt) + step))
            if self.hold is not None and step == 9:
                while not cancel.is_set() and not self.hold.wait(0.01):
                    pass
        yield from self._ending(cancel, texts, written, len(prompt))

    def _ending(self, cancel: threading.Event, texts: int, written: int, prompt: int) -> Iterator[Event]:
        reason = "stopped" if cancel.is_set() else "eos"
        for sequence in range(texts):
            yield SequenceFinished(sequence, reason)
        metrics = Metrics(
            prompt,
            written * texts,
            0.4,
            0.024,
            1930.0,
            118.0,
            written,
            1.0,
            cache_bytes=237_568,
            cache_peak_bytes=237_568,
        )
        yield Finished(
            "stopped" if cancel.is_set() else "completed",
            tuple(tuple(400 + step for step in range(written)) for _ in range(texts)),
            tuple("".join(self.tokens[:written]) for _ in range(texts)),
            metrics,
            order=tuple(range(texts)),
        )
