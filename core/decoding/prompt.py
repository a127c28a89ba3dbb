"""From text, a chat or token ids to the ids a model reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.errors import EmptyPromptError, ParameterError, PromptError, PromptTooLongError, TokenizerMissingError
from core.models.model import LoadedModel


def encode(model: LoadedModel, prompt: str | Sequence[Any], unbounded: bool = False) -> list[int]:
    """Token ids of the prompt, special tokens included as the tokenizer adds them; `unbounded` lifts the limit of the
    model's context.

    Raises TokenizerMissingError, EmptyPromptError, PromptTooLongError, PromptError, ParameterError.
    """
    ids = _ids(model, prompt) or _begin(model)
    if not unbounded and model.context is not None and len(ids) > model.context:
        raise PromptTooLongError(len(ids), model.context)
    if outside := [i for i in ids if not 0 <= i < model.vocabulary]:
        raise ParameterError(
            f"The prompt holds the token id {outside[0]}, and {model.name} knows 0 to {model.vocabulary - 1:,}.",
            "Use ids of this model's own tokenizer.", "prompt",
        )  # fmt: skip
    return ids


def _ids(model: LoadedModel, prompt: str | Sequence[Any]) -> list[int]:
    if isinstance(prompt, str):
        return _encode_text(model, prompt)
    messages = [item for item in prompt if isinstance(item, Mapping)]
    if messages:
        return _encode_chat(model, messages)
    return [int(token) for token in prompt]


def _encode_text(model: LoadedModel, text: str) -> list[int]:
    if model.tokenizer is None:
        if not text:
            return []
        raise TokenizerMissingError(
            f"{model.name} has no tokenizer, so text cannot be turned into tokens.",
            "Give token ids, or put the tokenizer's files into the model's folder.",
        )
    ids: list[int] = model.tokenizer(text, verbose=False)["input_ids"]
    return ids


def _encode_chat(model: LoadedModel, messages: Sequence[Mapping[str, str]]) -> list[int]:
    if model.tokenizer is None or not getattr(model.tokenizer, "chat_template", None):
        raise TokenizerMissingError(
            f"{model.name} has no chat template, so a chat cannot be turned into tokens.",
            "Write the prompt as plain text, or choose a model trained for chat.",
        )
    try:
        text = model.tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
    except Exception as error:  # templates raise whatever they like
        raise PromptError(
            f"The chat template of {model.name} refuses these messages: {error}",
            "Check that the roles alternate between user and assistant, beginning with the user.",
        ) from error
    ids: list[int] = model.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
    return ids


def _begin(model: LoadedModel) -> list[int]:
    """What an empty prompt begins with."""
    bos = model.generation_config.bos_token_id
    if bos is None or model.is_encoder_decoder:
        raise EmptyPromptError(
            f"The prompt is empty, and {model.name} has no beginning-of-sequence token to start from.",
            "Write at least one word.",
        )
    return [bos[0] if isinstance(bos, list) else bos]
