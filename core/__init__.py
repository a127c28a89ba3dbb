"""Decodescope's generation core: decode with any Hugging Face model and observe every decision.

    model = core.load("storyteller")
    for event in core.stream(model, core.Request("Once upon a time")): ...

Importing this package is fast: each name is imported on first access, torch and transformers only by names that need
them.
"""

# mypy: implicit-reexport
# ruff: noqa: F401
from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from core.common.lazy_imports import lazy_imports

with lazy_imports(globals()) as PUBLIC_NAMES:
    import core.caches as caches
    import core.catalog as catalog
    import core.errors as errors
    import core.events as events
    import core.explain.sizes as sizes
    import core.explain.words as words
    import core.glossary as glossary
    import core.labs as labs
    import core.measures as measures
    import core.media as media
    import core.models.adapters.adapter_choice as adapters
    import core.plugins as plugins
    import core.remote as remote
    import core.strategies as strategies
    import core.trace as trace
    from core.caches.prefixes.prefix_store import PrefixStore, shared_length
    from core.code.script import as_code, why_not_generate
    from core.common.text import beginning, cut_short
    from core.decoding.forward.native_step import has_native_step
    from core.decoding.prompt import encode
    from core.decoding.score_cache import ScoreCache
    from core.decoding.speculation.drafters.compatibility import why_not_draft
    from core.explain.beams import explain_candidate
    from core.explain.counterfactual import explain_what_if
    from core.explain.draft_rounds import (
        explain_choice,
        explain_draft,
        explain_extra,
        explain_pool,
        explain_round,
        is_residual_ratio,
    )
    from core.explain.sentence import Sentence, SentenceTemplate, together
    from core.explain.settings import explain_cut, explain_stage
    from core.explain.text_statistics import (
        GrammarFigures,
        WatermarkFound,
        beam_grammar_figures,
        explain_grammar,
        explain_watermark,
        grammar_figures,
        watermark_found,
    )
    from core.explain.tokens import explain_token
    from core.explain.words import medium_label, medium_part, medium_place, medium_sentence, share
    from core.generate_capture.capture import Capture, CapturedRun, capture
    from core.generation.loading import load
    from core.generation.running import Result, effective_settings, run, stream
    from core.generation.scoring import score, score_stream
    from core.generation.step_replay import StepCounterfactual, replay_step, what_if
    from core.generation.thread_choice import choose_threads, usable_processors
    from core.generation.throughput_estimate import ThroughputEstimate, WeightsCost, estimate_throughput, weights_cost
    from core.grammar.compilation import grammar_problem
    from core.interpretability.adapter_effect import AdapterChange, AdapterEffect, adapter_effect
    from core.interpretability.attention import AttentionRow, attention
    from core.interpretability.lens import LensRow, lens, lens_text
    from core.interpretability.occlusion import Effect, OcclusionProgress, Unit, neutral_token, occlude, occlusion
    from core.memory.estimate import Estimate, estimate
    from core.models.adapters.adapter_choice import AdapterChoice
    from core.models.loaded_model import LoadedModel, blueprint, wrap
    from core.models.modalities import Modalities
    from core.models.model_entry import ModelEntry
    from core.models.model_saving import save_gguf
    from core.native.kernel_build import BuildResult, build_kernels, kernel_status
    from core.native.native_library import enable_native_steps
    from core.processors.pipeline_stages import stage_label, stage_order, stage_phrase, watermark_settings
    from core.remote.remote_model import RemoteModel
    from core.request import Request
    from core.setting_titles import cache_title, setting_title, strategy_title
    from core.settings import make_config
    from core.system.optional_deps import why_missing
    from core.trace.page.html_page import page, page_text
    from core.trace.recorder import record
    from core.trace.trace_file import replay

__all__ = sorted(PUBLIC_NAMES)


def _require_own_resources() -> None:
    """Raise ImportError if another package named `resources` hides the program's own."""
    own = Path(__file__).resolve().parent.parent / "resources"
    spec = importlib.util.find_spec("resources")
    places = list(spec.submodule_search_locations or [spec.origin or ""]) if spec is not None else []
    if places and Path(places[0]).resolve() != own:
        raise ImportError(
            f"Python finds another package named “resources”: {places[0]} hides Decodescope's own {own}. "
            f"Rename or move {places[0]}, start the script from another folder, or put {own.parent} first on "
            "PYTHONPATH.",
            name="resources", path=places[0],
        )  # fmt: skip


_require_own_resources()
