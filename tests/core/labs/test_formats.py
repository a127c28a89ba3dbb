"""Files that people fine-tune with, and the learning rate for the size of a model."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from decodescope.core.errors import PreferenceError
from decodescope.core.labs.preference import read_rankings
from decodescope.core.labs.preference.fine_tuning import read_examples
from decodescope.core.labs.preference.training_loop import default_learning_rate

USER, ANSWER = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}
EXAMPLES: dict[str, tuple[dict[str, Any], object]] = {
    "ShareGPT": (
        {"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello!"}]}, (USER,)
    ),
    "ShareGPT with a system message": (
        {"id": 3, "conversations": [{"from": "system", "value": "Be kind."}, {"from": "human", "value": "Hi"},
                                    {"from": "gpt", "value": "Hello!"}]},
        ({"role": "system", "content": "Be kind."}, USER),
    ),
    "Alpaca": ({"instruction": "Hi", "input": "", "output": "Hello!"}, (USER,)),
    "Alpaca with an input": (
        {"instruction": "Say", "input": "Hi", "output": "Hello!"}, ({"role": "user", "content": "Say\n\nHi"},)
    ),
    "OpenAI": ({"messages": [USER, ANSWER]}, (USER,)),
    "OpenAI with parts": (
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}, ANSWER]}, (USER,)
    ),
    "TRL": ({"prompt": "Hi", "completion": "Hello!"}, "Hi"),
    "TRL with turns": ({"prompt": [USER], "completion": [ANSWER]}, (USER,)),
}  # fmt: skip
RANKINGS: dict[str, dict[str, Any]] = {
    "DPO": {"prompt": "Hi", "chosen": "Hello!", "rejected": "No."},
    "DPO with turns": {"prompt": "Hi", "chosen": [USER, ANSWER],
                       "rejected": [USER, {"role": "assistant", "content": "No."}]},
    "turns alone": {"chosen": [USER, ANSWER], "rejected": [USER, {"role": "assistant", "content": "No."}]},
    "UltraFeedback": {"instruction": "Hi", "completions": [{"response": "No.", "overall_score": 2.0},
                                                           {"response": "Hello!", "overall_score": 8.5}]},
}  # fmt: skip


def file_of(folder: Path, lines: list[dict[str, Any]], as_list: bool = False) -> Path:
    path = folder / "lines.json"
    path.write_text(json.dumps(lines) if as_list else "".join(json.dumps(one) + "\n" for one in lines), "utf-8")
    return path


@pytest.mark.parametrize("as_list", [False, True])
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_of_every_format_are_read(name: str, as_list: bool, tmp_path: Path) -> None:
    line, prompt = EXAMPLES[name]
    for example in read_examples(file_of(tmp_path, [line, line], as_list)):
        assert (example.prompt, example.completion) == (prompt, "Hello!")


@pytest.mark.parametrize("name", RANKINGS)
def test_rankings_of_every_format_are_read(name: str, tmp_path: Path) -> None:
    (found,) = read_rankings(file_of(tmp_path, [RANKINGS[name]]))
    assert (found.prompt, found.groups) == ("Hi", (("Hello!",), ("No.",)))


def test_examples_and_rankings_confused_get_a_matching_remedy(tmp_path: Path) -> None:
    for line in RANKINGS.values():
        with pytest.raises(PreferenceError, match="ranking of answers") as caught:
            read_examples(file_of(tmp_path, [line]))
        assert "for a reward model instead" in caught.value.remedy
    for line, _prompt in EXAMPLES.values():
        with pytest.raises(PreferenceError, match="example for fine-tuning") as caught:
            read_rankings(file_of(tmp_path, [line]))
        assert "for fine-tuning instead" in caught.value.remedy


def test_the_remedy_for_examples_names_their_formats(tmp_path: Path) -> None:
    for line in ({"text": "x"}, {"conversations": []}, {"prompt": "a"}):
        with pytest.raises(PreferenceError, match=r"Line 1 of lines\.json") as caught:
            read_examples(file_of(tmp_path, [line]))
        assert all(name in caught.value.remedy for name in ("ShareGPT", "Alpaca", "OpenAI"))
        assert "chosen" not in caught.value.remedy


@pytest.mark.parametrize(("size", "rate"), [(5_700_000, 1e-3), (135_000_000, 2e-5), (8_000_000_000, 1e-5)])
def test_a_larger_model_learns_at_a_lower_rate(size: int, rate: float) -> None:
    parameter = torch.empty(size, device="meta")
    model: Any = SimpleNamespace(model=SimpleNamespace(parameters=lambda: [parameter]))
    assert default_learning_rate(model, 1e-3) == pytest.approx(rate)
