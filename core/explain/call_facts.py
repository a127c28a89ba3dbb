"""Explain in sentences what a captured call used that its request does not contain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decodescope.resources.language import join_names, join_sentences, mark, tr

if TYPE_CHECKING:
    from decodescope.core.events import CallFacts, RunStarted

_SENTENCES = {
    "processor": mark("Its own logits processors: {names}."),
    "criterion": mark("Its own stopping criteria: {names}."),
    "function": mark("Its own decoding function: {names}."),
    "inputs": mark("Inputs besides the ids of the prompt: {names}."),
    "setting": mark("Settings that are objects: {names}."),
    "assistant": mark("A draft model: {names}."),
    "files": mark("The weights in memory were other than those in the files."),
    "mode": mark("The model was in training mode, so dropout changed its scores."),
    "rows": mark("Its {names} prompts were sampled with one random generator."),
    "draws": mark("The random numbers it was sampled with are not known."),
}
_REQUIRED = ("processor", "criterion", "function", "inputs", "setting", "assistant")
"""Facts without which the call cannot be repeated at all."""


def explain_call_facts(facts: CallFacts) -> list[str]:
    """Return a sentence for each kind of fact; unknown kinds are left out."""
    names: dict[str, list[str]] = {}
    for kind, name in facts:
        names.setdefault(kind, []).append(name)
    return [tr(_SENTENCES[kind]).format(names=join_names(found)) for kind, found in names.items() if kind in _SENTENCES]


def missing_facts(facts: CallFacts) -> CallFacts:
    """Return those without which the call cannot be repeated at all."""
    return tuple(fact for fact in facts if fact[0] in _REQUIRED)


def inexact_facts(facts: CallFacts) -> CallFacts:
    """Return those with which a repetition may give another text."""
    return tuple(fact for fact in facts if fact[0] in ("mode", "rows", "draws"))


def expected_weights(facts: CallFacts) -> str:
    """Return the hash of the weights in memory; empty if unknown."""
    return next((name for kind, name in facts if kind == "weights"), "")


def why_not_repeated(facts: CallFacts) -> str:
    """Return why a run of the same request may give another text, in sentences; empty if it gives the same."""
    return join_sentences(*explain_call_facts((*missing_facts(facts), *inexact_facts(facts))))


def seed_text(started: RunStarted) -> str:
    """Return the seed of a run, or the value shown instead of it."""
    if any(kind == "draws" for kind, _ in started.call_facts):
        return tr("unknown")
    if started.generator:
        return tr("state {hash} of the generator").format(hash=started.generator)
    return str(started.seed)
