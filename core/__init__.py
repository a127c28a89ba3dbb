"""Decodescope's generation core: decode with any Hugging Face model and observe every decision.

    model = core.load("storyteller")
    for event in core.stream(model, core.Request("Once upon a time")): ...

Importing this package is fast: each name is imported on first access, torch and transformers only by names that need
them.
"""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core import (
        caches,
        catalog,
        errors,
        events,
        glossary,
        labs,
        measures,
        media,
        plugins,
        remote,
        strategies,
        trace,
    )
    from core.caches.prefixes.prefix_store import PrefixStore, shared_length
    from core.code.script import as_code, why_not_generate
    from core.common.text import beginning, cut_short
    from core.decoding.forward.native_step import has_native_step
    from core.decoding.prompt import encode
    from core.decoding.score_cache import ScoreCache
    from core.decoding.speculation.drafters.compatibility import why_not_draft
    from core.explain import sizes, words
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
    from core.models.adapters import adapter_choice as adapters
    from core.models.adapters.adapter_choice import AdapterChoice
    from core.models.catalog import ModelEntry
    from core.models.loaded_model import LoadedModel, blueprint, wrap
    from core.models.modalities import Modalities
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

__all__ = [
    "AdapterChange",
    "AdapterChoice",
    "AdapterEffect",
    "AttentionRow",
    "BuildResult",
    "Capture",
    "CapturedRun",
    "Effect",
    "Estimate",
    "GrammarFigures",
    "LensRow",
    "LoadedModel",
    "Modalities",
    "ModelEntry",
    "OcclusionProgress",
    "PrefixStore",
    "RemoteModel",
    "Request",
    "Result",
    "ScoreCache",
    "Sentence",
    "SentenceTemplate",
    "StepCounterfactual",
    "ThroughputEstimate",
    "Unit",
    "WatermarkFound",
    "WeightsCost",
    "adapter_effect",
    "adapters",
    "as_code",
    "attention",
    "beam_grammar_figures",
    "beginning",
    "blueprint",
    "build_kernels",
    "cache_title",
    "caches",
    "capture",
    "catalog",
    "choose_threads",
    "cut_short",
    "effective_settings",
    "enable_native_steps",
    "encode",
    "errors",
    "estimate",
    "estimate_throughput",
    "events",
    "explain_candidate",
    "explain_choice",
    "explain_cut",
    "explain_draft",
    "explain_extra",
    "explain_grammar",
    "explain_pool",
    "explain_round",
    "explain_stage",
    "explain_token",
    "explain_watermark",
    "explain_what_if",
    "glossary",
    "grammar_figures",
    "grammar_problem",
    "has_native_step",
    "is_residual_ratio",
    "kernel_status",
    "labs",
    "lens",
    "lens_text",
    "load",
    "make_config",
    "measures",
    "media",
    "medium_label",
    "medium_part",
    "medium_place",
    "medium_sentence",
    "neutral_token",
    "occlude",
    "occlusion",
    "page",
    "page_text",
    "plugins",
    "record",
    "remote",
    "replay",
    "replay_step",
    "run",
    "save_gguf",
    "score",
    "score_stream",
    "setting_title",
    "share",
    "shared_length",
    "sizes",
    "stage_label",
    "stage_order",
    "stage_phrase",
    "strategies",
    "strategy_title",
    "stream",
    "together",
    "trace",
    "usable_processors",
    "watermark_found",
    "watermark_settings",
    "weights_cost",
    "what_if",
    "why_missing",
    "why_not_draft",
    "why_not_generate",
    "words",
    "wrap",
]

