"""From text, a chat or token ids to the ids a model reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from transformers import PreTrainedTokenizerBase

from core.decoding.chat_prompt import fill_chat_template
from core.errors import EmptyPromptError, ParameterError, PromptError, PromptTooLongError, TokenizerMissingError
from core.events import PromptToken
from core.models.library_errors import full_message, readable_reason
from core.models.loaded_model import LoadedModel, check_model
from core.models.templates.chat_rendering import render_chat
from core.models.text import TokenSpellings
from core.models.text_decoder import media_input_of
from core.models.tokenizers import is_library_failure
from core.parameter import short_repr
from core.plain_values import to_plain_value
from resources.language import mark, tr


def encode(model: LoadedModel, prompt: object, unbounded: bool = False, bos: object = None) -> list[int]:
    """Token ids of the prompt, special tokens included as the tokenizer adds them; `unbounded` lifts the limit of the
    model's context; `bos` is the token that an empty prompt begins with instead of the model's own.

    Raises TokenizerMissingError, EmptyPromptError, PromptTooLongError, PromptError, ParameterError.
    """
    check_model(model)
    ids = _to_ids(model, prompt) or _start_tokens(model, bos)
    if not unbounded and model.context is not None and len(ids) > model.context:
        raise PromptTooLongError(len(ids), model.context)
    check_vocabulary_ids(model, ids)
    return ids


def check_vocabulary_ids(model: LoadedModel, ids: Sequence[int], field: str = "prompt") -> None:
    """Raises ParameterError, naming the request's field, for ids beyond the model's vocabulary."""
    if outside := [i for i in ids if not 0 <= i < model.vocabulary]:
        raise ParameterError(
            tr("The {field} holds the token id {id}, and {model} knows 0 to {last:,}.").format(
                field=field, id=outside[0], model=model.name, last=model.vocabulary - 1
            ),
            tr("Use ids of this model's own tokenizer."),
            field,
        )


def to_prompt_tokens(ids: Sequence[int], pieces: TokenSpellings) -> tuple[PromptToken, ...]:
    """The prompt as events tell it."""
    named = ((token, text, pieces[token]) for token, text in zip(ids, pieces.texts(ids), strict=True))
    return tuple(
        PromptToken(token, text, piece if piece != text else "", token in pieces.special)
        for token, text, piece in named
    )


def _to_ids(model: LoadedModel, prompt: object) -> list[int]:
    if isinstance(prompt, str):
        return _encode_text(model, prompt)
    items = _prompt_items(prompt)
    if items and all(isinstance(item, Mapping) for item in items):
        return _encode_chat(model, items)
    if wrong := [item for item in items if not _is_id(item)]:
        raise PromptError(
            tr("The prompt holds {value}, which is neither a token id nor a message of a chat.").format(
                value=_describe_value(wrong[0])
            ),
            tr(_PROMPT_REMEDY),
        )
    return [int(token) for token in items]


_PROMPT_REMEDY = mark("Give a text, the messages of one chat, or the token ids of one text.")


def _prompt_items(prompt: object) -> list[Any]:
    """A sequence's parts; of a tensor or an array, which must have one row, its numbers."""
    prompt = to_plain_value(prompt)
    if not isinstance(prompt, Sequence) or isinstance(prompt, (bytes, bytearray)):
        raise PromptError(tr("The prompt is {value}.").format(value=_describe_value(prompt)), tr(_PROMPT_REMEDY))
    return list(prompt)


def _is_id(item: object) -> bool:
    return isinstance(item, int) and not isinstance(item, bool)


def _describe_value(value: object) -> str:
    words = "null" if value is None else tr("a {kind}").format(kind=type(value).__name__)
    return f"{words} ({short_repr(value):.40})" if isinstance(value, (str, int, float)) else words


def _encode_text(model: LoadedModel, text: str) -> list[int]:
    if model.tokenizer is None and not text:
        return []
    check_tokenizer(model)
    if (
        media_input_of(model.model, model.takes) == "before"
    ):  # the end mark that its tokenizer adds would be the end of the caption
        return [*_start_tokens(model), *tokenize(model, text, add_special_tokens=False)]
    return tokenize(model, text)


def check_tokenizer(model: LoadedModel) -> None:
    """Raises TokenizerMissingError where text cannot be turned into tokens."""
    if model.tokenizer is None:
        raise TokenizerMissingError(
            tr("{model} has no tokenizer, so text cannot be turned into tokens.").format(model=model.name),
            tr("Put the tokenizer's files into the model's folder; from Python, a prompt of token ids needs none."),
        )


def tokenize(model: LoadedModel, text: str, **more: bool) -> list[int]:
    """Ids of a text; `more` goes to the tokenizer. Raises PromptError for what is no text, or not this tokenizer's."""
    try:
        text.encode("utf-8")
        ids: list[int] = model.tokenizer(text, verbose=False, **more)["input_ids"]
    except UnicodeEncodeError as error:
        broken = text[error.start : error.start + 1].encode("utf-8", "surrogatepass").hex(" ")
        raise PromptError(
            tr("The prompt holds half a character ({broken}), which is no text.").format(broken=broken),
            tr("Remove it, or type it again."),
        ) from None
    except BaseException as error:
        if not is_library_failure(error):
            raise
        raise PromptError(
            tr("The tokenizer of {model} cannot turn this text into tokens: {error}").format(
                model=model.name, error=readable_reason(error)
            ),
            tr("It may have no token for characters it does not know: leave them out, or give token ids."),
            full_message(error),
        ) from error
    return ids


def _encode_chat(model: LoadedModel, messages: Sequence[Mapping[str, str]]) -> list[int]:
    if model.tokenizer is None or not getattr(model.tokenizer, "chat_template", None):
        raise TokenizerMissingError(
            tr("{model} has no chat template, so a chat cannot be turned into tokens.").format(model=model.name),
            tr("Write the prompt as plain text, or choose a model trained for chat."),
        )
    text = fill_chat_template(model.name, lambda: _fill_template(model.tokenizer, messages))
    return tokenize(model, text, add_special_tokens=False)


def _fill_template(tokenizer: PreTrainedTokenizerBase, messages: Sequence[Mapping[str, str]]) -> str:
    """Jinja within limits; tokenizers whose chats are programs of their own (Mistral's) do it their way."""
    if type(tokenizer).apply_chat_template is PreTrainedTokenizerBase.apply_chat_template:
        return render_chat(tokenizer.get_chat_template(), messages, tokenizer.special_tokens_map)
    return str(
        tokenizer.apply_chat_template([dict(one) for one in messages], tokenize=False, add_generation_prompt=True)
    )


def _start_tokens(model: LoadedModel, bos: object = None) -> list[int]:
    """What an empty prompt begins with."""
    bos = model.generation_config.bos_token_id if bos is None else bos
    first = bos[0] if isinstance(bos, list) and bos else bos
    if not isinstance(first, int) or not _is_id(first) or model.is_encoder_decoder:
        raise EmptyPromptError(
            tr("The prompt is empty, and {model} has no beginning-of-sequence token to start from.").format(
                model=model.name
            ),
            tr("Write at least one word."),
        )
    return [first]
