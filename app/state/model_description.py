"""One-line description of a model: a fixed sentence for bundled models, otherwise derived from the configuration."""

from __future__ import annotations

import re

from decodescope.core import ModelEntry
from decodescope.resources.language import mark, tr

BUNDLED = {
    "storyteller": mark("Writes short children's stories and chats about them"),
    "storyteller-chinese": mark("Writes short children's stories in Chinese and chats about them"),
    "storyteller-draft": mark("Draft model for storyteller, ten times smaller"),
    "storyteller-draft-b": mark("Second, weaker draft model for storyteller"),
    "storyteller-mamba": mark("Writes stories with a state of constant size (Mamba)"),
    "storyteller-window": mark("Writes stories; attends only to the last 64 tokens"),
    "summarizer": mark("Summarises stories and translates English to French"),
    "listener": mark("Transcribes spoken numbers, times and commands"),
    "describer": mark("Describes images of coloured shapes"),
}
_SPEECH, _DESCRIBES = mark("Transcribes speech ({family})"), mark("Describes images ({family})")
_SOUND_AND_TEXT = mark("Writes text about audio ({family})")
_PICTURE_AND_TEXT = mark("Writes text about images ({family})")
_SEES_AND_HEARS = mark("Writes text about images and audio ({family})")
_BOTH = mark("Summarises / translates ({family})")
_SUMMARISES, _TRANSLATES = mark("Summarises ({family})"), mark("Translates ({family})")
_CHATS, _CODE, _WRITES = mark("Chats and writes text ({family})"), mark("Writes code ({family})"), mark(
    "Writes text ({family})"
)  # fmt: skip
_TRANSLATORS = ("marian", "m2m", "nllb", "mbart", "fsmt", "seamless", "opus")
_SUMMARISERS = ("pegasus", "prophetnet", "led", "longt5", "cnn", "xsum", "summar")
_CHAT_MODELS = ("blenderbot", "instruct", "chat", "assistant", "dialog")
_CODE_MODELS = ("codegen", "starcoder", "bigcode", "coder", "codellama", "code")


def describe_model(entry: ModelEntry) -> str:
    """Return the model's description in one line, without its size."""
    if entry.source == "bundled" and entry.name in BUNDLED:
        return tr(BUNDLED[entry.name])
    return tr(_sentence(entry)).format(family=family(entry))


def is_chat_model(entry: ModelEntry) -> bool:
    """Return whether the model was trained to chat, judged by its name."""
    return _has_word_starting_with(f"{entry.model_type} {entry.title}".lower(), _CHAT_MODELS)


def family(entry: ModelEntry) -> str:
    """Return the name of its architecture: `Llama`."""
    return entry.architecture.partition(" · ")[0] or entry.model_type


def _sentence(entry: ModelEntry) -> str:
    takes = entry.modalities
    if takes.sound and takes.picture:
        return _SEES_AND_HEARS
    if takes.sound:
        return _SOUND_AND_TEXT if takes.text and not entry.encoder_decoder else _SPEECH
    if takes.picture:
        return _PICTURE_AND_TEXT if takes.text else _DESCRIBES
    names = f"{entry.model_type} {entry.title}".lower()
    if entry.encoder_decoder:
        if _has_word_starting_with(names, _TRANSLATORS):
            return _TRANSLATES
        if _has_word_starting_with(names, _SUMMARISERS):
            return _SUMMARISES
        return _CHATS if is_chat_model(entry) else _BOTH
    if _has_word_starting_with(names, _CODE_MODELS):
        return _CODE
    return _CHATS if is_chat_model(entry) else _WRITES


def _has_word_starting_with(names: str, beginnings: tuple[str, ...]) -> bool:
    """Return whether a word of the names starts with one of these: `led` does not match `distilled`. The word `it`, for
    instruction-tuned, counts as a chat model.
    """
    words = re.split(r"[^a-z0-9]+", names)
    return any(word.startswith(beginnings) for word in words) or (beginnings is _CHAT_MODELS and "it" in words)
