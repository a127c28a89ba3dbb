"""Differing parts of two runs besides their texts: model, precision, cache, program, settings, random numbers.

Imports no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from decodescope.core import caches, processors, strategies
from decodescope.core.common.hf_generation import DEFAULTS, METADATA_FIELDS, WITHOUT_EFFECT
from decodescope.core.differences.compared_run import ComparedRun
from decodescope.core.explain.call_facts import explain_call_facts, seed_text
from decodescope.core.parameter import display_name
from decodescope.core.setting_titles import cache_title, setting_title, strategy_title
from decodescope.resources.language import join_names, tr

Subject = Literal[
    "prompt", "model", "precision", "cache", "program", "settings", "random_numbers", "stop_rules", "rounding"
]
"""What is examined, in this order."""
STOP_SETTINGS = ("max_new_tokens", "max_length", "max_time", "stop_strings", "eos_token_id")
_LIMITS_ONLY = METADATA_FIELDS | WITHOUT_EFFECT.keys() | {
    "bos_token_id", "decoder_start_token_id", "cache_implementation", "prefill_chunk_size", "num_return_sequences",
}  # fmt: skip
"""Settings that do not change the choice of a token, or are examined as another subject."""
_OWN_CODE = ("processor", "function", "setting")
_CHOICE_SETTINGS = frozenset({"do_sample", "num_beams"})


class Part(NamedTuple):
    """One thing that differs."""

    subject: Subject
    name: str
    """Name of a setting or of a field of the run."""
    title: str
    a: str
    b: str
    """Values of both runs for a reader."""

    @property
    def sentence(self) -> str:
        """The difference as a clause: “Top-k: 40 in A, 20 in B”."""
        return tr("{title}: {a} in A, {b} in B").format(title=self.title, a=self.a, b=self.b)


def differing_parts(a: ComparedRun, b: ComparedRun) -> list[Part]:
    """Return everything that differs, except prompts."""
    found = [*_model_parts(a, b), *_program_parts(a, b), *_setting_parts(a, b)]
    return [*found, *_random_parts(a, b), *_stop_parts(a, b)]


def _part(subject: Subject, name: str, title: str, a: object, b: object) -> Iterator[Part]:
    """Yield a part if the values differ and are known."""
    if a != b and a not in (None, "") and b not in (None, ""):
        yield Part(subject, name, title, display_name(a), display_name(b))


def _model_parts(a: ComparedRun, b: ComparedRun) -> Iterator[Part]:
    ours, theirs = a.started.identity, b.started.identity
    if ours is not None and theirs is not None:
        for name, title in (
            ("architecture", tr("Architecture")), ("config_hash", tr("Configuration")),
            ("weights_hash", tr("Weights")),
        ):  # fmt: skip
            one, other = getattr(ours, name), getattr(theirs, name)
            is_hash = name.endswith("hash")
            yield from _part("model", name, title, one[:8] if is_hash else one, other[:8] if is_hash else other)
        if not has_other_precision(a, b):
            yield from _part(
                "model", "memory_hash", tr("Weights in memory"), ours.memory_hash[:8], theirs.memory_hash[:8]
            )
    for kind, title in (("files", tr("Weights in memory")), ("weights", tr("Weights in memory"))):
        facts = _facts(a, kind), _facts(b, kind)
        if kind == "files" and facts[0] != facts[1]:
            texts = [tr("other than the files") if held else tr("as in the files") for held in facts]
            yield Part("model", kind, title, *texts)
        elif kind == "weights" and all(facts) and facts[0] != facts[1] and not has_other_precision(a, b):
            yield Part("model", kind, title, facts[0][0][:8], facts[1][0][:8])
    adapters = [tuple((one.digest, one.strength) for one in run.started.adapters) for run in (a, b)]
    if adapters[0] != adapters[1]:
        names = [join_names(f"{one.name} × {one.strength:g}" for one in run.started.adapters) for run in (a, b)]
        yield Part("model", "adapters", tr("Adapters"), names[0] or tr("none"), names[1] or tr("none"))


def precision_of(run: ComparedRun) -> str:
    """Return the number format of a run's weights; empty if unknown."""
    kept = run.started.identity.kept_in if run.started.identity is not None else ""
    return kept or run.started.dtype


