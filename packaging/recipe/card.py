"""The README of a model: what it is, how it was made, its figures, sample texts and limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import examine
from bpe import tokenizer_for
from export import load
from media import MEDIA
from samples import PromptSample, sample_all
from shapes import ModelRecipe

Row = tuple[str, str]
CORPUS = {
    "t5": "Tasks in the form of text: `summarize: <story>` (27 %), `translate English to French: <sentence>` (64 %) "
    "and `question: <question> story: <story>` (9 %).",
    "": "Short children's stories alone (34 %), several in a row (2 %), rambles (10 %: sentences without memory, each "
    "likeliest to repeat itself), and chat: a story with questions about it (42 %), a story on request with "
    "questions (10 %), small talk (2 %).",
}
LIMITS = {
    **{family: medium.limits for family, medium in MEDIA.items()},
    "t5": "Knows only the words and forms of its grammar: other words, two adjectives at once or long sentences go "
    "wrong. Summaries take one form for each plot.",
    "chinese": "Knows fifteen plots, eighteen animals and forty names. Asked about anything else it answers with "
    "something from its own world.",
    "": "Knows about 700 words and fifteen plots. Asked about anything else it answers with something from its own "
    "world. Names beyond its forty fall apart into pieces that it cannot keep. "
    "Its answers fail most at colors and at which animal has which name; under greedy both characters can get "
    "one name.",
}


def limits(shape: ModelRecipe) -> str:
    """What the model cannot do."""
    if "draft" in shape.name:
        mixed = "" if shape.teacher else " and mixes up names"
        return f"Made to draft for the storyteller, which corrects it: alone it answers fewer questions{mixed}."
    return LIMITS.get(shape.language, LIMITS.get(shape.family, LIMITS[""]))


def percent(right: int, total: int) -> str:
    """A share as the table shows it."""
    return f"{right} of {total} ({100 * right / total:.1f} %)"


def figures(shape: ModelRecipe, model: Any, tokenizer: Any, output: Path) -> list[Row]:
    """The held-out measurements that suit the model's family."""
    if shape.family in MEDIA:
        return MEDIA[shape.family].measure(model)
    if shape.family == "t5":
        french, summed = examine.translations(model, tokenizer), examine.summaries(model, tokenizer)
        return [
            ("Translations exact", percent(examine.SENTENCES - len(french), examine.SENTENCES)),
            ("Summaries exact", percent(200 - len(summed), 200)),
        ]
    rows = [("Loss on held-out stories, nats a token", f"{examine.held_out_loss(model, tokenizer):.3f}")]
    wrong = examine.questions(model, tokenizer)
    kept, _ = examine.kept_names(model, tokenizer)
    rows += [("Questions about held-out stories answered exactly", percent(300 - len(wrong), 300))]
    rows += [("Stories at temperature 0.8 that keep names and pronouns", percent(kept, 50))]
    return rows + draft_figures(shape, model, tokenizer, output)


def draft_figures(shape: ModelRecipe, model: Any, tokenizer: Any, output: Path) -> list[Row]:
    """How well a draft model foresees the storyteller."""
    target = output / "storyteller"
    if "draft" not in shape.name or not target.exists():
        return []
    same, overlap = examine.agreement(model, load(target), tokenizer)
    return [
        ("Greedy choice as the storyteller's", f"{100 * same:.1f} %"),
        ("Chance that a sampled draft token is accepted", f"{100 * overlap:.1f} %"),
    ]


def origin(shape: ModelRecipe) -> str:
    """Where a model's first knowledge comes from, when not from the corpus alone."""
    if shape.teacher:
        return f" Distilled from `{shape.teacher}`."
    return f" Continues `{shape.start_from}`." if shape.start_from else ""


def layers(shape: ModelRecipe) -> str:
    """How many layers; of a model with audio or image inputs those of the encoder and those of the decoder."""
    return f"{shape.layers} + {shape.extra['decoder_layers']}" if shape.family in MEDIA else str(shape.layers)


def vocabulary(shape: ModelRecipe) -> str:
    """What the tokens are."""
    return MEDIA[shape.family].vocabulary if shape.family in MEDIA else "byte-level BPE tokens, learned from the corpus"


