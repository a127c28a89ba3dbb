"""A constrained search's plan from a request: its phrases, checked against everything that could forbid them."""

from __future__ import annotations

from core.decoding.beams.beam_search import BeamPlan
from core.decoding.beams.constraint_banks import ConstraintBanks
from core.decoding.beams.constraints import ConstraintPhrase, Constraints
from core.decoding.beams.phrases import IDS, TEXT, collect_bans, drop_impossible, parse_phrases, phrases_from_config
from core.decoding.run import DecodingRun
from core.errors import ParameterError
from resources.language import tr


def plan_constrained_search(run: DecodingRun) -> BeamPlan:
    """Raises ParameterError for constraints that no text can meet, with the reason."""
    words, ids = _collect_phrases(run)
    if not words and not ids:
        return BeamPlan()
    pool = run.request.options.get("pool") or "auto"
    if pool == "auto":
        pool = "paper" if words else "transformers"
    limit = _token_budget(run)
    constraints = Constraints(words + ids, forgetful=pool == "transformers")
    _check_budget(run, constraints, limit, TEXT if words else IDS)
    banks = ConstraintBanks(constraints, pool, run.stopping.eos, limit)
    return BeamPlan(banks=banks, ended_beams_count=pool == "transformers")


def _collect_phrases(run: DecodingRun) -> tuple[list[ConstraintPhrase], list[ConstraintPhrase]]:
    """(from text, from ids), without alternatives that are impossible."""
    config, model = run.config, run.model
    source = run.prompt_ids
    bans = collect_bans(config, model.vocabulary, run.stopping.eos, source)
    words = parse_phrases(model, str(run.request.options.get("must_contain") or ""))
    return drop_impossible(words, bans, model.pieces.__getitem__), drop_impossible(
        phrases_from_config(config), bans, model.pieces.__getitem__
    )


def _token_budget(run: DecodingRun) -> int:
    """New tokens that may serve the constraints: the limit less tokens that are forced to be something else."""
    limit = min(run.stopping.max_new, run.stopping.context_limit or run.stopping.max_new)
    forced = run.config.forced_eos_token_id is not None and limit == run.stopping.max_new
    return limit - int(forced)


def _check_budget(run: DecodingRun, constraints: Constraints, limit: int, parameter: str) -> None:
    needed = constraints.min_remaining(constraints.start)
    first = run.config.forced_bos_token_id if run.model.is_encoder_decoder else None
    available = limit - int(first is not None and first not in constraints.advancing_tokens(constraints.start))
    if needed > available:
        raise ParameterError(
            tr(
                "What the text must contain takes at least {needed:,} tokens, and only {available:,} may be written."
            ).format(needed=needed, available=available),
            tr("Allow more new tokens, or ask for less."),
            parameter,
        )