def has_other_precision(a: ComparedRun, b: ComparedRun) -> bool:
    """Return whether the number formats of the weights are known and differ."""
    ours, theirs = precision_of(a), precision_of(b)
    return bool(ours and theirs) and ours != theirs


def _program_parts(a: ComparedRun, b: ComparedRun) -> Iterator[Part]:
    ours, theirs = a.started, b.started
    yield from _part("precision", "dtype", tr("Weights in"), precision_of(a), precision_of(b))
    if ours.cache and theirs.cache:
        yield from _part("cache", "cache", tr("Cache"), cache_title(ours), cache_title(theirs))
        if ours.cache == theirs.cache and a.request is not None and b.request is not None:
            held = dict(a.request.cache_options), dict(b.request.cache_options)
            for name in sorted({*held[0], *held[1]}):
                if held[0].get(name) != held[1].get(name):
                    title = setting_title(ours, name)
                    yield Part("cache", name, title, _value(held[0].get(name)), _value(held[1].get(name)))
    engines = [run.engine or tr("this program") for run in (ours, theirs)]
    yield from _part("program", "engine", tr("Program"), *engines)
    yield from _part("program", "device", tr("Device"), ours.device, theirs.device)
    if ours.strategy != theirs.strategy and _rule(a) == _rule(b) and a.is_sampled == b.is_sampled:
        yield Part("program", "strategy", tr("Strategy"), strategy_title(ours), strategy_title(theirs))
    elif _is_speculating(a) and _is_speculating(b):
        for name, title, one, other in _differing_settings(a, b):
            if _is_draft_setting(a, name):
                yield Part("program", name, title, _value(one), _value(other))
    yield from _part("program", "sequences", tr("Number of sequences"), ours.sequences, theirs.sequences)
    captured = [_is_captured(run) for run in (a, b)]
    if captured[0] != captured[1] and not ours.engine and not theirs.engine:
        texts = [tr("generate of transformers") if held else tr("Decodescope") for held in captured]
        yield Part("program", "captured", tr("Decoding loop"), *texts)
    for kind in ("mode", "rows", "assistant", "inputs"):
        facts = _facts(a, kind), _facts(b, kind)
        if facts[0] != facts[1]:
            texts = [join_names(one) or (tr("yes") if one else tr("none")) for one in facts]
            titles = {"mode": tr("Training mode"), "rows": tr("Prompts in the batch"), "assistant": tr("Draft model")}
            yield Part("program", kind, titles.get(kind, tr("Further inputs")), *texts)


def _is_captured(run: ComparedRun) -> bool:
    identity = run.started.identity
    return bool(identity is not None and identity.memory_hash) or bool(run.started.call_facts)


def _facts(run: ComparedRun, kind: str) -> tuple[str, ...]:
    return tuple(name for one, name in run.started.call_facts if one == kind)


def _rule(run: ComparedRun) -> str:
    """Return the rule by which a strategy chooses tokens: `plain` for strategies that only calculate differently."""
    name = run.started.strategy
    return "plain" if _is_speculating(run) or strategies.is_plain(name) else name


def _is_speculating(run: ComparedRun) -> bool:
    known = strategies.registry.get(run.started.strategy)
    return known is not None and known.speculates


def _is_draft_setting(run: ComparedRun, name: str) -> bool:
    known = strategies.registry.get(run.started.strategy)
    is_own = known is not None and known.speculates and name in known.parameter_names
    return is_own and name not in processors.registry and name not in _CHOICE_SETTINGS


def _differing_settings(a: ComparedRun, b: ComparedRun) -> Iterator[tuple[str, str, object, object]]:
    ours, theirs = a.settings, b.settings
    for name in sorted({*ours, *theirs}):
        usual = DEFAULTS.get(name)
        one, other = _plain(ours.get(name, usual)), _plain(theirs.get(name, usual))
        if one != other and name not in _LIMITS_ONLY and not name.startswith("_"):
            yield name, setting_title(a.started, name), one, other


