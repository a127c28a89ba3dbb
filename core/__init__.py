"""Decodescope's generation core: decode with any Hugging Face model and see every decision.

    model = core.load("storyteller")
    for event in core.stream(model, core.Request("Once upon a time")): ...

Importing this package costs nothing: each name is imported when it is first asked for, torch and transformers by those
that need them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core import caches, catalog, errors, events, labs, media, remote, strategies, trace
    from core.caches.prefixes.store import PrefixStore, shared_length
    from core.code.script import as_code, why_not_generate
    from core.decoding.forward.quick_step import has_quick_step
    from core.decoding.kept import KeptScores
    from core.decoding.prompt import encode
    from core.decoding.speculation.drafters.fit import why_not_draft
    from core.explain import glossary, sizes, words
    from core.explain.beams import explain_candidate
    from core.explain.cuts import explain_cut
    from core.explain.details import explain_stage
    from core.explain.figures import share
    from core.explain.grammar import GrammarFigures, beam_grammar_figures, explain_grammar, grammar_figures
    from core.explain.media import medium_label, medium_part, medium_place, medium_sentence
    from core.explain.rounds import explain_choice, explain_draft, explain_extra, explain_pool, explain_round
    from core.explain.sentence import Saying, Sentence, together
    from core.explain.supposed import explain_what_if
    from core.explain.tokens import explain_token
    from core.explain.watermarks import WatermarkFound, explain_watermark, watermark_found
    from core.extras import why_missing
    from core.foretelling import Foretold, foretell
    from core.grammar.compiled import grammar_problem
    from core.inside.attention import AttentionRow, attention
    from core.inside.lens import LensRow, lens, lens_text
    from core.inside.neutral import neutral_token
    from core.inside.occlusion import Effect, Occluded, occlude, occlusion
    from core.inside.units import Unit
    from core.loading import load
    from core.memory.estimate import Estimate, estimate
    from core.models.blueprint import blueprint
    from core.models.catalog import ModelEntry
    from core.models.model import LoadedModel, wrap
    from core.models.takes import Takes
    from core.native.building import Quickened, quick_standing, quicken
    from core.native.library import switch_quick_steps
    from core.processors.order import stage_order
    from core.processors.watermarks import watermark_settings
    from core.processors.wording import stage_label, stage_phrase
    from core.remote.model import RemoteModel
    from core.request import Request
    from core.running import Result, effective_settings, run, stream
    from core.scoring import score, score_stream
    from core.setting_titles import cache_title, setting_title, strategy_title
    from core.settings import make_config
    from core.shorten import beginning, cut_short
    from core.supposing import WhatIf, what_if
    from core.trace.page.write import page, page_text
    from core.trace.recorder import record
    from core.trace.trace import replay
    from core.weights_cost import WeightsCost, weights_cost

__all__ = [
    "AttentionRow",
    "Effect",
    "Estimate",
    "Foretold",
    "GrammarFigures",
    "KeptScores",
    "LensRow",
    "LoadedModel",
    "ModelEntry",
    "Occluded",
    "PrefixStore",
    "Quickened",
    "RemoteModel",
    "Request",
    "Result",
    "Saying",
    "Sentence",
    "Takes",
    "Unit",
    "WatermarkFound",
    "WeightsCost",
    "WhatIf",
    "as_code",
    "attention",
    "beam_grammar_figures",
    "beginning",
    "blueprint",
    "cache_title",
    "caches",
    "catalog",
    "cut_short",
    "effective_settings",
    "encode",
    "errors",
    "estimate",
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
    "foretell",
    "glossary",
    "grammar_figures",
    "grammar_problem",
    "has_quick_step",
    "labs",
    "lens",
    "lens_text",
    "load",
    "make_config",
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
    "quick_standing",
    "quicken",
    "record",
    "remote",
    "replay",
    "run",
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
    "switch_quick_steps",
    "together",
    "trace",
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

_MODULES = {
    "caches": "core.caches",
    "catalog": "core.catalog",
    "errors": "core.errors",
    "events": "core.events",
    "glossary": "core.explain.glossary",
    "labs": "core.labs",
    "media": "core.media",
    "sizes": "core.explain.sizes",
    "remote": "core.remote",
    "strategies": "core.strategies",
    "trace": "core.trace",
    "words": "core.explain.words",
}
_HOMES = {
    "AttentionRow": "core.inside.attention",
    "Effect": "core.inside.occlusion",
    "Estimate": "core.memory.estimate",
    "Foretold": "core.foretelling",
    "LensRow": "core.inside.lens",
    "GrammarFigures": "core.explain.grammar",
    "KeptScores": "core.decoding.kept",
    "LoadedModel": "core.models.model",
    "ModelEntry": "core.models.catalog",
    "Occluded": "core.inside.occlusion",
    "PrefixStore": "core.caches.prefixes.store",
    "Quickened": "core.native.building",
    "RemoteModel": "core.remote.model",
    "Request": "core.request",
    "Result": "core.running",
    "Saying": "core.explain.sentence",
    "Sentence": "core.explain.sentence",
    "Takes": "core.models.takes",
    "Unit": "core.inside.units",
    "WeightsCost": "core.weights_cost",
    "WhatIf": "core.supposing",
    "WatermarkFound": "core.explain.watermarks",
    "as_code": "core.code.script",
    "attention": "core.inside.attention",
    "beam_grammar_figures": "core.explain.grammar",
    "beginning": "core.shorten",
    "blueprint": "core.models.blueprint",
    "cut_short": "core.shorten",
    "effective_settings": "core.running",
    "encode": "core.decoding.prompt",
    "estimate": "core.memory.estimate",
    "explain_candidate": "core.explain.beams",
    "explain_choice": "core.explain.rounds",
    "explain_cut": "core.explain.cuts",
    "explain_draft": "core.explain.rounds",
    "explain_extra": "core.explain.rounds",
    "foretell": "core.foretelling",
    "explain_grammar": "core.explain.grammar",
    "explain_pool": "core.explain.rounds",
    "explain_round": "core.explain.rounds",
    "explain_stage": "core.explain.details",
    "explain_what_if": "core.explain.supposed",
    "explain_token": "core.explain.tokens",
    "explain_watermark": "core.explain.watermarks",
    "lens": "core.inside.lens",
    "lens_text": "core.inside.lens",
    "grammar_figures": "core.explain.grammar",
    "grammar_problem": "core.grammar.compiled",
    "watermark_found": "core.explain.watermarks",
    "load": "core.loading",
    "make_config": "core.settings",
    "medium_label": "core.explain.media",
    "medium_part": "core.explain.media",
    "medium_place": "core.explain.media",
    "medium_sentence": "core.explain.media",
    "neutral_token": "core.inside.neutral",
    "occlude": "core.inside.occlusion",
    "occlusion": "core.inside.occlusion",
    "quick_standing": "core.native.building",
    "quicken": "core.native.building",
    "switch_quick_steps": "core.native.library",
    "has_quick_step": "core.decoding.forward.quick_step",
    "page": "core.trace.page.write",
    "page_text": "core.trace.page.write",
    "record": "core.trace.recorder",
    "replay": "core.trace.trace",
    "run": "core.running",
    "score": "core.scoring",
    "score_stream": "core.scoring",
    "cache_title": "core.setting_titles",
    "setting_title": "core.setting_titles",
    "strategy_title": "core.setting_titles",
    "share": "core.explain.figures",
    "shared_length": "core.caches.prefixes.store",
    "stage_label": "core.processors.wording",
    "stage_order": "core.processors.order",
    "stage_phrase": "core.processors.wording",
    "stream": "core.running",
    "together": "core.explain.sentence",
    "why_missing": "core.extras",
    "what_if": "core.supposing",
    "why_not_draft": "core.decoding.speculation.drafters.fit",
    "why_not_generate": "core.code.script",
    "watermark_settings": "core.processors.watermarks",
    "weights_cost": "core.weights_cost",
    "wrap": "core.models.model",
}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        value: object = importlib.import_module(_MODULES[name])
    elif name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'core' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
