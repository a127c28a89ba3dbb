"""A token that says little: it stands where a part of a text is taken out, so that what follows keeps its place."""

from __future__ import annotations

from core.decoding.prompt import tokenize
from core.errors import ParameterError, TokenizerMissingError
from core.models.loaded_model import LoadedModel, check_model
from resources.language import tr


def neutral_token(model: LoadedModel, text: str = "") -> int:
    """The id of `text`, which has to be one token; without it the tokenizer's own for nothing in particular: its
    unknown token, else padding, mask, end.

    Raises ParameterError (naming instead) where there is no such token, TokenizerMissingError, PromptError.
    """
    check_model(model)
    if model.tokenizer is None:
        raise TokenizerMissingError(
            tr("{model} has no tokenizer, so nobody knows which token says little.").format(model=model.name),
            tr("Leave parts of the text out instead."),
        )
    found = tokenize(model, text, add_special_tokens=False) if text else _default_tokens(model)[:1]
    if len(found) != 1:
        raise ParameterError(
            tr("{model} has no single token for “{text}”.").format(model=model.name, text=text)
            if text
            else tr("{model} has no token that stands for nothing.").format(model=model.name),
            tr("Choose another one, or leave parts of the text out instead."),
            "instead",
        )
    return found[0]


def _default_tokens(model: LoadedModel) -> list[int]:
    tokenizer = model.tokenizer
    assert tokenizer is not None
    known = (tokenizer.unk_token_id, tokenizer.pad_token_id, tokenizer.mask_token_id, tokenizer.eos_token_id)
    return [token for token in known if token is not None and token < model.vocabulary]