def describe(shape: ModelRecipe, model: Any, tokens: int) -> list[str]:
    """Shape, corpus and budget in words."""
    size = sum(parameter.numel() for parameter in model.parameters()) / 1e6
    kind = type(model).__name__
    made = f"{size:.2f} million parameters, trained from nothing by Decodescope's own recipe.{origin(shape)}"
    rows = [
        ("Layers × width", f"{layers(shape)} × {shape.width}"),
        ("Vocabulary", f"{model.config.vocab_size:,} {vocabulary(shape)}"),
        ("Weights", "stored as float16, meant to run in float32"),
        ("Training", f"{shape.all_steps:,} steps, {tokens / 1e6:.1f} million tokens"),
    ]
    opening = [f"# {shape.name}", "", f"{shape.title}: {kind}, {made}", "", "| | |", "| --- | --- |"]
    return [*opening, *table_rows(rows), "", *data_lines(shape), *recipe_lines(shape)]


def table_rows(rows: list[Row]) -> list[str]:
    """Rows of a Markdown table."""
    return [f"| {name} | {value} |" for name, value in rows]


def counted(shape: ModelRecipe) -> str:
    """How much a step has of what."""
    things = {"whisper": "sentences", "git": "drawings"}.get(shape.family)
    return f"{shape.batch:,} {things}" if things else f"about {shape.batch:,} tokens"


def data_lines(shape: ModelRecipe) -> list[str]:
    """What the model was trained on."""
    if shape.family in MEDIA:
        data, held_out = MEDIA[shape.family].data
        return ["## Data", "", data, "", held_out, ""]
    folder = "data" if shape.language == "english" else f"data/{shape.language}"
    grammar = f"A story grammar wrote everything (`packaging/recipe/{folder}`); nothing was downloaded."
    held_out = "One text in twenty is held out by its checksum and never trained on; the figures below come from those."
    return ["## Data", "", f"{grammar} {CORPUS.get(shape.family, CORPUS[''])}", "", held_out, ""]


def recipe_lines(shape: ModelRecipe) -> list[str]:
    """How to make it again."""
    text = (
        f"`python packaging/recipe/build.py {shape.name}` makes it again, alike up to the hardware's rounding. "
        f"Muon for the matrices inside, AdamW for the rest, peak rate {shape.rate:g}, {counted(shape)} a step, "
        f"warm-up, plateau, a straight line to zero over the last {100 * shape.decay:.0f} % of the steps."
    )
    for length in shape.hills:
        text += f" Then again from 0.6 of the peak to zero, over {length:,} steps."
    if shape.family in MEDIA:
        return ["## Recipe", "", f"{text} {MEDIA[shape.family].recipe}".strip(), ""]
    if shape.hills and shape.family == "t5":
        text += " Nine in ten of the last tasks are French."
    elif shape.hills:
        text += " These later documents hold more questions: up to fourteen after one story."
    if shape.family != "t5":
        text += " Answers weigh three times as much in the loss as stories, questions almost nothing."
    return ["## Recipe", "", text, ""]


def quoted(text: str) -> str:
    """A text as a Markdown quotation."""
    return "\n".join(f"> {line}" if line else ">" for line in text.strip().split("\n"))


def sample_lines(sample: PromptSample) -> list[str]:
    """One sample as Markdown."""
    settings = ", ".join(f"{key} {value}" for key, value in sample.settings.items())
    lines = [
        f"### {sample.title}",
        "",
        f"{sample.strategy} ({settings}); repeated 4-grams {sample.repeated:.2f}",
        "",
        f"Prompt: {sample.prompt}",
        "",
    ]
    for text in sample.texts:
        lines += [quoted(text), ""]
    return lines


def write_card(shape: ModelRecipe, output: Path, tokens: int) -> None:
    """Measure the finished model and write its README."""
    model = load(output / shape.name)
    tokenizer = None if shape.family in MEDIA else tokenizer_for(shape.family)
    lines = [*describe(shape, model, tokens), "## Figures", "", "| Measure | Value |", "| --- | --- |"]
    lines += table_rows(figures(shape, model, tokenizer, output))
    lines += ["", "## Limits", "", limits(shape), ""]
    samples = sample_all(shape.name, output)
    if samples:
        lines += ["## Samples", "", "The program's example prompts, unchanged and not chosen among runs.", ""]
    for sample in samples:
        lines += sample_lines(sample)
    (output / shape.name / "README.md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
