"""Build a `Speculation` from a request: its drafters, schedule and shape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from decodescope.core.decoding.run import DecodingRun
from decodescope.core.decoding.speculation.auto_length import AutoLength
from decodescope.core.decoding.speculation.drafter_selection import (
    BestDrafterSelector,
    DrafterSelector,
    MergeAllDrafters,
)
from decodescope.core.decoding.speculation.drafters import Drafter, combinable_drafters, registry
from decodescope.core.decoding.speculation.drafters.head_drafter import build_head_drafter
from decodescope.core.decoding.speculation.round_plan import (
    DEFAULT_LENGTH,
    ConstantLength,
    DraftLengthSchedule,
    HeuristicLength,
)
from decodescope.core.decoding.speculation.speculation_loop import Speculation, SpeculationShape
from decodescope.core.decoding.speculation.target_model import TargetModel
from decodescope.core.decoding.speculation.tree_passes import TYPICAL_COST, TargetHiddenStates, VerifyCost, verify_cost
from decodescope.core.errors import ParameterError
from decodescope.core.events import Event
from decodescope.resources.language import tr

_MIN_DRAFT_COST = 0.01
"""Minimum cost fraction, because a drafter without weights takes some time too."""
_DISK_SLOWDOWN = 8
"""Approximate slowdown of weights on disk compared to memory, for modelled times."""
_SEPARATORS = str.maketrans(",⟨⟩", "   ")
DEFAULT_WIDTHS = (1, 1, 3, 1, 1)


def decode_assisted(run: DecodingRun) -> Iterator[Event]:
    """Draft chains with the first draft model, or with all of them and other drafters merged."""
    drafters = _requested_drafters(run)
    options = run.settings
    further = combinable_drafters(str(options.get("extra_drafters") or ""))
    lookup = registry["prompt_lookup"]
    if options.get("with_lookup"):
        further = [lookup, *(kind for kind in further if kind is not lookup)]
    drafters += [kind.build(run, number) for number, kind in enumerate(further, len(drafters))]
    shape = SpeculationShape(_uses_sampling(run), _uses_sampling(run), threshold=_threshold(run))
    yield from _decode(run, drafters, shape, chooses=options.get("several") == "choose")


def decode_lookup(run: DecodingRun) -> Iterator[Event]:
    """Draft chains found in the text (and in an encoder's source)."""
    drafter = registry["prompt_lookup"].build(run, 0)
    shape = SpeculationShape(_uses_sampling(run), _uses_sampling(run))
    yield from _decode(run, [drafter], shape, drafter.max_length(0))


def decode_lookahead(run: DecodingRun) -> Iterator[Event]:
    """Draft trees of n-grams from the target's own passes."""
    drafter = registry["lookahead"].build(run, 0)
    shape = SpeculationShape(_uses_sampling(run), _uses_sampling(run))
    yield from _decode(run, [drafter], shape, drafter.max_length(0))


def decode_early_exit(run: DecodingRun) -> Iterator[Event]:
    """Draft chains with the target's lower layers."""
    shape = SpeculationShape(_uses_sampling(run), _uses_sampling(run), threshold=_threshold(run))
    yield from _decode(run, [registry["early_exit"].build(run, 0)], shape)


def _requested_drafters(run: DecodingRun) -> list[Drafter]:
    """Build a drafter for each draft model of the request."""
    return [registry["draft_model"].build(run, number) for number in range(len(run.request.drafters))]


def decode_heads(run: DecodingRun) -> Iterator[Event]:
    """Draft chains, or trees of given widths, with heads on the target's hidden states."""
    samples = _uses_sampling(run)
    drafter = build_head_drafter(run, 0)
    heads = drafter.reader.heads
    widths = parse_widths(run.settings.get("widths"))
    if heads.count > 1 and any(width > 1 for width in widths):
        raise ParameterError(
            tr("{model} has {count} heads, one per position ahead, which can only draft a chain.").format(
                model=run.model.name, count=heads.count
            ),
            tr("Leave the widths empty."),
            "widths",
        )
    shape = SpeculationShape(samples, samples, widths, threshold=_threshold(run))
    length = heads.count if heads.count > 1 else None
    yield from _decode(run, [drafter], shape, length, features=drafter.reader.target_states)


def decode_tree(run: DecodingRun) -> Iterator[Event]:
    """Draft trees with one draft model, or merge the trees of several."""
    samples = _uses_sampling(run)
    draws = _draws_children(run, samples)
    widths = parse_widths(run.settings.get("widths"))
    automatic = not widths and _schedule_name(run) == "auto"
    shape = SpeculationShape(
        samples, draws, widths if widths or automatic else DEFAULT_WIDTHS, automatic, _threshold(run)
    )
    yield from _decode(run, _requested_drafters(run), shape)


def parse_widths(value: object) -> tuple[int, ...]:
    """Parse widths from a list or from text such as "1 1 3 1 1"; empty when unset. Raises ParameterError."""
    if value is None or value == "":
        return ()
    words = value.translate(_SEPARATORS).split() if isinstance(value, str) else value
    try:
        widths = tuple(int(word) for word in words) if isinstance(words, (list, tuple)) else ()
    except (TypeError, ValueError):
        widths = ()
    nodes, level = 0, 1
    for width in widths:
        level *= width
        nodes += level
    if not widths or min(widths) < 1 or nodes > 256:
        raise ParameterError(
            tr("The widths {value!r} are invalid.").format(value=value),
            tr("Use one whole number of at least 1 per depth, such as “1 1 3 1 1”, for a tree of at most 256 tokens."),
            "widths",
        )
    return widths


def _decode(
    run: DecodingRun,
    drafters: Sequence[Drafter],
    shape: SpeculationShape,
    length: int | None = None,
    chooses: bool = False,
    features: TargetHiddenStates | None = None,
) -> Iterator[Event]:
    target = TargetModel(run)
    target.passes.hidden_states = features
    has_modelled_times = shape.is_sampled or run.request.steady

    def schedule(group: Sequence[Drafter]) -> DraftLengthSchedule:
        key = "/".join(drafter.name for drafter in group) + f"/{run.strategy.name}/{shape.is_sampled}"
        return _schedule(run, target, key, shape, length, _draft_cost(run, group) if has_modelled_times else None)

    def make_selector() -> DrafterSelector:
        if not chooses or len(drafters) < 2:
            return MergeAllDrafters(len(drafters), schedule(drafters))
        alone = [[drafter] for drafter in drafters]
        shares = [_draft_cost(run, each) for each in alone] if has_modelled_times else None
        return BestDrafterSelector([schedule(each) for each in alone], _cost(run, target), shares)

    yield from Speculation(run, target, drafters, make_selector, shape).decode()


def _cost(run: DecodingRun, target: TargetModel) -> VerifyCost:
    return TYPICAL_COST if run.request.steady else verify_cost(target.passes, run.start_ids[-1])


def _draft_cost(run: DecodingRun, drafters: Sequence[Drafter]) -> float:
    """Return the estimated cost of a draft pass ÷ a target pass, by parameter counts; parameters on disk count more."""
    shelf, weighs = run.model.disk_offload, float(run.model.parameters)
    if shelf is not None:
        weighs += (_DISK_SLOWDOWN - 1) * weighs * shelf.bytes / (shelf.bytes + shelf.kept_bytes)
    return max(sum(drafter.parameter_count for drafter in drafters) / weighs, _MIN_DRAFT_COST)


def _schedule(
    run: DecodingRun,
    target: TargetModel,
    key: str,
    shape: SpeculationShape,
    length: int | None,
    draft_cost: float | None,
) -> DraftLengthSchedule:
    """Build the schedule after prefill, because `auto` then measures target passes."""
    memory, name = run.model.strategy_data, _schedule_name(run)
    cost = _cost(run, target)
    if shape.widths and name in ("auto", "constant"):
        return ConstantLength(len(shape.widths))
    first = length or _first_length(run)
    if name == "constant":
        return ConstantLength(first)
    if name == "auto":
        return AutoLength(cost, memory, f"experience/{key}", draft_cost, run.model.disk_offload is not None)
    # Lengths decide which random number is used for which token: with sampling, remembered lengths would change a
    # seed's text.
    recalls = name == "heuristic" and not (run.request.steady or shape.is_sampled)
    return HeuristicLength(first, memory if recalls else None, f"draft_length/{key}")


def _schedule_name(run: DecodingRun) -> str:
    """Return the schedule's name: the option, else the request's own configuration, else auto."""
    request = run.request
    named = request.settings.get("schedule") or request.settings.get("num_assistant_tokens_schedule")
    if named:
        return str(named)
    return "constant" if request.settings.get("num_assistant_tokens") is not None else "auto"


def _first_length(run: DecodingRun) -> int:
    requested = run.request.settings.get("num_assistant_tokens")
    return int(requested) if requested is not None else DEFAULT_LENGTH


def _threshold(run: DecodingRun) -> float:
    return float(run.request.settings.get("assistant_confidence_threshold") or 0.0)


def _uses_sampling(run: DecodingRun) -> bool:
    """Return whether the verifier samples. Raises ParameterError for a verifier that would not be lossless."""
    named, samples = run.settings.get("verifier") or "auto", bool(run.settings.get("do_sample"))
    if named == "greedy" and samples:
        raise ParameterError(
            tr("The greedy verifier does not work with sampling."),
            tr("Turn sampling off, or set the verifier to auto."),
            "verifier",
        )
    if named == "sampling" and not samples:
        raise ParameterError(
            tr("The sampling verifier needs sampling, which is off."),
            tr("Turn sampling on, or set the verifier to auto."),
            "verifier",
        )
    return samples


def _draws_children(run: DecodingRun, samples: bool) -> bool:
    """Return whether children are sampled. Raises ParameterError for top-k children with sampling, which is not
    lossless.
    """
    named = run.settings.get("children") or "auto"
    if named == "likeliest" and samples:
        raise ParameterError(
            tr(
                "Choosing the likeliest tokens as children with a sampling verifier would change the "
                "distribution of the text."
            ),
            tr("Set the children to auto (drawn while sampling), or turn sampling off."),
            "children",
        )
    return samples or named == "drawn"
