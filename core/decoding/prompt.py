"""Encode text, a chat or token ids to the ids a model reads."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

import torch
from jinja2.exceptions import TemplateError
from transformers import PreTrainedTokenizerBase

from decodescope.core.common.setting_values import is_id, to_plain_value
from decodescope.core.errors import (
    EmptyPromptError,
    ParameterError,
    PromptError,
    PromptTooLongError,
    TokenizerMissingError,
)
from decodescope.core.events import PromptToken
from decodescope.core.models.chat_templates import render_chat, template_variables
from decodescope.core.models.loaded_model import LoadedModel, check_model
from decodescope.core.models.model_files import full_message, is_library_failure, readable_reason
from decodescope.core.models.template_sandbox import TemplateLimitError
from decodescope.core.models.text import Decoder, IncrementalDecoder, TokenSpellings
from decodescope.core.models.text_decoder import media_input_of
from decodescope.core.parameter import short_repr
from decodescope.resources.language import join_names, mark, tr

T = TypeVar("T")


def default_template(model: str, templates: str | Mapping[str, str]) -> str:
    """Return the chat template, or the default one of several by name, of the model named `model`. Raises PromptError
    if none is the default.
    """
    if isinstance(templates, str):
        return templates
    if "default" not in templates:
        raise PromptError(
            tr("{model} has several chat templates ({names}), and none of them is the default.").format(
                model=model, names=join_names(sorted(map(str, templates)))[:200]
            ),
            tr(
                "Name one of them “default” in the model's tokenizer files, set tokenizer.chat_template to the text of "
                "one, or write the prompt as plain text."
            ),
        )
    return templates["default"]


def fill_chat_template(model: str, fill: Callable[[], T]) -> T:
    """Return the result of `fill`, the chat template of the model named `model`. Raises PromptError if it fails."""
    try:
        return fill()
    except Exception as error:  # templates raise arbitrary exceptions
        raise _template_error(model, error) from error


def _template_error(model: str, error: Exception) -> PromptError:
    """Translate the error: refused by the template, beyond its limits, or failed."""
    if isinstance(error, TemplateLimitError):
        return PromptError(
            tr("The chat template of {model} exceeds a limit: {error}.").format(model=model, error=error),
            tr("Write the prompt as plain text, or choose another model."),
        )
    if type(error) is TemplateError or not isinstance(error, (TemplateError, *_PYTHON_ERRORS)):
        return PromptError(
            tr("The chat template of {model} rejects these messages: {error}").format(model=model, error=error),
            tr("Check that the roles alternate between user and assistant, beginning with the user."),
        )
    return PromptError(
        tr("The chat template of {model} failed on these messages: {reason}.").format(
            model=model, reason=readable_reason(error)
        ),
        tr(
            "Give each message a role and a text. If both are there, the template is faulty: write the "
            "prompt as plain text, or copy the model's tokenizer files again."
        ),
        full_message(error),
    )


_PYTHON_ERRORS = (TypeError, AttributeError, LookupError, ArithmeticError, RecursionError, UnicodeError)
"""Python's own exceptions, which templates do not raise on purpose."""


def encode(
    model: LoadedModel, prompt: object, unbounded: bool = False, bos: object = None,
    template_settings: Mapping[str, object] = MappingProxyType({}),
) -> list[int]:  # fmt: skip
    """Return the prompt's token ids, including special tokens added by the tokenizer.

    `unbounded` skips the check against the model's context length; `bos` replaces the model's own start token of an
    empty prompt; `template_settings` are variables of the chat template, such as `enable_thinking`. Raises
    TokenizerMissingError, EmptyPromptError, PromptTooLongError, PromptError, ParameterError.
    """
    check_model(model)
    ids = _to_ids(model, prompt, template_settings) or _start_tokens(model, bos)
    if not unbounded and model.context is not None and len(ids) > model.context:
        raise PromptTooLongError(len(ids), model.context)
    check_vocabulary_ids(model, ids)
    return ids


def check_vocabulary_ids(model: LoadedModel, ids: Sequence[int], field: str = "prompt") -> None:
    """Check that all ids are in the vocabulary. Raises ParameterError, with the name of the request's field."""
    if outside := [i for i in ids if not 0 <= i < model.vocabulary]:
        raise ParameterError(
            tr("Token id {id} in the {field} does not exist: the ids of {model} are 0 to {last:,}.").format(
                field=field, id=outside[0], model=model.name, last=model.vocabulary - 1
            ),
            tr("Use ids from this model's tokenizer."),
            field,
        )


def to_prompt_tokens(ids: Sequence[int], pieces: TokenSpellings) -> tuple[PromptToken, ...]:
    """Return the prompt tokens for events."""
    named = ((token, text, pieces[token]) for token, text in zip(ids, pieces.texts(ids), strict=True))
    return tuple(
        PromptToken(token, text, piece if piece != text else "", token in pieces.special)
        for token, text, piece in named
    )


