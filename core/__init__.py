"""Decodescope's generation core: decode with any Hugging Face model and observe every decision.

    model = core.load("storyteller")
    for event in core.stream(model, core.Request("Once upon a time")): ...

Importing this package is fast: each name is imported on first access, torch and transformers only by names that need
them.
"""

# mypy: implicit-reexport
# ruff: noqa: F401
from __future__ import annotations

import importlib
import sys

from decodescope.core.common.lazy_imports import lazy_imports

with lazy_imports(globals()) as PUBLIC_NAMES:
    import decodescope.core.caches as caches
    import decodescope.core.catalog as catalog
    import decodescope.core.claims as claims
    import decodescope.core.errors as errors
    import decodescope.core.events as events
    import decodescope.core.explain.sizes as sizes
    import decodescope.core.explain.words as words
    import decodescope.core.glossary as glossary
    import decodescope.core.labs as labs
    import decodescope.core.likelihood as likelihood
    import decodescope.core.measures as measures
    import decodescope.core.media as media
    import decodescope.core.models.adapters.adapter_choice as adapters
    import decodescope.core.plugins as plugins
    import decodescope.core.remote as remote
    import decodescope.core.strategies as strategies
    import decodescope.core.studies as studies
    import decodescope.core.thinking as thinking
    import decodescope.core.trace as trace
    from decodescope.core.caches.prefixes.prefix_store import PrefixStore, shared_length
    from decodescope.core.claims.claim_trial import try_claim
    from decodescope.core.code.script import as_code, why_not_generate
    from decodescope.core.common.text import beginning, cut_short
    from decodescope.core.counterfactuals.setting_atlas import (
        AtlasInterval,
        AtlasProgress,
        FlipMap,
        FlipSegment,
        SettingAtlas,
        TokenFlips,
        map_flips,
        map_setting,
    )
    from decodescope.core.counterfactuals.setting_effects import SettingEffect, SettingEffects, setting_effects
    from decodescope.core.counterfactuals.text_scores import read_scores
    from decodescope.core.counterfactuals.twin_runs import Twin, TwinToken, twin
    from decodescope.core.counterfactuals.varied_settings import VariedSetting, varied_settings
    from decodescope.core.decoding.forward.native_step import has_native_step
    from decodescope.core.decoding.keyed_noise import KeyedNoise, posterior_noise, token_keys
    from decodescope.core.decoding.prompt import encode
    from decodescope.core.decoding.score_cache import ScoreCache
    from decodescope.core.decoding.speculation.drafters.compatibility import why_not_draft
    from decodescope.core.differences.draft_check import DraftCheck, DraftStep, check_draft
    from decodescope.core.differences.engine_check import EngineCheck, RankGroup, check_engine
    from decodescope.core.differences.near_misses import NearMiss, NearMisses, near_misses
    from decodescope.core.differences.run_difference import (
        DifferenceCheck,
        FirstDifference,
        RunDifference,
        explain_difference,
        verdict_text,
    )
    from decodescope.core.differences.verification_effect import (
        RuleEffect,
        RuleEffects,
        SequentialTest,
        emitted_distribution,
        rule_effects,
    )
    from decodescope.core.explain.beams import explain_candidate
    from decodescope.core.explain.call_facts import explain_call_facts, inexact_facts, missing_facts, seed_text
    from decodescope.core.explain.counterfactual import explain_what_if
    from decodescope.core.explain.draft_rounds import (
        explain_choice,
        explain_draft,
        explain_extra,
        explain_pool,
        explain_round,
        is_residual_ratio,
    )
    from decodescope.core.explain.sentence import Sentence, SentenceTemplate, together
    from decodescope.core.explain.settings import explain_cut, explain_stage
    from decodescope.core.explain.text_statistics import (
        GrammarFigures,
        WatermarkFound,
        beam_grammar_figures,
        explain_grammar,
        explain_watermark,
        grammar_figures,
        watermark_found,
    )
    from decodescope.core.explain.tokens import explain_token
    from decodescope.core.explain.words import medium_label, medium_part, medium_place, medium_sentence, share
    from decodescope.core.generate_capture.capture import Capture, CapturedRun, capture
    from decodescope.core.generate_capture.loop_recording import LoopRecording, record_loop
    from decodescope.core.generation.batches import run_many, score_many
    from decodescope.core.generation.loading import load
    from decodescope.core.generation.running import Result, effective_settings, run, stream
    from decodescope.core.generation.scoring import score, score_stream
    from decodescope.core.generation.step_replay import StepCounterfactual, replay_step, what_if
    from decodescope.core.generation.thread_choice import choose_threads, usable_processors
    from decodescope.core.generation.throughput_estimate import (
        ThroughputEstimate,
        WeightsCost,
        estimate_throughput,
        weights_cost,
    )
    from decodescope.core.grammar.compilation import grammar_problem
    from decodescope.core.interpretability.adapter_effect import AdapterChange, AdapterEffect, adapter_effect
    from decodescope.core.interpretability.attention import AttentionRow, attention
    from decodescope.core.interpretability.lens import LensRow, lens, lens_text
    from decodescope.core.interpretability.occlusion import (
        Effect,
        OcclusionProgress,
        Unit,
        neutral_token,
        occlude,
        occlusion,
    )
    from decodescope.core.likelihood.pattern_probability import (
        AnswerPrefix,
        PatternProbability,
        PatternProgress,
        pattern_probability,
    )
    from decodescope.core.likelihood.setting_posterior import (
        PosteriorProgress,
        SettingPosterior,
        TokenEvidence,
        infer_settings,
        prompt_readings,
    )
    from decodescope.core.likelihood.text_pattern import TextPattern
    from decodescope.core.memory.estimate import Estimate, estimate
    from decodescope.core.models.adapters.adapter_choice import AdapterChoice
    from decodescope.core.models.head_detection import bundled_heads
    from decodescope.core.models.loaded_model import LoadedModel, blueprint, wrap
    from decodescope.core.models.modalities import Modalities
    from decodescope.core.models.model_entry import ModelEntry
    from decodescope.core.models.model_saving import save_gguf
    from decodescope.core.native.kernel_build import BuildResult, build_kernels, kernel_status
    from decodescope.core.native.native_library import enable_native_steps
    from decodescope.core.processors.pipeline_stages import stage_label, stage_order, stage_phrase, watermark_settings
    from decodescope.core.processors.word_search import word_spelling_texts
    from decodescope.core.remote.remote_model import RemoteModel
    from decodescope.core.request import Request
    from decodescope.core.setting_titles import cache_title, setting_title, strategy_title
    from decodescope.core.settings import make_config, unshown_settings
    from decodescope.core.studies.study import Study
    from decodescope.core.system.optional_deps import why_missing
    from decodescope.core.trace.page.html_page import page, page_text
    from decodescope.core.trace.recorder import record
    from decodescope.core.trace.trace_file import replay

__all__ = sorted(PUBLIC_NAMES)

if __name__ != "decodescope.core":  # imported by the name of its folder in a checkout
    sys.modules[__name__] = importlib.import_module("decodescope.core")
