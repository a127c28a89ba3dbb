"""What the speculative strategies share: settings, their heads, and when they cannot serve."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from core.caches.base import CacheOperation
from core.common.hf_generation import GenerateEquivalent
from core.parameter import Parameter, Settings
from core.strategies.base import Strategy
from core.strategies.parameters import EVERYWHERE, NEW_TOKENS, PENALTIES, SAMPLING, SAMPLING_ADVANCED
from resources.language import mark, tr

if TYPE_CHECKING:
    from core.decoding.run import DecodingRun
    from core.events import Event
    from core.models.loaded_model import LoadedModel
    from core.request import Request

SupportCheck = Callable[["LoadedModel", "Request | None"], "str | None"]
"""(model, request or None) → why it cannot serve; None when it can."""

SAMPLE = Parameter(
    "do_sample", mark("Sample"), "bool", False,
    mark("Roll dice as sampling does; off, the text is that of greedy decoding (in half precision a near tie may "
         "fall otherwise)."),
)  # fmt: skip
SCHEDULE = Parameter(
    "schedule", mark("Draft length"), "choice", "auto",
    mark("auto drafts while it pays on this machine; constant drafts the same number always; heuristic takes 2 "
         "more after a draft accepted whole, else 1 less, and without dice remembers it; heuristic_transient "
         "begins anew with every run."),
    choices=("auto", "constant", "heuristic", "heuristic_transient"), option=True,
)  # fmt: skip
DRAFT_TOKENS = Parameter(
    "num_assistant_tokens", mark("Drafted tokens"), "int", None,
    mark("How many tokens to draft in a round: always (constant), or at first (heuristic). Unset, 5."),
    minimum=1, maximum=256, soft_maximum=20, step=1,
)  # fmt: skip
THRESHOLD = Parameter(
    "assistant_confidence_threshold", mark("Confidence threshold"), "float", None,
    mark("Stop drafting behind a token that its drafter gave less than this probability. 0 switches it off."),
    minimum=0.0, maximum=1.0, step=0.05, unset=0.0, advanced=True,
)  # fmt: skip
VERIFIER = Parameter(
    "verifier", mark("Verifier"), "choice", "auto",
    mark("greedy follows the target's first choice; sampling throws a die for every drafted token; auto takes the "
         "one that keeps the text's distribution."),
    choices=("auto", "greedy", "sampling"), option=True, advanced=True,
)  # fmt: skip
SETTINGS = (*SAMPLING, *PENALTIES, *SAMPLING_ADVANCED, *EVERYWHERE)
FLAGS = {"num_beams": 1, "penalty_alpha": None, "dola_layers": None, "num_return_sequences": 1}
CHAINS: frozenset[CacheOperation] = frozenset({"truncate", "drafts"})
"""What drafts without branches ask of a cache."""
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
    """A strategy of the one frame: its generator is `decode` of `core.decoding.speculation.speculation_factory`.

    `own` and `advanced` are its own settings, `lengths` what says how much is drafted, `fields` the rest of `Strategy`.
    """
    parameters = (LENGTH, SAMPLE, *own, SCHEDULE, *lengths, VERIFIER, *advanced, *SETTINGS)
    return Strategy(
        parameters=parameters, decode=_event_generator(decode), flags=FLAGS, refuse=combine_checks(*checks), needs=needs,
        speculates=True, **{"counterpart": counterpart, **fields},
    )  # fmt: skip


def _event_generator(name: str) -> Callable[[DecodingRun], Iterator[Event]]:
    def decode(run: DecodingRun) -> Iterator[Event]:
        """Rounds of drafting and verifying."""
        from core.decoding.speculation import speculation_factory  # torch is loaded only when something runs

        yield from getattr(speculation_factory, name)(run)

    return decode


def counterpart(request: Request) -> GenerateEquivalent:
    """`generate` drafts with one model at most, and verifies as it draws."""
    samples = bool(request.asked("do_sample"))
    verifier = request.options.get("verifier") or "auto"
    if verifier != "auto" and (verifier == "sampling") != samples:
        return GenerateEquivalent(
            missing=tr("transformers has no choice of the verifier, which here is “{verifier}”.").format(
                verifier=verifier
            )
        )
    schedule = request.options.get("schedule") or "auto"
    settings = {"num_assistant_tokens_schedule": schedule} if schedule in ("heuristic", "heuristic_transient") else {}
    dice = tr("Drafts are checked there with other dice: the same chances, not the same words.") if samples else ""
    return GenerateEquivalent(settings, note=dice)


def text_draft_source(options: Settings) -> tuple[str, ...]:
    """Drafts are what followed the same words before."""
    return (tr("The text so far"),)


def combine_checks(*checks: SupportCheck) -> SupportCheck:
    """A strategy's `refuse`: the first reason that any check gives, those of every speculative strategy before."""

    def refuse(model: LoadedModel, request: Request | None) -> str | None:
        for check in (_rollback_unsupported_reason, _sequences_unsupported_reason, *checks):
            if reason := check(model, request):
                return reason
        return None

    return refuse


def drafters_unsupported_reason(model: LoadedModel, request: Request | None) -> str | None:
    """Every draft model has to fit; without a request only the target is judged."""
    from core.decoding.speculation.drafters.compatibility import why_not_draft  # keeps this package light

    if request is None:
        return None
    if not request.drafters:
        return tr("no draft model is chosen.")
    reasons = (why_not_draft(model, draft) for draft in request.drafters)
    return next((reason for reason in reasons if reason), None)


def _rollback_unsupported_reason(model: LoadedModel, request: Request | None) -> str | None:
    from core.decoding.speculation.drafters.compatibility import target_unsupported_reason  # keeps this package light

    return target_unsupported_reason(model)


def _sequences_unsupported_reason(model: LoadedModel, request: Request | None) -> str | None:
    if request is None:
        return None
    if (request.asked("num_beams") or 1) > 1:
        return tr("drafts are verified for one text at a time, and beam search keeps several (num_beams is above 1).")
    if (request.asked("num_return_sequences") or 1) > 1:
        return tr("it writes one text at a time (num_return_sequences is above 1).")
    if "SynthID" in type(request.asked("watermarking_config")).__name__:
        return tr("a SynthID watermark keeps a state that cannot be rolled back.")
    return None
