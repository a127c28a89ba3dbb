"""Reports on stages, samples and drafted nodes at every level of detail: each number is the run's own."""

from __future__ import annotations

from functools import cache

import pytest
from transformers import GenerationConfig

from decodescope import core
from decodescope.app.state.run import Run
from decodescope.app.state.sample_tree import SampleTree
from decodescope.app.state.worker_messages import RunRequest
from decodescope.app.views.speculation import round_report as drafted
from decodescope.app.views.tree import sample_report
from decodescope.core.events import DraftRound, TokenChosen
from tests.core.recorded_claims import (
    LEVELS_AND_LANGUAGES,
    RecordedClaim,
    TemplateRecorder,
    explanations_at,
    is_close_to,
    register_claims,
)

PROMPT = "Once upon a time, there was a little"
register_claims(sample_report, drafted)


@cache
def _events(strategy: str, **settings: object) -> tuple[object, ...]:
    """A short run of the bundled model that draws."""
    config = GenerationConfig(do_sample=True, max_new_tokens=6, temperature=1.2, top_k=40, top_p=0.8, **settings)
    drafters = [core.load("storyteller-draft", device="cpu")] if strategy == "assisted" else []
    options = {"seed_each": True} if "num_return_sequences" in settings else {}
    request = core.Request(PROMPT, config, strategy=strategy, seed=5, drafters=drafters, options=options)
    return tuple(core.stream(core.load("storyteller", device="cpu"), request))


def _holds(claim: RecordedClaim, figures: dict[str, float]) -> bool:
    return all(is_close_to(reported, figures[name]) for name, reported in claim.values.items() if name in figures)


def test_stage_explanation_has_numbers_of_run(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, received = TemplateRecorder(monkeypatch), set()
    for event in (event for event in _events("sampling", num_return_sequences=8) if isinstance(event, TokenChosen)):
        for before, stage in zip((None, *event.funnel), event.funnel, strict=False):
            cut = before.survivors - stage.survivors if before is not None else 0
            figures = {"left": stage.survivors, "cut": cut, "before": stage.survivors + cut, "mass": stage.mass,
                       "raw": stage.raw_mass}  # fmt: skip
            for each, code in LEVELS_AND_LANGUAGES:
                with explanations_at(each, code):
                    _said, (claim,) = recorder.claims(lambda one=before, other=stage: core.explain_cut(other, one))
                received.add(claim.name)
                assert _holds(claim, figures), (each, code, claim)
                assert (claim.name == "settings._CUT") == (cut > 0)
    assert received == {"settings._BEGIN", "settings._SHIFT", "settings._CUT"}


def test_sample_tree_node_explanation_has_numbers_of_run(monkeypatch: pytest.MonkeyPatch) -> None:
    run, sample_tree = Run(RunRequest(PROMPT, strategy="sampling", options={"seed_each": True}, seed=5)), SampleTree()
    run.apply(list(_events("sampling", num_return_sequences=8)))
    sample_tree.update(run)
    recorder = TemplateRecorder(monkeypatch)
    for node in sample_tree.nodes:
        passed = [text.tokens for text in run.sequences if node.id in _path(sample_tree, text.tokens)]
        came = [text.tokens for text in run.sequences if node.parent in (0, *_path(sample_tree, text.tokens))]
        own = passed[0][node.depth - 1]
        figures = {"probability": own.raw_probability, "settings": own.probability, "rank": own.rank, "id": own.id,
                   "depth": node.depth, "count": len(passed), "total": 8, "came": len(came)}  # fmt: skip
        for each, code in LEVELS_AND_LANGUAGES:
            with explanations_at(each, code):
                reported = [
                    *recorder.claims(lambda n=node: sample_report._sentence(sample_tree, n))[1],
                    *recorder.claims(lambda n=node: sample_report._facts(sample_tree, n))[1],
                    *recorder.claims(lambda n=node: sample_report.sample_node_tooltip(sample_tree, n.id))[1],
                ]
            share = {"_COUNTS": len(passed) / len(came), "_TIP": len(passed) / 8, "_FACTS": len(passed) / 8}
            for claim in reported:
                assert _holds(claim, figures | {"share": share.get(claim.name.split(".")[1], 1.0)}), (each, claim)
            assert [claim.name.split(".")[1] for claim in reported][2:] == ["_FACTS", "_TIP"]
    assert len(sample_tree.nodes) > 12


def _path(sample_tree: SampleTree, tokens: list[TokenChosen]) -> list[int]:
    """Numbers of the nodes that a text passes."""
    path, at = [], 0
    for token in tokens:
        at = next(node.id for node in sample_tree.nodes if node.parent == at and node.token == token.id)
        path.append(at)
    return path


def test_drafted_node_report_has_probabilities_of_both_models(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = TemplateRecorder(monkeypatch)
    nodes = [(entry, node) for entry in _events("assisted") if isinstance(entry, DraftRound) for node in entry.nodes]
    for entry, node in nodes:
        figures = {"draft": node.draft_probability, "target": node.target_probability, "id": node.id}
        for each, code in LEVELS_AND_LANGUAGES:
            with explanations_at(each, code):
                reported, claims = recorder.claims(lambda n=node: drafted._facts(n, several=False))
                assert drafted.node_report(entry, node.node).facts == reported
            assert [claim.name for claim in claims] == ["round_report._PROBABILITIES"]
            assert _holds(claims[0], figures), (each, code, claims)
    assert nodes
