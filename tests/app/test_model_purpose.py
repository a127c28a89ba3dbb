"""Models are described by purpose and size; their architecture is in the tooltip."""

from __future__ import annotations

from pathlib import Path

import pytest

from decodescope.app.control.model_list import ModelList
from decodescope.app.state.model_description import BUNDLED, describe_model
from decodescope.core import Modalities, ModelEntry
from decodescope.core.models import catalog

TEXT, AUDIO, IMAGES = Modalities(), Modalities(text=False, sound=True), Modalities(text=False, picture=True)


def entry(model_type: str, title: str, family: str, writes_back: bool = False, takes: Modalities = TEXT) -> ModelEntry:
    return ModelEntry(
        title, title, "hub", Path(title), f"{family} · 12 layers × 768", model_type, 124_000_000, 500, 1024,
        writes_back, modalities=takes,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (entry("llama", "SmolLM2-135M", "Llama"), "Writes text (Llama)"),
        (entry("llama", "SmolLM2-135M-Instruct", "Llama"), "Chats and writes text (Llama)"),
        (entry("gemma2", "gemma-2-2b-it", "Gemma2"), "Chats and writes text (Gemma2)"),
        (entry("gpt2", "distilgpt2", "GPT2"), "Writes text (GPT2)"),
        (entry("starcoder2", "starcoder2-3b", "Starcoder2"), "Writes code (Starcoder2)"),
        (entry("qwen2", "Qwen2.5-Coder-0.5B", "Qwen2"), "Writes code (Qwen2)"),
        (entry("t5", "t5-small", "T5", True), "Summarises / translates (T5)"),
        (entry("bart", "bart-large-cnn", "Bart", True), "Summarises (Bart)"),
        (entry("marian", "opus-mt-en-fr", "Marian", True), "Translates (Marian)"),
        (entry("m2m_100", "nllb-200-distilled-600M", "M2M100", True), "Translates (M2M100)"),
        (entry("whisper", "whisper-tiny", "Whisper", True, AUDIO), "Transcribes speech (Whisper)"),
        (entry("git", "git-base", "Git", False, IMAGES), "Describes images (Git)"),
        (entry("idefics3", "SmolVLM", "Idefics3", False, Modalities(picture=True)),
         "Writes text about images (Idefics3)"),
        (entry("qwen2_audio", "Qwen2-Audio", "Qwen2Audio", False, Modalities(sound=True)),
         "Writes text about audio (Qwen2Audio)"),
    ],
)  # fmt: skip
def test_describe_model_states_purpose(known: ModelEntry, expected: str) -> None:
    assert describe_model(known) == expected


def test_every_bundled_model_has_unique_description() -> None:
    assert {model.name for model in catalog.bundled()} == set(BUNDLED)
    assert len(set(BUNDLED.values())) == len(BUNDLED)


def test_item_has_purpose_and_size_and_tooltip_architecture() -> None:
    models = ModelList()
    models.refresh(())
    items = {item.data: item for item in models.items()}
    for model in catalog.bundled():
        item = items[model.name]
        assert item.subtitle == BUNDLED[model.name]
        parameters, bits, size = item.columns
        assert parameters.endswith((" M", " K"))
        assert bits == "16 bits"
        assert size.endswith("MiB")
        assert model.architecture in item.help
    assert items["storyteller"].columns[0] == "5.7 M"


def test_draft_subtitle_starts_with_purpose() -> None:
    models = ModelList()
    models.refresh(())
    drafts = {item.data: item.subtitle for item in models.drafts_for("storyteller")}
    assert drafts["storyteller-draft"].startswith(BUNDLED["storyteller-draft"])