def _plain(value: object) -> object:
    """Return sequences as lists, and neutral values as None."""
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value] or None
    return None if value is False or value == 0 else value


def _value(value: object) -> str:
    return tr("off") if value is None else display_name(value)


def _setting_parts(a: ComparedRun, b: ComparedRun) -> Iterator[Part]:
    if _rule(a) != _rule(b):
        yield Part("settings", "strategy", tr("Strategy"), strategy_title(a.started), strategy_title(b.started))
    dice = strategies.drawing() if not a.is_sampled and not b.is_sampled else frozenset()
    for name, title, one, other in _differing_settings(a, b):
        is_draft = _is_draft_setting(a, name) or _is_draft_setting(b, name)
        if name not in STOP_SETTINGS and name not in dice and not is_draft:
            yield Part("settings", name, title, _value(one), _value(other))
    if a.request is not None and b.request is not None:
        negative = [run.request.negative_prompt for run in (a, b) if run.request is not None]
        if negative[0] != negative[1]:
            yield Part("settings", "negative_prompt", tr("Negative prompt"), *map(_value, negative))
    for kind in _OWN_CODE:
        if (facts := (_facts(a, kind), _facts(b, kind)))[0] != facts[1]:
            title = explain_call_facts(((kind, ""),))[0].split(":")[0]
            yield Part("settings", kind, title, *(join_names(one) or tr("none") for one in facts))


def _random_parts(a: ComparedRun, b: ComparedRun) -> Iterator[Part]:
    if not a.is_sampled or not b.is_sampled:
        return
    ours, theirs = seed_text(a.started), seed_text(b.started)
    unknown = tr("unknown")
    if ours != theirs or unknown in (ours, theirs):
        yield Part("random_numbers", "seed", tr("Seed"), ours, theirs)
    if a.started.engine != b.started.engine:
        engines = [run.started.engine or tr("this program") for run in (a, b)]
        yield Part("random_numbers", "engine", tr("Generator of random numbers"), *engines)
    devices = [run.started.device.split(":")[0] for run in (a, b)]
    if devices[0] != devices[1] and not a.started.engine and not b.started.engine:
        yield Part("random_numbers", "device", tr("Generator of random numbers"), *devices)
    if a.started.strategy != b.started.strategy:
        titles = strategy_title(a.started), strategy_title(b.started)
        yield Part("random_numbers", "strategy", tr("Use of random numbers"), *titles)
    if a.started.sequences != b.started.sequences or _facts(a, "rows") != _facts(b, "rows"):
        texts = [join_names(_facts(run, "rows")) or str(run.started.sequences) for run in (a, b)]
        yield Part("random_numbers", "sequences", tr("Texts that share the random numbers"), *texts)


def _stop_parts(a: ComparedRun, b: ComparedRun) -> Iterator[Part]:
    for name, title, one, other in _differing_settings(a, b):
        if name in STOP_SETTINGS:
            yield Part("stop_rules", name, title, _value(one), _value(other))
    if (facts := (_facts(a, "criterion"), _facts(b, "criterion")))[0] != facts[1]:
        texts = [join_names(one) or tr("none") for one in facts]
        yield Part("stop_rules", "criterion", tr("Stopping criteria"), *texts)


def has_exact_cache(run: ComparedRun) -> bool:
    """Return whether a run's cache keeps all keys and values unchanged, so that only rounding differs."""
    known = caches.registry.get(run.started.cache)
    return known is not None and known.exact


SUBJECT_TITLES: dict[Subject, Callable[[], str]] = {
    "prompt": lambda: tr("Prompt"),
    "model": lambda: tr("Model"),
    "precision": lambda: tr("Precision"),
    "cache": lambda: tr("Cache"),
    "program": lambda: tr("Program and device"),
    "settings": lambda: tr("Settings"),
    "random_numbers": lambda: tr("Random numbers"),
    "stop_rules": lambda: tr("Stop rules"),
    "rounding": lambda: tr("Rounding"),
}
