"""Tokenize prompts and completions, and pad them into one tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypedDict

import torch

from decodescope.core.errors import PreferenceError
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.resources.language import tr

PADDING = 0
"""Padding token; masked, so any id would do."""


class ChatTurn(TypedDict):
    """One message of a chat."""

    role: str
    content: str


class PaddedTexts(NamedTuple):
    """Texts padded to the same length."""

    ids: torch.Tensor
    """[B, L]"""
    mask: torch.Tensor
    """[B, L]: 1 for tokens of the text."""

    @property
    def last(self) -> torch.Tensor:
        """[B]: index of each text's last token."""
        return self.mask.shape[1] - 1 - self.mask.flip(1).argmax(1)


def prompt_ids(model: LoadedModel, prompt: str) -> list[int]:
    """Tokenize a prompt, including the tokenizer's start tokens. Raises PreferenceError if it is too long."""
    ids = list(_tokenizer(model).encode(prompt))
    return _checked_length(model, ids)


def text_ids(model: LoadedModel, prompt: str, completion: str) -> list[int]:
    """Tokenize a prompt and its continuation. Raises PreferenceError if they are too long."""
    more = _tokenizer(model).encode(completion, add_special_tokens=False)
    return _checked_length(model, [*_tokenizer(model).encode(prompt), *more])


def chat_ids(model: LoadedModel, turns: Sequence[ChatTurn], *, with_answer: bool = False) -> list[int]:
    """Tokenize a chat with the tokenizer's template, up to the answer, or including it if `with_answer`.

    Raises PreferenceError for a model without a template.
    """
    tokenizer = _tokenizer(model)
    if tokenizer.chat_template is None:
        raise PreferenceError(
            tr("{model} has no chat template, so it cannot tokenize chat turns.").format(model=model.name),
            tr("Use examples with “prompt” and “completion”, or choose a chat model."),
        )
    text = tokenizer.apply_chat_template(list(turns), tokenize=False, add_generation_prompt=not with_answer)
    return _checked_length(model, list(tokenizer.encode(text, add_special_tokens=False)))


def pad_texts(texts: Sequence[Sequence[int]], *, left: bool = False) -> PaddedTexts:
    """Pad the texts on the right, or on the left with `left`."""
    longest = max(len(text) for text in texts)
    ids = torch.full((len(texts), longest), PADDING)
    mask = torch.zeros(len(texts), longest, dtype=torch.long)
    for row, text in enumerate(texts):
        place = slice(longest - len(text), None) if left else slice(len(text))
        ids[row, place], mask[row, place] = torch.tensor(text), 1
    return PaddedTexts(ids, mask)


def end_token_ids(model: LoadedModel) -> frozenset[int]:
    """Return the end token ids of the model."""
    found = model.generation_config.eos_token_id
    return frozenset(found if isinstance(found, list) else [] if found is None else [found])


def _tokenizer(model: LoadedModel) -> Any:
    if model.tokenizer is None or model.is_encoder_decoder:
        raise PreferenceError(
            tr("{model} cannot continue a text.").format(model=model.name),
            tr("Choose a decoder-only model with a tokenizer."),
        )
    return model.tokenizer


def _checked_length(model: LoadedModel, ids: list[int]) -> list[int]:
    if model.context is not None and len(ids) > model.context:
        raise PreferenceError(
            tr("A text has {tokens:,} tokens, but {model} reads at most {most:,}.").format(
                tokens=len(ids), model=model.name, most=model.context
            ),
            tr("Shorten the prompt or the completions."),
        )
    return ids
