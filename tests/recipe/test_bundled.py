"""The shipped folders: complete, small, without a forced strategy, and they do what they were trained for."""

import json
from pathlib import Path

import examine
import pytest
import torch
from corpus import HELD_OUT_SHARE, is_held_out
from export import load
from transformers import AutoTokenizer, GenerationConfig

RESOURCES = Path(__file__).resolve().parents[2] / "resources"
MODELS = sorted(path.parent for path in (RESOURCES / "models").glob("[!.]*/config.json"))
FILES = {"README.md", "config.json", "generation_config.json", "model.safetensors"} | {
    "tokenizer.json",
    "tokenizer_config.json",
}
MEDIA = {"listener", "describer"}
"""They read files with a processor, and their words are their own."""
STRATEGIES = {
    "greedy",
    "sampling",
    "contrastive",
    "dola",
    "beam_search",
    "beam_sampling",
    "diverse_beam_search",
    "constrained_beam_search",
    "assisted",
    "prompt_lookup",
    "early_exit",
    "token_tree",
}
ALLOWED_SETTINGS = {
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "decoder_start_token_id",
    "transformers_version",
    "_from_model_config",
    "is_multilingual",
    "no_timestamps_token_id",
}


def load_bundled(name: str):
    folder = RESOURCES / "models" / name
    return load(folder), AutoTokenizer.from_pretrained(folder)


def test_default_models_are_bundled() -> None:
    assert {"storyteller", "storyteller-draft", "summarizer"} <= {folder.name for folder in MODELS}


@pytest.mark.parametrize("folder", MODELS, ids=lambda folder: folder.name)
def test_model_folder_is_complete_and_sets_no_strategy(folder: Path) -> None:
    processor = {"preprocessor_config.json"} if folder.name in MEDIA else set()
    assert {path.name for path in folder.iterdir()} == FILES | processor
    settings = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))
    assert set(settings) <= ALLOWED_SETTINGS
    assert "## Figures" in (folder / "README.md").read_text(encoding="utf-8")


def test_bundled_models_total_less_than_50_mb() -> None:
    assert sum(path.stat().st_size for path in (RESOURCES / "models").rglob("*")) < 50e6


def test_text_models_share_one_vocabulary() -> None:
    folders = [folder for folder in MODELS if folder.name not in MEDIA and "chinese" not in folder.name]
    vocabularies = [json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"] for folder in folders]
    assert all(vocabulary == vocabularies[0] for vocabulary in vocabularies)


def test_storyteller_answers_questions_about_new_stories() -> None:
    model, tokenizer = load_bundled("storyteller")
    assert model.dtype == torch.float32
    assert len(examine.questions(model, tokenizer, 30)) <= 9


def test_storyteller_keeps_names_and_pronouns() -> None:
    model, tokenizer = load_bundled("storyteller")
    stored, texts = examine.kept_names(model, tokenizer, count=8, new_tokens=120)
    assert stored >= 6, "\n\n".join(texts)


def test_summarizer_translates_and_summarizes() -> None:
    model, tokenizer = load_bundled("summarizer")
    assert len(examine.translations(model, tokenizer, 20)) <= 4
    assert len(examine.summaries(model, tokenizer, 10)) <= 5


def test_draft_model_agrees_with_the_storyteller() -> None:
    (draft, tokenizer), (target, _) = load_bundled("storyteller-draft"), load_bundled("storyteller")
    same, overlap = examine.agreement(draft, target, tokenizer, count=4)
    assert same > 0.7
    assert overlap > 0.6


def test_about_one_text_in_twenty_is_held_out() -> None:
    assert 0.5 / HELD_OUT_SHARE < sum(is_held_out(str(number)) for number in range(2000)) / 2000 < 2 / HELD_OUT_SHARE


EXAMPLES = json.loads((RESOURCES / "examples.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["id"])
def test_example_refers_to_existing_model_strategy_and_settings(example: dict) -> None:
    assert (RESOURCES / "models" / example["model"] / "config.json").exists()
    assert example["strategy"] in STRATEGIES
    assert ("prompt" in example) != ("messages" in example)
    assert example["title"]
    assert example["about"].endswith(".")
    # Some of these settings left the class but live on as extra attributes, in this program and in files.
    config = GenerationConfig(**example["params"])
    assert {name: getattr(config, name) for name in example["params"]} == example["params"]


def test_example_ids_are_unique() -> None:
    assert len({example["id"] for example in EXAMPLES}) == len(EXAMPLES)