def _to_ids(model: LoadedModel, prompt: object, template_settings: Mapping[str, object]) -> list[int]:
    if isinstance(prompt, str):
        return _encode_text(model, prompt)
    items = _prompt_items(prompt)
    if items and all(isinstance(item, Mapping) for item in items):
        return _encode_chat(model, items, template_settings)
    if wrong := [item for item in items if not _is_id(item)]:
        raise PromptError(
            tr("The prompt contains {value}, which is neither a token id nor a chat message.").format(
                value=_describe_value(wrong[0])
            ),
            tr(_PROMPT_REMEDY),
        )
    return [int(token) for token in items]


_PROMPT_REMEDY = mark("Pass a text, the messages of one chat, or the token ids of one text.")


def _prompt_items(prompt: object) -> list[Any]:
    """Return a sequence's items; for a tensor or an array, which must have one row, its numbers."""
    prompt = to_plain_value(prompt)
    if not isinstance(prompt, Sequence) or isinstance(prompt, (bytes, bytearray)):
        raise PromptError(
            tr("The prompt has an unsupported value: {value}.").format(value=_describe_value(prompt)),
            tr(_PROMPT_REMEDY),
        )
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
    if media_input_of(model.model, model.modalities) == "before":  # the tokenizer's end token would end the caption
        return [*_start_tokens(model), *tokenize(model, text, add_special_tokens=False)]
    return tokenize(model, text)


def check_tokenizer(model: LoadedModel) -> None:
    """Raise TokenizerMissingError where text cannot be tokenized."""
    if model.tokenizer is None:
        raise TokenizerMissingError(
            tr("{model} has no tokenizer, so text cannot be converted to tokens.").format(model=model.name),
            tr("Put the tokenizer files into the model folder. In Python you can also pass token ids as the prompt."),
        )


def tokenize(model: LoadedModel, text: str, **more: bool) -> list[int]:
    """Return the ids of a text; `more` is passed to the tokenizer. Raises PromptError for invalid text."""
    try:
        text.encode("utf-8")
        ids: list[int] = model.tokenizer(text, verbose=False, **more)["input_ids"]
    except UnicodeEncodeError as error:
        broken = text[error.start : error.start + 1].encode("utf-8", "surrogatepass").hex(" ")
        raise PromptError(
            tr("The prompt contains half a character ({broken}), which is not valid text.").format(broken=broken),
            tr("Remove it, or type it again."),
        ) from None
    except BaseException as error:
        if not is_library_failure(error):
            raise
        raise PromptError(
            tr("The tokenizer of {model} cannot convert this text to tokens: {error}").format(
                model=model.name, error=readable_reason(error)
            ),
            tr("It may have no token for unusual characters: leave them out, or pass token ids."),
            full_message(error),
        ) from error
    return ids


def _encode_chat(
    model: LoadedModel, messages: Sequence[Mapping[str, str]], settings: Mapping[str, object]
) -> list[int]:
    if model.tokenizer is None or not getattr(model.tokenizer, "chat_template", None):
        raise TokenizerMissingError(
            tr("{model} has no chat template, so a chat cannot be converted to tokens.").format(model=model.name),
            tr("Write the prompt as plain text, or choose a chat model."),
        )
    template = default_template(model.name, model.tokenizer.chat_template)
    if settings:
        settings = _template_settings(model, template, settings)
    text = fill_chat_template(model.name, lambda: _fill_template(model.tokenizer, messages, settings))
    return tokenize(model, text, add_special_tokens=False)


_EFFORT, _NO_EFFORT, _SWITCHES = "reasoning_effort", "none", ("enable_thinking", "thinking")
_TEMPLATE_ARGUMENTS = frozenset({"messages", "tools", "documents", "add_generation_prompt"})
"""Variables that every template gets."""


def _template_settings(model: LoadedModel, template: str, settings: Mapping[str, object]) -> Mapping[str, object]:
    """Return the settings that the template reads. The effort “none” is its switch for thinking too.

    Raises ParameterError for one that it does not read, unless it switches off thinking that the model does not have.
    """
    names = fill_chat_template(model.name, lambda: template_variables(template))
    known = names - _TEMPLATE_ARGUMENTS - set(model.tokenizer.special_tokens_map if model.tokenizer is not None else ())
    if settings.get(_EFFORT) == _NO_EFFORT:
        settings = {**dict.fromkeys(known & set(_SWITCHES), False), **settings}
        if not known & {_EFFORT} and known & set(_SWITCHES):
            settings = {name: value for name, value in settings.items() if name != _EFFORT}
    for name, value in settings.items():
        is_off = value == _NO_EFFORT if name == _EFFORT else name in _SWITCHES and value is False
        if name not in known and not (is_off and not model.thinking_marks):
            switches = sorted(known & {_EFFORT, *_SWITCHES})
            raise ParameterError(
                tr("The chat template of {model} does not read {name}.").format(model=model.name, name=name),
                tr("Remove it. The template reads {names}.").format(names=join_names(switches))
                if switches
                else tr("Remove it. Thinking can be limited by thinking_budget.")
                if name in (_EFFORT, *_SWITCHES) and model.thinking_marks
                else tr("Remove it."),
                f"{TEMPLATE_SETTINGS}.{name}",
            )
    return {name: value for name, value in settings.items() if name in known}