PUBLIC_MODULES = {
    "adapters": "core.models.adapters.adapter_choice",
    "caches": "core.caches",
    "catalog": "core.catalog",
    "errors": "core.errors",
    "events": "core.events",
    "glossary": "core.glossary",
    "labs": "core.labs",
    "measures": "core.measures",
    "media": "core.media",
    "plugins": "core.plugins",
    "sizes": "core.explain.sizes",
    "remote": "core.remote",
    "strategies": "core.strategies",
    "trace": "core.trace",
    "words": "core.explain.words",
}
_HOMES = {
    "AdapterChange": "core.interpretability.adapter_effect",
    "AdapterChoice": "core.models.adapters.adapter_choice",
    "AdapterEffect": "core.interpretability.adapter_effect",
    "adapter_effect": "core.interpretability.adapter_effect",
    "AttentionRow": "core.interpretability.attention",
    "Effect": "core.interpretability.occlusion",
    "Estimate": "core.memory.estimate",
    "ThroughputEstimate": "core.generation.throughput_estimate",
    "LensRow": "core.interpretability.lens",
    "GrammarFigures": "core.explain.text_statistics",
    "ScoreCache": "core.decoding.score_cache",
    "LoadedModel": "core.models.loaded_model",
    "ModelEntry": "core.models.catalog",
    "OcclusionProgress": "core.interpretability.occlusion",
    "PrefixStore": "core.caches.prefixes.prefix_store",
    "BuildResult": "core.native.kernel_build",
    "Capture": "core.generate_capture.capture",
    "CapturedRun": "core.generate_capture.capture",
    "RemoteModel": "core.remote.remote_model",
    "Request": "core.request",
    "Result": "core.generation.running",
    "SentenceTemplate": "core.explain.sentence",
    "Sentence": "core.explain.sentence",
    "Modalities": "core.models.modalities",
    "Unit": "core.interpretability.occlusion",
    "WeightsCost": "core.generation.throughput_estimate",
    "StepCounterfactual": "core.generation.step_replay",
    "WatermarkFound": "core.explain.text_statistics",
    "as_code": "core.code.script",
    "attention": "core.interpretability.attention",
    "beam_grammar_figures": "core.explain.text_statistics",
    "beginning": "core.common.text",
    "blueprint": "core.models.loaded_model",
    "choose_threads": "core.generation.thread_choice",
    "usable_processors": "core.generation.thread_choice",
    "cut_short": "core.common.text",
    "effective_settings": "core.generation.running",
    "encode": "core.decoding.prompt",
    "estimate": "core.memory.estimate",
    "explain_candidate": "core.explain.beams",
    "explain_choice": "core.explain.draft_rounds",
    "explain_cut": "core.explain.settings",
    "explain_draft": "core.explain.draft_rounds",
    "is_residual_ratio": "core.explain.draft_rounds",
    "explain_extra": "core.explain.draft_rounds",
    "estimate_throughput": "core.generation.throughput_estimate",
    "explain_grammar": "core.explain.text_statistics",
    "explain_pool": "core.explain.draft_rounds",
    "explain_round": "core.explain.draft_rounds",
    "explain_stage": "core.explain.settings",
    "explain_what_if": "core.explain.counterfactual",
    "explain_token": "core.explain.tokens",
    "explain_watermark": "core.explain.text_statistics",
    "lens": "core.interpretability.lens",
    "lens_text": "core.interpretability.lens",
    "grammar_figures": "core.explain.text_statistics",
    "grammar_problem": "core.grammar.compilation",
    "watermark_found": "core.explain.text_statistics",
    "load": "core.generation.loading",
    "make_config": "core.settings",
    "medium_label": "core.explain.words",
    "medium_part": "core.explain.words",
    "medium_place": "core.explain.words",
    "medium_sentence": "core.explain.words",
    "neutral_token": "core.interpretability.occlusion",
    "occlude": "core.interpretability.occlusion",
    "occlusion": "core.interpretability.occlusion",
    "kernel_status": "core.native.kernel_build",
    "build_kernels": "core.native.kernel_build",
    "enable_native_steps": "core.native.native_library",
    "has_native_step": "core.decoding.forward.native_step",
    "page": "core.trace.page.html_page",
    "page_text": "core.trace.page.html_page",
    "record": "core.trace.recorder",
    "replay": "core.trace.trace_file",
    "run": "core.generation.running",
    "save_gguf": "core.models.model_saving",
    "score": "core.generation.scoring",
    "score_stream": "core.generation.scoring",
    "capture": "core.generate_capture.capture",
    "cache_title": "core.setting_titles",
    "setting_title": "core.setting_titles",
    "strategy_title": "core.setting_titles",
    "share": "core.explain.words",
    "shared_length": "core.caches.prefixes.prefix_store",
    "stage_label": "core.processors.pipeline_stages",
    "stage_order": "core.processors.pipeline_stages",
    "stage_phrase": "core.processors.pipeline_stages",
    "stream": "core.generation.running",
    "together": "core.explain.sentence",
    "why_missing": "core.system.optional_deps",
    "replay_step": "core.generation.step_replay",
    "why_not_draft": "core.decoding.speculation.drafters.compatibility",
    "why_not_generate": "core.code.script",
    "watermark_settings": "core.processors.pipeline_stages",
    "weights_cost": "core.generation.throughput_estimate",
    "what_if": "core.generation.step_replay",
    "wrap": "core.models.loaded_model",
}


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


def __getattr__(name: str) -> object:
    if name in PUBLIC_MODULES:
        value: object = importlib.import_module(PUBLIC_MODULES[name])
    elif name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    else:
        import difflib

        near = difflib.get_close_matches(name, __all__, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise AttributeError(f"module 'core' has no attribute {name!r}.{hint}", name=name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
