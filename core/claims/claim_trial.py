"""Test a claim on a model: both cells on the same prompts and seeds, prompt by prompt, within a limit of seconds."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, NamedTuple, cast

from decodescope.core import caches, strategies
from decodescope.core.checks.arguments import argument_error, check_cancel
from decodescope.core.claims.claim_measures import measure_of
from decodescope.core.claims.claim_outcome import (
    ClaimExample,
    ClaimOutcome,
    compare,
    means,
    select_examples,
    verdict_of,
)
from decodescope.core.claims.claim_registry import named_claim
from decodescope.core.claims.prompt_sets import ClaimPrompt, claim_prompts
from decodescope.core.common.claim import PURE_SAMPLING, Claim, ClaimCell, ClaimRun
from decodescope.core.errors import DecodescopeError, StudyError
from decodescope.core.models.head_detection import bundled_heads, heads_unsupported_reason
from decodescope.core.request import Request
from decodescope.core.studies.runner import describe_result
from decodescope.core.studies.statistics import MIN_PROMPTS
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core.events import Event
    from decodescope.core.models.loaded_model import LoadedModel

LIMIT_SECONDS = 60.0
MIN_TOKENS = 16
"""Shortest texts for a slow model."""
SPARE_PROMPTS = 2
"""Prompts beyond the minimum that a shortened trial leaves time for."""


class ClaimProgress(NamedTuple):
    """The state of a trial."""

    done: int
    """Finished prompts."""
    total: int
    seconds_left: float
    """Seconds until the limit, or until the end by the speed so far."""
    outcome: ClaimOutcome | None = None
    """What the finished prompts show so far; None before the first."""


class _Deadline(threading.Event):
    """An event that is also set when the time is over."""

    def __init__(self, cancel: threading.Event, end: float) -> None:
        super().__init__()
        self._cancel, self._end = cancel, end

    def is_set(self) -> bool:
        return super().is_set() or self._cancel.is_set() or time.monotonic() >= self._end

    def wait(self, timeout: float | None = None) -> bool:
        left = max(0.0, self._end - time.monotonic())
        self._cancel.wait(left if timeout is None else min(left, timeout))
        return self.is_set()


def find_draft(model: LoadedModel) -> str | None:
    """Return the name of the bundled model that drafts for this one; None if there is none."""
    from decodescope.core.models.catalog import bundled

    names = {entry.name for entry in bundled()}
    return f"{model.name}-draft" if f"{model.name}-draft" in names else None


def try_claim(
    model: LoadedModel,
    claim: Claim | str,
    *,
    prompts: Sequence[str] | None = None,
    drafters: Sequence[LoadedModel] | None = None,
    seconds: float = LIMIT_SECONDS,
    cancel: threading.Event | None = None,
    progress: Callable[[ClaimProgress], None] | None = None,
) -> ClaimOutcome:
    """Test a claim on a model and return the verdict with its interval and examples.

    `prompts` replace the built-in ones; eight or more give an interval. `drafters`: the draft models of strategies that
    need one; the bundled draft model by default. After `seconds`, or when `cancel` is set, the verdict rests on the
    prompts that are finished. A model too slow for eight prompts in that time gets shorter texts. Raises StudyError if
    the claim cannot be tested on the model, and the errors of `run`.
    """
    from decodescope.core.models.loaded_model import check_model

    check_model(model)
    check_cancel(cancel)
    limit: object = seconds
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 < limit < 86_400:
        raise argument_error("seconds", seconds, tr("Pass a number of seconds above 0."))
    tested = named_claim(claim).claim if not isinstance(claim, Claim) else claim
    trial = _Trial(model, tested, cancel or threading.Event(), float(seconds), progress or (lambda _progress: None))
    chosen = trial.choose_prompts(prompts)
    drafts = trial.choose_drafters(drafters)
    for cell in (tested.baseline, tested.tested):
        trial.check_cell(cell, drafts if cell.uses_draft else ())
    return trial.run(chosen, drafts)


@dataclass
class _Trial:
    model: LoadedModel
    claim: Claim
    cancel: threading.Event
    seconds: float
    report: Callable[[ClaimProgress], None]

    def __post_init__(self) -> None:
        self.measure = measure_of(self.claim)
        self._tokens = self.claim.max_new_tokens
        self._clear()

    def _clear(self) -> None:
        self._values: tuple[dict[Hashable, dict[Hashable, float]], dict[Hashable, dict[Hashable, float]]] = ({}, {})
        self._examples: list[ClaimExample] = []
        self._written: list[Event] | None = None
        """The events of the text that was written last, for measures that read."""
        self._written_key: tuple[str, int] | None = None

    # --- what is needed

    def choose_prompts(self, given: Sequence[str] | None) -> tuple[ClaimPrompt, ...]:
        """Return the prompts. Raises StudyError for a model that needs other input than text."""
        model = self.model
        if model.is_encoder_decoder or model.modalities.needs:
            raise StudyError(
                tr("{model} does not continue a text, and claims are tested on continuations.").format(
                    model=model.name
                ),
                tr("Choose a model that continues texts."),
            )
        if model.tokenizer is None:
            raise StudyError(
                tr("{model} has no tokenizer, so it cannot read the prompts.").format(model=model.name),
                tr("Load the model with its tokenizer."),
            )
        if given is None:
            tokenizer = model.tokenizer
            return claim_prompts(self.claim.prompts, lambda text: len(tokenizer(text)["input_ids"]))
        texts: Sequence[object] = given
        if isinstance(texts, str) or not texts or not all(isinstance(one, str) and one for one in texts):
            raise argument_error("prompts", given, tr("Pass a list of texts."))
        if self.claim.prompts == "facts":
            raise StudyError(
                tr("The claim needs questions with right answers."), tr("Leave out the prompts to use its own."),
            )  # fmt: skip
        return tuple(ClaimPrompt(one) for one in dict.fromkeys(given))

    def check_cell(self, cell: ClaimCell, drafters: Sequence[LoadedModel]) -> None:
        """Raise StudyError if the model cannot run a cell."""
        strategy = strategies.select(cell.strategy, cell.settings, cell.uses_draft)
        request = Request("x", self._settings(cell), strategy=cell.strategy, drafters=tuple(drafters))
        reason = strategy.unsupported_reason(self.model, request) or caches.registry[cell.cache].unsupported_reason(
            self.model, strategy.needs, dict(cell.cache_settings)
        )
        if reason:
            raise StudyError(
                tr("The claim cannot be tested on {model}: {reason}").format(model=self.model.name, reason=reason),
                tr("Choose another model."),
            )

    def _settings(self, cell: ClaimCell) -> dict[str, object]:
        """Return the settings of a cell. A model without heads of its own gets the bundled head that fits it."""
        strategy = strategies.select(cell.strategy, cell.settings, cell.uses_draft)
        if "draft_head" not in strategy.parameter_names or "draft_head" in cell.settings:
            return dict(cell.settings)
        heads = ["", *bundled_heads()]
        head = next((one for one in heads if heads_unsupported_reason(self.model, one) is None), "")
        return {**cell.settings, "draft_head": head} if head else dict(cell.settings)

    def choose_drafters(self, given: Sequence[LoadedModel] | None) -> tuple[LoadedModel, ...]:
        """Return the draft models if a cell needs one. Raises StudyError if there is none."""
        if not (self.claim.baseline.uses_draft or self.claim.tested.uses_draft):
            return ()
        if given:
            return tuple(given)
        name = find_draft(self.model)
        if name is None:
            raise StudyError(
                tr("The claim needs a draft model, and none is bundled for {model}.").format(model=self.model.name),
                tr("Choose a smaller model with the same tokenizer as draft model."),
            )
        from decodescope.core.generation.loading import load
        from decodescope.core.models.loaded_model import check_model

        draft = load(name, device=self.model.device.type)
        check_model(draft)
        return (cast("LoadedModel", draft),)

    # --- runs

    def run(self, prompts: Sequence[ClaimPrompt], drafters: Sequence[LoadedModel]) -> ClaimOutcome:
        """Run both cells on each prompt until the time is over."""
        self._drafters = tuple(drafters)
        self._start = time.monotonic()
        self._deadline = _Deadline(self.cancel, self._start + self.seconds)
        self._total = len(prompts)
        self._warm_up(prompts[0])
        self._first = time.monotonic()
        queue, is_shortened = list(prompts), False
        while queue and not self._deadline.is_set():
            if not self._run_prompt(queue[0]):
                break
            queue.pop(0)
            if not is_shortened and self._shorten():
                is_shortened, queue = True, list(prompts)
                self._clear()
                self._first = time.monotonic()
            self._report(len(prompts) - len(queue))
        return self._outcome()

    def _warm_up(self, prompt: ClaimPrompt) -> None:
        """Run a few tokens: a model's first pass checks its fast ways and takes longer."""
        from decodescope.core.generation.running import run

        run(self.model, Request(prompt.text, {"max_new_tokens": 2, "do_sample": False}), self._deadline)

    def _shorten(self) -> bool:
        """Shorten the texts if eight prompts would take too long; return whether this was necessary."""
        done = len(self._values[0])
        per_prompt = (time.monotonic() - self._first) / max(1, done)
        left = self._start + self.seconds - time.monotonic()
        wanted = MIN_PROMPTS + SPARE_PROMPTS
        if per_prompt * (wanted - done) <= left or self._tokens <= MIN_TOKENS:
            return False
        shorter = max(MIN_TOKENS, int(self._tokens * left / (per_prompt * wanted)))
        is_shorter, self._tokens = shorter < self._tokens, min(shorter, self._tokens)
        return is_shorter

    def _run_prompt(self, prompt: ClaimPrompt) -> bool:
        """Run both cells with all seeds; return whether the prompt was finished, and keep nothing of it if not."""
        claim = self.claim
        found: tuple[dict[Hashable, float], dict[Hashable, float]] = ({}, {})
        examples: list[ClaimExample] = []
        runs: dict[tuple[bool, int], ClaimRun] = {}
        for seed in range(claim.seeds):
            pair = []
            for is_tested, cell in enumerate((claim.baseline, claim.tested)):
                is_random = bool(cell.settings.get("do_sample")) or self.measure.reads
                key = (bool(is_tested), seed if is_random else 0)
                if key not in runs:
                    own = self._run_cell(cell, prompt, seed)
                    if own is None:
                        return False
                    runs[key] = own
                pair.append(runs[key])
            tested = pair[1]._replace(baseline=pair[0])
            values = [self._compute(pair[0]), self._compute(tested)]
            if values[0] is None or values[1] is None:
                continue
            found[0][seed], found[1][seed] = values[0], values[1]
            examples.append(ClaimExample(prompt.text, seed, _text_of(pair[0]), _text_of(pair[1]), values[0], values[1]))
        if found[0]:
            self._values[0][prompt.text], self._values[1][prompt.text] = found
            self._examples += examples
        return True

    def _compute(self, run: ClaimRun) -> float | None:
        try:
            value = self.measure.compute(run)
        except DecodescopeError:
            raise
        except Exception as error:  # the measure may be a plug-in's
            raise StudyError(
                tr("The measure of the claim {claim} failed: {reason}.").format(
                    claim=self.claim.name, reason=f"{type(error).__name__}: {error}"
                ),
                tr("Correct the measure."),
            ) from error
        return None if value is None or not math.isfinite(value) else float(value)

    def _run_cell(self, cell: ClaimCell, prompt: ClaimPrompt, seed: int) -> ClaimRun | None:
        """Return a run of a cell; None if it was stopped."""
        if self.measure.reads:
            return self._read(cell, prompt, seed)
        events = self._events(cell, prompt.text, seed)
        if events is None:
            return None
        found, _problems = describe_result(events)
        return ClaimRun(found["texts"], found["metrics"], prompt.answers, self.claim.target)

    def _events(self, cell: ClaimCell, prompt: str, seed: int) -> list[Event] | None:
        from decodescope.core.events import Finished
        from decodescope.core.generation.running import stream

        request = Request(
            prompt, {**self._settings(cell), "max_new_tokens": self._tokens}, strategy=cell.strategy, cache=cell.cache,
            cache_options=dict(cell.cache_settings), seed=seed, top_n=1,
        )  # fmt: skip
        drafters = self._drafters if cell.uses_draft else None
        events = list(stream(self.model, request, self._deadline, drafters=drafters))
        last = events[-1] if events else None
        return events if isinstance(last, Finished) and last.reason == "completed" else None

    def _read(self, cell: ClaimCell, prompt: ClaimPrompt, seed: int) -> ClaimRun | None:
        """Return how likely a text of the model itself is if it is read through the cell's cache."""
        events = self._written if self._written_key == (prompt.text, seed) else None
        if events is None:
            settings = {**PURE_SAMPLING, "min_new_tokens": self._tokens}
            events = self._events(ClaimCell("", settings, "sampling"), prompt.text, seed)
            if events is None:
                return None
            self._written, self._written_key = events, (prompt.text, seed)
        from decodescope.core.decoding.prompt import encode
        from decodescope.core.events import Finished

        last = events[-1]
        assert isinstance(last, Finished)
        start = encode(self.model, prompt.text)
        value = self._read_through(cell, [*start, *last.sequences[0]], max(len(start), int(self.claim.target or 0)))
        text = {"text": last.texts[0], "ids": list(last.sequences[0]), "tokens": len(last.sequences[0])}
        return None if value is None else ClaimRun([text], {}, target=self.claim.target, reading=value)

    def _read_through(self, cell: ClaimCell, ids: Sequence[int], begin: int) -> float | None:
        """Return the mean natural log-probability of the tokens from `begin` on, read one by one; None if stopped."""
        import torch

        from decodescope.core.decoding.forward.forward_pass import Forward

        cache = caches.registry[cell.cache].build(self.model, len(ids), dict(cell.cache_settings))
        values = []
        with torch.inference_mode():
            forward = Forward(self.model, cache)
            for place in range(len(ids) - 1):
                if self._deadline.is_set():
                    return None
                logits = forward(torch.tensor([[ids[place]]], device=self.model.device)).last[0]
                if place + 1 >= begin:
                    values.append(float(logits.float().log_softmax(-1)[ids[place + 1]]))
        return math.fsum(values) / len(values) if values else None

    # --- results

    def _outcome(self) -> ClaimOutcome:
        claim, (baseline, tested) = self.claim, self._values
        found = compare(baseline, tested)
        verdict, reason = verdict_of(claim, self.measure, means(baseline), found)
        return ClaimOutcome(
            claim=claim.name, model=self.model.name, verdict=verdict, reason=reason, baseline_mean=means(baseline),
            tested_mean=means(tested), difference=found.mean if found else None, low=found.low if found else None,
            high=found.high if found else None, prompts=found.prompts if found else 0,
            texts=found.texts if found else 0, seconds=time.monotonic() - self._start, max_new_tokens=self._tokens,
            margin=claim.margin, planned_prompts=self._total, is_stopped=self.cancel.is_set(),
            examples=select_examples(self._examples), weights_hash=self.model.identity.weights_hash or "",
            draft=", ".join(one.name for one in self._drafters), date=date.today().isoformat(),
        )  # fmt: skip

    def _report(self, done: int) -> None:
        now = time.monotonic()
        by_speed = (now - self._first) / max(1, done) * (self._total - done)
        left = max(0.0, min(by_speed, self._start + self.seconds - now))
        self.report(ClaimProgress(done, self._total, left, self._outcome() if self._values[0] else None))


def _text_of(run: ClaimRun) -> str:
    return "\n\n".join(str(text["text"]) for text in run.texts)
