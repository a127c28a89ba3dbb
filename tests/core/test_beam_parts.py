"""Parts of beam search: stopping rules, cache reordering, decoding, explanations, memory."""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from typing import Any

import pytest
import torch
from transformers import DynamicCache, GenerationConfig

from decodescope import core
from decodescope.core.caches.tensors.cache_operations import reorder
from decodescope.core.decoding.beams.beam_group import Hypotheses
from decodescope.core.decoding.beams.beam_node import BeamNode, PathDecoder, PathText
from decodescope.core.events import BeamStep
from decodescope.core.explain.beams import explain_candidate
from tests.core import tiny
from tests.core.beam_reference import run

BACKENDS = ("dynamic", "static", "offloaded")


def ended(score: float, length: int, penalty: float = 1.0) -> BeamNode:
    node = BeamNode(0, None, 0, length, score, PathText((), 0, True))
    node.normalized = score / length**penalty
    return node


def test_hypotheses_keep_only_the_best() -> None:
    stored = Hypotheses(2, False, 1.0, 10)
    first, second, third = ended(-4.0, 2), ended(-2.0, 2), ended(-3.0, 3)
    stored.add_finished([first])
    stored.add_finished([second, third])
    assert stored.items == [second, third]
    assert [node.fate for node in (first, second, third)] == ["finished"] * 3


@pytest.mark.parametrize(
    ("early", "penalty", "open_score", "done"),
    [
        (True, 1.0, -0.1, True),  # enough texts have ended
        (False, 1.0, -4.4, True),  # −4.4 ÷ 4 is no better than −1.0
        (False, 1.0, -3.6, False),
        ("never", 1.0, -9.0, False),  # −9 ÷ 10 may still beat −1.0
        ("never", 1.0, -11.0, True),
        ("never", -1.0, -0.24, False),  # with a negative penalty length only harms: the present one decides
        ("never", -1.0, -0.3, True),
    ],
)
def test_search_is_done_by_early_stopping_and_length_penalty(
    early: bool | str, penalty: float, open_score: float, done: bool
) -> None:
    stored = Hypotheses(2, early, penalty, 10)
    for _ in range(2):
        worst = ended(-1.0, 1, penalty)
        stored.add_finished([worst])
    stored.update_bound(open_score, open_score / 4**penalty)
    assert stored.is_done is done


def test_search_with_too_few_hypotheses_is_not_done() -> None:
    stored = Hypotheses(2, True, 1.0, 10)
    stored.add_finished([ended(-0.1, 1)])
    stored.update_bound(-100.0, -50.0)
    assert not stored.is_done


@pytest.mark.parametrize("rows", [[0, 0, 2], [1, 2, 0], [2, 2, 2], [0, 1], [0, 1, 2, 2, 1]])
def test_reorder_moves_rows_like_index_select(rows: list[int]) -> None:
    cache, states = DynamicCache(), torch.randn(3, 2, 5, 4)
    cache.update(states.clone(), states.clone() * 2, 0)
    storage = cache.layers[0].keys.data_ptr()  # type: ignore[union-attr]
    reorder(cache, rows, 3)
    assert torch.equal(cache.layers[0].keys, states[rows])  # type: ignore[arg-type]
    assert torch.equal(cache.layers[0].values, states[rows] * 2)  # type: ignore[arg-type]
    if len(rows) == 3:
        assert cache.layers[0].keys.data_ptr() == storage  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", ["llama", "mistral", "t5"])
def test_every_cache_gives_the_same_beams(kind: str) -> None:
    model, ids = tiny.shared(kind), tiny.prompt()
    needs = frozenset({"reorder"})
    backends = [name for name in BACKENDS if core.caches.registry[name].unsupported_reason(model, needs) is None]
    assert "dynamic" in backends
    config = GenerationConfig(num_beams=4, max_new_tokens=20, num_return_sequences=4, eos_token_id=60)
    plain = core.run(model, core.Request(ids, config))
    for backend in backends:
        other = core.run(model, core.Request(ids, config, cache=backend))
        assert plain.sequences == other.sequences, backend