TEMPLATE_SETTINGS = "template_settings"
"""Name of the parameter in errors."""


def _fill_template(
    tokenizer: PreTrainedTokenizerBase, messages: Sequence[Mapping[str, str]], settings: Mapping[str, object]
) -> str:
    """Fill the template with limited Jinja; tokenizers with their own implementation (Mistral's) use it."""
    if type(tokenizer).apply_chat_template is PreTrainedTokenizerBase.apply_chat_template:
        return render_chat(tokenizer.get_chat_template(), messages, {**settings, **tokenizer.special_tokens_map})
    apply: Any = tokenizer.apply_chat_template  # it passes further arguments on to the template
    return str(apply([dict(one) for one in messages], tokenize=False, add_generation_prompt=True, **settings))


def _start_tokens(model: LoadedModel, bos: object = None) -> list[int]:
    """Return the start tokens of an empty prompt."""
    bos = model.generation_config.bos_token_id if bos is None else bos
    first = bos[0] if isinstance(bos, list) and bos else bos
    if not isinstance(first, int) or not _is_id(first) or model.is_encoder_decoder:
        raise EmptyPromptError(
            tr("The prompt is empty, and {model} has no start token (BOS).").format(model=model.name),
            tr("Write at least one word."),
        )
    return [first]


def encode_continuation(model: LoadedModel, before: Sequence[int], addition: object) -> list[int]:
    """Return the ids of `addition` after `before`: a text, token ids, or a sequence of both.

    Raises PromptError, TokenizerMissingError, ParameterError.
    """
    ids = list[int]()
    for part in _continuation_parts(addition):
        ids += _encode_after(model, [*before, *ids], part) if isinstance(part, str) else [part]
    check_vocabulary_ids(model, ids, "beginning")
    return ids


def _continuation_parts(addition: object) -> list[int | str]:
    addition = to_plain_value(addition)
    parts = [addition] if isinstance(addition, str) else list(addition) if isinstance(addition, Sequence) else None
    if parts is None or isinstance(addition, bytes):
        raise PromptError(
            tr("The continuation is {value}.").format(value=short_repr(addition)), tr(_CONTINUATION_REMEDY)
        )
    if wrong := [part for part in parts if not (isinstance(part, str) or is_id(part))]:
        raise PromptError(
            tr("The continuation is {value}.").format(value=short_repr(wrong[0])), tr(_CONTINUATION_REMEDY)
        )
    return [part if isinstance(part, str) else int(part) for part in parts]


_CONTINUATION_REMEDY = mark("Pass words, token ids, or a mix of both.")


def _encode_after(model: LoadedModel, before: Sequence[int], text: str) -> list[int]:
    """Encode `text` as it follows other tokens, since many tokenizers encode the start of a text differently.

    Fall back to its own tokens where it would change the tokens before it.
    """
    check_tokenizer(model)
    last = Decoder(model.tokenizer)(IncrementalDecoder(model.tokenizer, model.pieces).tail(before))
    alone = tokenize(model, last, add_special_tokens=False)
    both = tokenize(model, last + text, add_special_tokens=False)
    is_split = both[: len(alone)] == alone
    return both[len(alone) :] if is_split else tokenize(model, text, add_special_tokens=False)


def heal_tokens(model: LoadedModel, ids: list[int], seed: int) -> list[int]:
    """Return the prompt's ids with a healed end, by transformers' own method.

    Raises ParameterError where the tokenizer lacks what that method needs.
    """
    network: Any = model.model
    tokenizer = model.tokenizer
    if tokenizer is None or not hasattr(network, "heal_tokens"):
        raise _healing_error(tr("Token healing needs a tokenizer and a transformers version that supports it."))
    missing = [name for name in ("bos_token", "pad_token") if getattr(tokenizer, f"{name}_id", None) is None]
    if missing:
        raise _healing_error(
            tr("Token healing needs a tokenizer with a {token}; that of {model} has none.").format(
                token=missing[0], model=model.name
            )
        )
    with torch.random.fork_rng(devices=[model.device] if model.device.type == "cuda" else []):
        torch.manual_seed(seed)
        healed: list[int] = network.heal_tokens(torch.tensor([ids], device=model.device), copy.copy(tokenizer))[
            0
        ].tolist()
    return healed


def _healing_error(cause: str) -> ParameterError:
    return ParameterError(cause, tr("Turn token_healing off."), "token_healing")
