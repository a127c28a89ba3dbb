"""SGLang, with its native endpoint `/generate`, which also reports token ids."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from decodescope.core.grammar.grammar_setting import schema_of
from decodescope.core.remote import http_stream
from decodescope.core.remote.engines.base import Body, EngineKind, Message, NativeEndpoint
from decodescope.core.remote.engines.formats import (
    COUNT_PENALTIES,
    GRAMMAR,
    OPENAI_SETTINGS,
    SERVER_SETTINGS,
    SEVERAL_TEXTS,
    USAGE,
)
from decodescope.core.remote.responses import (
    MAX_ALTERNATIVES,
    ResponseUsage,
    StreamedToken,
    TextDelta,
    TokenLogprob,
    as_count,
    parse_log_probability,
    repair_text,
    valid_count,
)

_NATIVE_NAMES = {
    "max_tokens": "max_new_tokens", "min_tokens": "min_new_tokens", "seed": "sampling_seed",
    **{name: name for name in ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "stop", "stop_token_ids",
                               *COUNT_PENALTIES, "n", "json_schema", "regex")},
}  # fmt: skip
"""Maps setting names of the compatible API to those of the native API."""


def generate_body(body: Message, is_sampling: bool, alternatives: int) -> Body:
    """Return the body of a `/generate` request that is equivalent to a compatible one."""
    prompt = body["prompt"]
    settings = {_NATIVE_NAMES[name]: value for name, value in body.items() if name in _NATIVE_NAMES}
    if not is_sampling:
        settings.pop("sampling_seed", None)
    own = {"text" if isinstance(prompt, str) else "input_ids": prompt, "sampling_params": settings, "stream": True}
    if alternatives:
        own |= {"return_logprob": True, "top_logprobs_num": alternatives, "logprob_start_len": -1,
                "return_text_in_logprobs": True}  # fmt: skip
    return own


@dataclass(slots=True)
class _ReceivedText:
    """The part of one text that has been received."""

    text: str = ""
    tokens: int = 0


@dataclass(slots=True)
class GenerateResponse:
    """Reads the messages of one run. Each contains everything from the beginning or only what is new: this is a server
    setting, and in some versions differs between lists and texts.
    """

    machine: str
    _known: dict[int, _ReceivedText] = field(default_factory=dict)

    @staticmethod
    def is_response(message: Mapping[str, object]) -> bool:
        """Return whether a message comes from `/generate`."""
        return isinstance(message.get("meta_info"), dict)

    def delta(self, message: Message) -> TextDelta:
        """Return what a message adds. Raises EngineCutError if the engine aborted the text."""
        meta, number = message["meta_info"], as_count(message.get("index"))
        known = self._known.setdefault(number, _ReceivedText())
        ids, logs, tops = self._new_items(message, known)
        found = message.get("text")
        added = _added_text(
            found if isinstance(found, str) else "", known.text, "".join(_piece_of(one) for one in logs)
        )
        tokens = (
            tuple(map(_native_token, logs)) if "output_token_logprobs" in meta else _tokens_without_logprobs(ids, added)
        )
        if tops and len(tops) == len(tokens):
            tokens = tuple(StreamedToken(one.piece, one.id, one.log_probability, _native_alternatives(top))
                           for one, top in zip(tokens, tops, strict=True))  # fmt: skip
        known.text += added
        known.tokens += len(tokens)
        return TextDelta(number, added, tokens, *self._finish_reason(meta.get("finish_reason")))

    def _new_items(self, message: Message, known: _ReceivedText) -> list[Sequence[Any]]:
        """Return the new ids, log-probabilities and alternatives."""
        meta = message["meta_info"]
        lists = (message.get("output_ids"), meta.get("output_token_logprobs"), meta.get("output_top_logprobs"))
        new = as_count(meta.get("completion_tokens")) - known.tokens
        return [_new_part(one if isinstance(one, list) else [], known.tokens, new) for one in lists]

    def _finish_reason(self, reason: object) -> tuple[str, str]:
        if not isinstance(reason, dict):
            return (reason, "") if isinstance(reason, str) else ("", "")
        if reason.get("type") == "abort" and reason.get("message"):
            raise http_stream.failed_error(str(reason["message"]), self.machine)
        stop = reason.get("matched")
        return str(reason.get("type") or "stop"), stop if isinstance(stop, str) else ""


def _new_part(items: Sequence[object], known: int, new: int) -> Sequence[object]:
    """Return the new items of a list that contains either only the `new` ones or all, including the `known` ones."""
    is_piece = new > 0 and (len(items) == new or len(items) < known)
    return items if is_piece else items[known:]


def _added_text(text: str, known: str, pieces: str) -> str:
    """Return what a text adds to the `known` one: all of it if it consists of exactly the new tokens."""
    if not known or (text == pieces and text != known + pieces):
        return text
    if text.startswith(known):
        return text[len(known) :]
    return "" if known.startswith(text) else text  # a stop string may be removed again at the end


def _piece_of(entry: object) -> str:
    return entry[2] if isinstance(entry, list) and len(entry) > 2 and isinstance(entry[2], str) else ""


def _native_logprob(entry: Sequence[object]) -> TokenLogprob:
    number = entry[1] if isinstance(entry[1], int) and entry[1] >= 0 else None
    return TokenLogprob(repair_text(_piece_of(entry)) or f"⟨{entry[1]}⟩", parse_log_probability(entry[0]), number)


def _native_token(entry: Sequence[object]) -> StreamedToken:
    one = _native_logprob(entry)
    return StreamedToken(one.piece, one.id, one.log_probability)


def _native_alternatives(entries: Any) -> tuple[TokenLogprob, ...]:
    return tuple(
        sorted(
            (_native_logprob(one) for one in (entries or ())[:MAX_ALTERNATIVES]), key=lambda one: -one.log_probability
        )
    )


def _tokens_without_logprobs(ids: Sequence[Any], text: str) -> tuple[StreamedToken, ...]:
    """Return tokens for which only ids are reported."""
    if not all(isinstance(one, int) and one >= 0 for one in ids):
        return ()
    return tuple(
        StreamedToken(text if text and place == len(ids) else f"⟨{one}⟩", one) for place, one in enumerate(ids, 1)
    )


def read_usage(usage: ResponseUsage, message: Message) -> None:
    """Read the statistics, which are separate for each text, with the names of newer and older versions."""
    meta = message.get("meta_info")
    if not isinstance(meta, dict):
        return
    usage.add_text(as_count(message.get("index")), meta)
    usage.prompt = valid_count(meta.get("prompt_tokens"), usage.prompt)
    usage.cached = valid_count(meta.get("cached_tokens"), usage.cached)
    usage.written = usage.total("completion_tokens")
    usage.passes = usage.total("spec_verify_ct")
    usage.drafted = usage.total("spec_num_proposed_drafts", "spec_draft_token_num")
    usage.accepted = usage.total("spec_num_correct_drafts", "spec_accept_token_num")
    rate = meta.get("spec_accept_rate")
    if isinstance(rate, (int, float)) and 0 <= rate <= 1 and usage.text_count == 1:
        usage.rate = float(rate)


def _choice_regex(choices: Sequence[str]) -> str:
    """Return a regular expression that matches one of several texts."""
    return f"({'|'.join(map(re.escape, choices))})"


ENGINE = EngineKind(
    "sglang",
    "SGLang",
    {**OPENAI_SETTINGS, **SEVERAL_TEXTS, **SERVER_SETTINGS, **GRAMMAR},
    USAGE,
    no_top_k=-1,
    alternatives=20,
    chat_alternatives=20,
    takes_ids=True,
    scores=True,
    after_temperature=True,
    owned_by="sglang",
    grammars={
        "json_schema": lambda content: {"json_schema": json.dumps(schema_of(content))},
        "regex": lambda content: {"regex": content},
        "choice": lambda content: {"regex": _choice_regex(content)},
    },
    native=NativeEndpoint("/generate", generate_body, GenerateResponse),
    read_usage=read_usage,
    order=20,
)
