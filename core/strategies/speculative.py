"""Shared parts of the speculative strategies: settings, factory, and checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from decodescope.core.caches.base import CacheOperation
from decodescope.core.common.hf_generation import GenerateEquivalent
from decodescope.core.parameter import RANDOMNESS, Parameter, Settings
from decodescope.core.strategies.base import Strategy
from decodescope.core.strategies.parameters import EVERYWHERE, NEW_TOKENS, PENALTIES, SAMPLING, SAMPLING_ADVANCED
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.core.decoding.run import DecodingRun
    from decodescope.core.events import Event
    from decodescope.core.models.loaded_model import LoadedModel
    from decodescope.core.request import Request

SupportCheck = Callable[["LoadedModel", "Request | None"], "str | None"]
"""(model, request or None) → why it is not supported; None if it is."""

SAMPLE = Parameter(
    "do_sample", mark("Sample"), "bool", False,
    mark("Choose tokens at random as sampling does. Off: the same text as greedy decoding (in half "
        "precision, near ties may be decided differently)."), group=RANDOMNESS,
)  # fmt: skip
SCHEDULE = Parameter(
    "schedule", mark("Draft length"), "choice", "auto",
    mark("auto drafts only while it is faster on this machine; constant always drafts the same number; "
        "heuristic adds 2 after a fully accepted draft, else subtracts 1, and remembers the length if "
        "sampling is off; heuristic_transient starts over with every run."),
    choices=("auto", "constant", "heuristic", "heuristic_transient"), option=True,
)  # fmt: skip
DRAFT_TOKENS = Parameter(
    "num_assistant_tokens", mark("Drafted tokens"), "int", None,
    mark("Number of tokens to draft per round: fixed (constant) or initial (heuristic). Default: 5."),
    minimum=1, maximum=256, soft_maximum=20, step=1,
)  # fmt: skip
THRESHOLD = Parameter(
    "assistant_confidence_threshold", mark("Confidence threshold"), "float", None,
    mark("Stop drafting after a token with a lower draft probability. 0 turns it off."),
    minimum=0.0, maximum=1.0, step=0.05, unset=0.0, advanced=True,
)  # fmt: skip
VERIFIER = Parameter(
    "verifier", mark("Verifier"), "choice", "auto",
    mark("greedy follows the target's first choice; sampling accepts or rejects each drafted token at "
        "random; auto uses the one that keeps the text's distribution."),
    choices=("auto", "greedy", "sampling"), option=True, advanced=True,
)  # fmt: skip
SETTINGS = (*SAMPLING, *PENALTIES, *SAMPLING_ADVANCED, *EVERYWHERE)
FLAGS = {"num_beams": 1, "penalty_alpha": None, "dola_layers": None, "num_return_sequences": 1}
CHAINS: frozenset[CacheOperation] = frozenset({"truncate", "drafts"})
"""Cache capabilities required by drafts without branches."""
LENGTH = replace(NEW_TOKENS, default=120)


def make_speculative(
    decode: str,
    *,
    own: tuple[Parameter, ...] = (),
    lengths: tuple[Parameter, ...] = (DRAFT_TOKENS, THRESHOLD),
    advanced: tuple[Parameter, ...] = (),
    checks: tuple[SupportCheck, ...] = (),
    needs: frozenset[CacheOperation] = CHAINS,
    **fields: Any,
) -> Strategy:
    """Create a speculative strategy with the generator `decode` of `core.decoding.speculation.speculation_factory`.

    `own` and `advanced` are its own settings, `lengths` the settings of the draft length, `fields` the other fields of
    `Strategy`.
    """
    parameters = (LENGTH, SAMPLE, *own, SCHEDULE, *lengths, VERIFIER, *advanced, *SETTINGS)
    return Strategy(
        parameters=parameters,
        decode=_event_generator(decode),
        flags=FLAGS,
        rejection_reason=combine_checks(*checks),
        needs=needs,
        speculates=True,
        **{"generate_equivalent": generate_equivalent, **fields},
    )


def _event_generator(name: str) -> Callable[[DecodingRun], Iterator[Event]]:
    def decode(run: DecodingRun) -> Iterator[Event]:
        """Run rounds of drafting and verification."""
        from decodescope.core.decoding.speculation import (
            speculation_factory,  # torch is loaded only when something runs
        )

        yield from getattr(speculation_factory, name)(run)

    return decode


def generate_equivalent(request: Request) -> GenerateEquivalent:
    """Return the counterpart: `generate` drafts with at most one model and has no choice of the verifier."""
    samples = bool(request.settings.get("do_sample"))
    verifier = request.settings.get("verifier") or "auto"
    if verifier != "auto" and (verifier == "sampling") != samples:
        return GenerateEquivalent(
            missing=tr("transformers cannot choose the verifier, which is set to “{verifier}” here.").format(
                verifier=verifier
            )
        )
    schedule = request.settings.get("schedule") or "auto"
    settings = {"num_assistant_tokens_schedule": schedule} if schedule in ("heuristic", "heuristic_transient") else {}
    dice = (
        tr("transformers verifies drafts with other random numbers: the distribution is the same, but not the text.")
        if samples
        else ""
    )
    return GenerateEquivalent(settings, note=dice)


def text_draft_source(options: Settings) -> tuple[str, ...]:
    """Return the text so far as the draft source."""
    return (tr("The text so far"),)


def combine_checks(*checks: SupportCheck) -> SupportCheck:
    """Build a strategy's `refuse`: the first reason of any check, starting with those of all speculative strategies."""

    def refuse(model: LoadedModel, request: Request | None) -> str | None:
        for check in (_rollback_unsupported_reason, _sequences_unsupported_reason, *checks):
            if reason := check(model, request):
                return reason
        return None

    return refuse


def drafters_unsupported_reason(model: LoadedModel, request: Request | None) -> str | None:
    """Return why a draft model does not fit; without a request only the target is checked."""
    from decodescope.core.decoding.speculation.drafters.compatibility import why_not_draft  # keeps this package light

    if request is None:
        return None
    if not request.drafters and not request.settings.get("extra_drafters"):
        return tr("no draft model is selected.")
    reasons = (why_not_draft(model, draft) for draft in request.drafters)
    return next((reason for reason in reasons if reason), None)


def _rollback_unsupported_reason(model: LoadedModel, request: Request | None) -> str | None:
    from decodescope.core.decoding.speculation.drafters.compatibility import (
        target_unsupported_reason,  # keeps this package light
    )

    return target_unsupported_reason(model)


def _sequences_unsupported_reason(model: LoadedModel, request: Request | None) -> str | None:
    if request is None:
        return None
    if (request.settings.get("num_beams") or 1) > 1:
        return tr(
            "drafts are verified for one sequence at a time, but beam search keeps several (num_beams is above 1)."
        )
    if (request.settings.get("num_return_sequences") or 1) > 1:
        return tr("only one sequence can be generated at a time (num_return_sequences is above 1).")
    if "SynthID" in type(request.settings.get("watermarking_config")).__name__:
        return tr("a SynthID watermark has a state that cannot be rolled back.")
    return None