@pytest.mark.parametrize("name", ["storyteller", "summarizer"])
def test_decoded_pieces_add_up_to_the_text(name: str) -> None:
    """Token by token on one path: exactly what the tokenizer decodes, multi-byte characters included."""
    model = core.load(name, device="cpu")
    for text in ("Où vas-tu, “petit” ☂ renard? 漢字 ok", "a\n\nb  c"):
        ids = model.tokenizer.encode(text, add_special_tokens=False)
        speller = PathDecoder(model.tokenizer, model.pieces, [])
        for _again in range(2):  # the second time most tokens are known
            path, spelled = speller.start, ""
            for token in ids:
                piece, path = speller.push(path, token)
                assert "\ufffd" not in piece
                spelled += piece
            assert spelled + speller.flush(path) == model.tokenizer.decode(ids, clean_up_tokenization_spaces=False)


def test_incomplete_character_is_held_back_until_flush() -> None:
    model = core.load("storyteller", device="cpu")
    ids = model.tokenizer.encode(" ☂", add_special_tokens=False)[:-1]
    speller = PathDecoder(model.tokenizer, model.pieces, model.tokenizer.encode("The"))
    path, spelled = speller.start, ""
    for token in ids:
        piece, path = speller.push(path, token)
        spelled += piece
    assert "\ufffd" not in spelled
    assert path.held_tokens > 0
    assert "\ufffd" in speller.flush(path)


def explained(**settings: Any) -> list[str]:
    settings = {"eos_token_id": [2, 11, 17, 23, 32], **settings}
    found = run(tiny.make("llama", scale=3.0), tiny.prompt(), **settings)
    steps = [event for event in found.events if isinstance(event, BeamStep)]
    beams = settings["num_beams"] // settings.get("num_beam_groups", 1)
    return [f"{item.fate}: {explain_candidate(item, step, beams)}" for step in steps for item in step.candidates]


def test_explanation_describes_the_fate_of_candidates() -> None:
    reported = explained(num_beams=3, max_new_tokens=10, early_stopping=True)
    assert "kept: First of 18 continuations: among the best 3, so it stays." in reported
    assert any(line.startswith("pruned: Fourth of 18 continuations: only the best 3 stay. Its score is")
               for line in reported)  # fmt: skip
    assert any("finished. The text ends here with an end token, with a final score of" in line for line in reported)
    assert any("only one among the best 3 of a step may end" in line for line in reported)
    reported = explained(num_beams=3, max_new_tokens=10, early_stopping=True, eos_token_id=list(range(20, 60)))
    assert any(line.startswith("early_stopped") and "the search ended" in line for line in reported)


def test_explanation_describes_the_diversity_penalty() -> None:
    reported = explained(num_beams=4, num_beam_groups=4, diversity_penalty=0.5, max_new_tokens=5)
    assert any("Earlier groups chose the same token, which lowered its score by 0.5." in line for line in reported)


def test_explanations_need_no_torch() -> None:
    code = (
        "import sys; from decodescope import core; "
        "list(core.strategies.registry), core.explain_candidate; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_beam_events_use_little_memory() -> None:
    """Sixteen beams over two hundred steps hold at most 50 MB of events."""
    model = tiny.shared("llama")
    config = GenerationConfig(num_beams=16, max_new_tokens=200, min_new_tokens=200)
    core.run(model, core.Request(tiny.prompt(), GenerationConfig(num_beams=16, max_new_tokens=2)))
    gc.collect()
    tracemalloc.start()
    events = core.run(model, core.Request(tiny.prompt(), config)).events
    gc.collect()
    held, _peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    steps = [event for event in events if isinstance(event, BeamStep)]
    assert len(steps) == 200
    assert sum(len(step.candidates) for step in steps) == 200 * 32
    assert held < 50e6
