"""The API of OpenAI for one model: from the body of a call to requests, and from events to the body of the answer.

Source: https://platform.openai.com/docs/api-reference (chat, completions, models), as of 2026; for thinking
(`reasoning_content`, `reasoning_format`) DeepSeek's API, and tools/server/README.md of llama.cpp.
"""

from __future__ import annotations

import math
import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import cast

from decodescope.core.errors import (
    DecodescopeError,
    ParameterError,
    PromptError,
    PromptTooLongError,
    TokenizerMissingError,
    UnforeseenError,
)
from decodescope.core.events import Ending, Event, Finished, RunStarted, SequenceFinished, TokenChosen
from decodescope.core.parameter import Settings
from decodescope.core.request import Request
from decodescope.core.server.call_fields import (
    ApiError,
    CallFields,
    Json,
    shown,
    take_grammar,
    take_settings,
    translate_samplers,
    unsupported,
)
from decodescope.core.thinking import (
    KNOWN_MARKS,
    ThinkingMark,
    ThinkingStream,
    is_thinking_open,
    marks_of,
    split_answer,
    token_part,
)
from decodescope.resources.language import join_names, tr

MAX_TOKENS = 4096
"""Default length limit of a chat answer; OpenAI has none, but a small model may never end its text."""
MAX_COMPLETION_TOKENS = 16
"""Default length limit of a text completion, as in OpenAI's API."""
MAX_TEMPERATURE = 2.0
"""As in OpenAI's API."""
MAX_CHOICES = 16
MAX_PROMPTS = 16
MAX_STOP_STRINGS = 16
MAX_TOP_LOGPROBS = 20
MAX_BIASES = 1024
CONTEXT_EXCEEDED = "context_length_exceeded"
"""Code of the error for a prompt that is too long."""
_MIN_LOGPROB = -9999.0
"""Written for a probability of 0, for which JSON has no logarithm."""
_MIN_ALTERNATIVES = 10
"""Alternatives recorded per token, so that the run can be inspected in the window."""

_FINISH_REASONS: Mapping[Ending, str] = {
    "eos": "stop", "stop_string": "stop", "grammar": "stop", "length": "length", "context": "length", "time": "length",
}  # fmt: skip
_API_NAMES = {
    "max_new_tokens": "max_tokens", "stop_strings": "stop", "sequence_bias": "logit_bias", "grammar": "response_format",
    "num_return_sequences": "n", "prompt": "prompt",
}  # fmt: skip
"""Names in the API of the program's settings."""


def to_api_error(error: BaseException, prompt: str = "prompt") -> ApiError:
    """Translate an exception of a run: the caller can correct a setting or a prompt, but nothing else.

    `prompt` is the name of the prompt in the call.
    """
    if isinstance(error, ApiError):
        if error.param == "prompt":
            error.param = prompt
        return error
    if isinstance(error, PromptTooLongError):
        return ApiError(str(error), param=prompt, code=CONTEXT_EXCEEDED)
    if isinstance(error, PromptError | TokenizerMissingError):
        return ApiError(str(error), param=prompt)
    if isinstance(error, ParameterError):
        return ApiError(str(error), param=_api_name(error.parameter))
    if isinstance(error, DecodescopeError):
        return ApiError(str(error), 500 if isinstance(error, UnforeseenError) else 400)
    return ApiError(tr("Unexpected error: {name}.").format(name=type(error).__name__), 500)


def _api_name(parameter: str) -> str | None:
    """Return the name in the API of a setting, or of a variable of the chat template."""
    kind, _, variable = parameter.partition(".")
    if kind == "template_settings":
        return variable if variable == _EFFORT else f"{_TEMPLATE_FIELD}.{variable}"
    return _API_NAMES.get(parameter, parameter) or None


_EFFORT, _TEMPLATE_FIELD = "reasoning_effort", "chat_template_kwargs"


@dataclass(frozen=True, slots=True)
class ServedRequest(Request):
    """A request of a client; a runner encodes its prompt with the settings of the chat template."""

    template_settings: Settings = field(default_factory=dict)
    """Variables of the chat template, such as `enable_thinking`."""

    def with_ids(self, ids: Sequence[int]) -> Request:
        """Return the request to run, with the prompt encoded."""
        held = {one.name: getattr(self, one.name) for one in fields(Request)}
        return Request(**{**held, "prompt": ids})


@dataclass(frozen=True, slots=True)
class ServedModel:
    """The model that is served."""

    name: str
    context: int | None = None
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def body(self) -> Json:
        """The entry of the list of models."""
        return {"id": self.name, "object": "model", "created": self.created, "owned_by": "decodescope"}


Prompt = str | tuple[int, ...] | tuple[Mapping[str, str], ...]


@dataclass(frozen=True, slots=True)
class CompletionCall:
    """A call of `/v1/chat/completions` or `/v1/completions`, checked."""

    model: ServedModel
    is_chat: bool
    prompts: tuple[Prompt, ...]
    settings: Mapping[str, object]
    """The program's settings by name."""
    seed: int
    choices: int
    """Number of texts per prompt (`n`)."""
    stop: tuple[str, ...]
    top_logprobs: int | None
    """Number of alternatives per token; None without log-probabilities."""
    is_streamed: bool
    includes_usage: bool
    template_settings: Settings = field(default_factory=dict)
    """Variables of the chat template."""
    splits_thinking: bool = False
    """Whether thinking is no part of the content."""
    returns_thinking: bool = True
    """Whether thinking that is no part of the content is returned."""

    @property
    def samples(self) -> bool:
        """Whether the tokens are drawn at random."""
        return bool(self.settings["do_sample"])

    def requests(self) -> list[ServedRequest]:
        """Return the requests to run, one for each prompt.

        The texts of one prompt are sampled side by side, each with its own seed. Greedy decoding gives `n` equal texts,
        so it runs once.
        """
        several = {"num_return_sequences": self.choices, "seed_each": True} if self.choices > 1 and self.samples else {}
        return [
            ServedRequest(
                prompt,
                {**self.settings, **several},
                strategy="sampling" if self.samples else "greedy",
                seed=self.seed,
                top_n=max(self.top_logprobs or 0, _MIN_ALTERNATIVES),
                template_settings=self.template_settings,
            )
            for prompt in self.prompts
        ]


def parse_call(body: object, model: ServedModel, is_chat: bool) -> CompletionCall:
    """Return the call that a body describes. Raises ApiError with the name of the field that is wrong."""
    if not isinstance(body, Mapping):
        raise ApiError(tr("The body is not a JSON object."))
    fields = CallFields(body)
    _check_model(fields.take("model"), model)
    prompts = (_messages(fields.take("messages")),) if is_chat else _prompts(fields.take("prompt"))
    settings = _sampling(fields)
    settings["max_new_tokens"] = _length(fields, model, is_chat)
    choices = fields.integer("n", 1, 1, MAX_CHOICES)
    seed = fields.integer("seed", secrets.randbelow(2**31), -(2**63), 2**63 - 1) % 2**31
    if stop := _stop(fields.take("stop")):
        settings["stop_strings"] = list(stop)
    biases, banned = _biases(fields.take("logit_bias"))
    if biases:
        settings["sequence_bias"] = biases
    if banned:
        settings["suppress_tokens"] = [*cast("list[int]", settings.get("suppress_tokens") or []), *banned]
    if grammar := take_grammar(fields):
        settings["grammar"] = grammar
    _translate_probabilities(fields, is_chat)
    if is_chat:
        wanted = fields.flag("logprobs")
        count = fields.integer("top_logprobs", 0, 0, MAX_TOP_LOGPROBS)
        if count and not wanted:
            raise ApiError(tr("top_logprobs needs logprobs: set it to true."), param="top_logprobs")
        top_logprobs = count if wanted else None
    else:
        count = fields.integer("logprobs", -1, 0, MAX_TOP_LOGPROBS)
        top_logprobs = None if count < 0 else count
        best_of = fields.integer("best_of", choices, 1, MAX_CHOICES)
        if best_of != choices:
            raise unsupported("best_of", tr("only the n texts that are returned are written."), (choices,))
    is_streamed = fields.flag("stream")
    template_settings, splits, returns = _thinking(fields) if is_chat else ({}, False, True)
    options = fields.take("stream_options")
    if options is not None and (not is_streamed or not isinstance(options, Mapping)):
        raise ApiError(tr("stream_options is an object, and needs stream: true."), param="stream_options")
    fields.end(is_chat)
    return CompletionCall(
        model, is_chat, prompts, settings, seed, choices, stop, top_logprobs, is_streamed,
        includes_usage=bool(options and options.get("include_usage")), template_settings=template_settings,
        splits_thinking=splits, returns_thinking=returns,
    )  # fmt: skip


def _translate_probabilities(fields: CallFields, is_chat: bool) -> None:
    """Read llama.cpp's number of alternatives as OpenAI's."""
    count = fields.integer("n_probs", 0, 0, MAX_TOP_LOGPROBS)
    if count and not is_chat and not fields.has("logprobs"):
        fields.give(logprobs=count)
    elif count and is_chat and not fields.has("top_logprobs"):
        fields.give(logprobs=True, top_logprobs=count)


_FORMATS = ("auto", "deepseek", "none")


def _thinking(fields: CallFields) -> tuple[Settings, bool, bool]:
    """Return the variables of the chat template, whether thinking is split off, and whether it is returned."""
    given = fields.take(_TEMPLATE_FIELD)
    if given is not None and not isinstance(given, Mapping):
        raise ApiError(tr("{name} is not an object.").format(name=_TEMPLATE_FIELD), param=_TEMPLATE_FIELD)
    variables = {str(name): value for name, value in (given or {}).items() if value is not None}
    effort = fields.take(_EFFORT)
    if effort is not None:
        if not isinstance(effort, str) or variables.get(_EFFORT, effort) != effort:
            raise ApiError(
                tr("{name} is {value}. It must be a text, and be given once.").format(
                    name=_EFFORT, value=shown(effort)
                ),
                param=_EFFORT,
            )
        variables[_EFFORT] = effort
    name = "reasoning_format"
    form = fields.take(name)
    if form is not None and form not in _FORMATS:
        raise ApiError(
            tr("{name} is {value}. Supported: {names}.").format(
                name=name, value=shown(form), names=join_names(_FORMATS)
            ),
            param=name, code="unsupported_parameter",
        )  # fmt: skip
    returns = fields.flag("include_reasoning") if fields.has("include_reasoning") else True
    return variables, form != "none", returns


def _check_model(name: object, model: ServedModel) -> None:
    if name is None:
        raise ApiError(tr("The model is missing. This server has “{name}”.").format(name=model.name), param="model")
    if name != model.name:
        raise ApiError(
            tr("There is no model {other} here. This server has “{name}”.").format(
                other=shown(name), name=model.name
            ),
            404, param="model", code="model_not_found",
        )  # fmt: skip


def _messages(value: object) -> tuple[Mapping[str, str], ...]:
    if not isinstance(value, list) or not value:
        raise ApiError(tr("messages must be a list of at least one message."), param="messages")
    return tuple(_message(one, f"messages[{index}]") for index, one in enumerate(value))


_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


def _message(value: object, place: str) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        raise ApiError(tr("{place} is not an object with role and content.").format(place=place), param=place)
    role = value.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        raise ApiError(
            tr("{place}.role is {value}. Supported: {names}.").format(
                place=place, value=shown(role), names=join_names(_ROLES)
            ),
            param=f"{place}.role",
        )
    for name in ("tool_calls", "function_call", "audio"):
        if value.get(name):
            raise unsupported(f"{place}.{name}", tr("messages are text."))
    given = (value.get(name) for name in ("reasoning_content", "reasoning")) if role == "assistant" else ()
    thinking: str = next((one for one in given if isinstance(one, str) and one), "")
    content = value.get("content")
    text = "" if content is None and thinking else _content(content, f"{place}.content")  # it was cut while it thought
    message = {"role": _ROLES[role], "content": text}
    return {**message, "reasoning_content": thinking} if thinking else message


def _content(value: object, place: str) -> str:
    """Return the text of a message: a string, or the parts of type text."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value:
        texts = []
        for index, part in enumerate(value):
            kind = part.get("type") if isinstance(part, Mapping) else None
            if kind != "text" or not isinstance(part.get("text"), str):
                raise unsupported(f"{place}[{index}]", tr("messages are text."))
            texts.append(part["text"])
        return "".join(texts)
    raise ApiError(tr("{place} is not text.").format(place=place), param=place)


def _prompts(value: object) -> tuple[Prompt, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and value:
        if all(_is_id(one) for one in value):
            return (tuple(value),)
        if len(value) > MAX_PROMPTS:
            raise ApiError(tr("At most {count} prompts are allowed.").format(count=MAX_PROMPTS), param="prompt")
        if all(isinstance(one, str) or (isinstance(one, list) and one and all(map(_is_id, one))) for one in value):
            return tuple(one if isinstance(one, str) else tuple(one) for one in value)
    raise ApiError(tr("prompt must be text, token ids, or a list of texts or of lists of ids."), param="prompt")


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _sampling(fields: CallFields) -> dict[str, object]:
    """Return the settings of sampling. Without them, OpenAI's defaults apply, not those of the model: temperature 1 and
    no filter.
    """
    translate_samplers(fields)
    is_greedy = fields.take("do_sample") is False
    temperature = fields.number("temperature", 1.0, 0.0, MAX_TEMPERATURE)
    top_p = fields.number("top_p", 1.0, 0.0, 1.0)
    top_k = fields.integer("top_k", 0, 0, 2**31)
    samples = temperature > 0 and top_p > 0 and not is_greedy
    try:
        others = {**(_NEUTRAL if samples else _NEUTRAL_GREEDY), **take_settings(fields, samples)}
    except ParameterError as error:
        raise to_api_error(error) from error
    if not samples:
        return {"do_sample": False, **others}
    return {"do_sample": True, "temperature": temperature, "top_p": top_p, "top_k": top_k, **others}


_NEUTRAL_GREEDY = {"repetition_penalty": 1.0}
_NEUTRAL = {**_NEUTRAL_GREEDY, "min_p": 0.0}
"""Values that switch off what models set by default in their files."""


def _length(fields: CallFields, model: ServedModel, is_chat: bool) -> int:
    largest = model.context or 2**31
    usual = min(MAX_TOKENS, largest) if is_chat else MAX_COMPLETION_TOKENS
    limit = fields.integer("max_tokens", usual, 1, 2**31)
    if is_chat:
        limit = fields.integer("max_completion_tokens", limit, 1, 2**31)
    return min(limit, largest)


def _stop(value: object) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(texts, list) or len(texts) > MAX_STOP_STRINGS:
        raise ApiError(
            tr("stop must be a text or a list of at most {count} texts.").format(count=MAX_STOP_STRINGS), param="stop"
        )
    if not all(isinstance(text, str) and text for text in texts):
        raise ApiError(tr("stop contains something that is not a text, or an empty one."), param="stop")
    return tuple(texts)


def _biases(value: object) -> tuple[list[list[object]], list[int]]:
    """Return the biases as the program's setting, [[token ids], bias], and the ids that llama.cpp's bias false bans.

    `value` is an object of ids and biases, or a list of pairs, as llama.cpp takes it too.
    """
    pairs = list(value.items()) if isinstance(value, Mapping) else [] if value is None else value
    if not isinstance(pairs, list) or len(pairs) > MAX_BIASES or not all(map(_is_pair, pairs)):
        raise ApiError(
            tr("logit_bias must be an object of at most {count:,} token ids with their biases.").format(
                count=MAX_BIASES
            ),
            param="logit_bias",
        )
    found: list[list[object]] = []
    banned: list[int] = []
    for token, bias in pairs:
        is_number = isinstance(bias, int | float) and not isinstance(bias, bool) and -100 <= bias <= 100
        if not re.fullmatch(r"\d{1,9}", str(token)) or not (is_number or bias is False):
            raise ApiError(
                tr("logit_bias has {token}: {value}. Give token ids, each with a number from -100 to 100.").format(
                    token=shown(token), value=shown(bias)
                ),
                param="logit_bias",
            )
        if bias is False:
            banned.append(int(token))
        elif bias:
            found.append([[int(token)], float(bias)])
    return found, banned


def _is_pair(value: object) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2


@dataclass(slots=True)
class _Choice:
    """One text of the answer while it is written.

    Text that could be the beginning of a stop string is held back, because a stop string is not part of the answer.
    """

    index: int
    stop: tuple[str, ...]
    splits_thinking: bool = False
    shows_marks: bool = False
    """Whether the marks of thinking are part of the text where they are special tokens."""
    text: str = ""
    content: str = ""
    """The answer so far, without thinking that is split off."""
    thinking: str = ""
    tokens: list[tuple[int, TokenChosen]] = field(default_factory=list)
    """Tokens that are not sent yet, each with the length of the text before it."""
    details: list[tuple[int, TokenChosen]] = field(default_factory=list)
    """Tokens that were sent."""
    count: int = 0
    thinking_count: int = 0
    """Number of tokens of thinking, marks included."""
    ending: Ending | None = None
    is_begun: bool = False
    """Whether a chunk was sent."""
    _marks: tuple[ThinkingMark, ...] = KNOWN_MARKS
    _is_open: bool = False
    """Whether the prompt opened the thinking."""
    _stream: ThinkingStream = field(init=False)
    _parts: list[tuple[str, str, bool]] = field(default_factory=list)
    """What each token writes, what it adds to the text, and whether it is special."""

    def __post_init__(self) -> None:
        """Prepare for a run that does not say how it started."""
        self._stream = ThinkingStream(self._marks if self.splits_thinking else (), is_open=False)

    def begin(self, started: RunStarted) -> None:
        """Take over the marks of the model's thinking, and whether the prompt opened it."""
        self._marks = marks_of(started)
        self._is_open = is_thinking_open(started.prompt, self._marks)
        if self.splits_thinking:
            self._stream = ThinkingStream(self._marks, self._is_open)

    def add(self, event: TokenChosen) -> None:
        self.count += 1
        part, text = token_part(event), event.text
        if self.shows_marks and event.special and any(part in mark for marks in self._marks for mark in marks):
            text = part
        self._parts.append((part, text, event.special))
        self._stream.add(part, text, event.special)
        if not event.special:
            self.tokens.append((len(self.text), event))
        self.text += text

    def finish(self, event: SequenceFinished) -> list[tuple[bool, str]]:
        """End the text and return its last parts, each with whether it is thinking."""
        self.ending = event.reason
        if event.tail:
            self._parts.append((event.tail, event.tail, False))
            self._stream.add(event.tail, event.tail, is_special=False)
            self.text += event.tail
        cut = min((place for place in (self.text.find(one) for one in self.stop) if place >= 0), default=-1)
        removed = len(self.text) - cut if event.reason == "stop_string" and cut >= 0 else 0
        if removed:
            self.text = self.text[:cut]
            self.tokens = [one for one in self.tokens if one[0] < cut]
            self._cut_parts(removed)
        parts, visible, special = list(zip(*self._parts, strict=True)) or ((), (), ())
        found = split_answer(
            parts, visible, self._marks, self._is_open, {index for index, flag in enumerate(special) if flag}
        )
        last = self._stream.take(removed, has_ended=True)
        self.thinking_count = sum(stop - start for start, stop in found.ranges)
        if not self.splits_thinking:
            self.content = self.text
            return last
        sent = self.content + "".join(text for is_thinking, text in last if not is_thinking)
        self.content, self.thinking = found.body, found.thinking
        # Only the whole answer shows that a mark inside a sentence was the end of thinking.
        return last if sent or not found.body else [*last, (False, found.body)]

    def _cut_parts(self, count: int) -> None:
        """Remove the last `count` shown characters."""
        while count and self._parts:
            part, text, is_special = self._parts.pop()
            if len(text) > count:
                self._parts.append((part[: len(part) - count], text[: len(text) - count], is_special))
            count -= min(len(text), count)

    def take_parts(self) -> list[tuple[bool, str]]:
        """Return the parts of the text that can be sent now, each with whether it is thinking."""
        parts = self._stream.take(self._held_back())
        self.content += "".join(text for is_thinking, text in parts if not is_thinking)
        self.thinking += "".join(text for is_thinking, text in parts if is_thinking)
        return parts

    def take_tokens(self) -> list[tuple[int, TokenChosen]]:
        """Return the tokens whose text can be sent now."""
        ready = len(self.text) - (0 if self.ending is not None else self._held_back())
        done = [one for one in self.tokens if self.ending is not None or one[0] + len(one[1].text) <= ready]
        self.tokens = self.tokens[len(done) :]
        self.details += done
        return done

    def _held_back(self) -> int:
        """Return the length of the longest end of the text that a stop string begins with."""
        lengths = [
            length
            for one in self.stop
            for length in range(min(len(one), len(self.text)), 0, -1)
            if self.text.endswith(one[:length])
        ]
        return max(lengths, default=0)

    @property
    def finish_reason(self) -> str | None:
        return None if self.ending is None else _FINISH_REASONS.get(self.ending, "stop")


class ApiResponse:
    """The answer to a call: feed it the events of each request, in order."""

    def __init__(self, call: CompletionCall) -> None:
        self.call = call
        self.id = f"{'chatcmpl' if call.is_chat else 'cmpl'}-{secrets.token_hex(12)}"
        self.created = int(time.time())
        self._prompt_tokens = 0
        self._choices: list[_Choice] = []
        self._first = 0
        """Index of the first choice of the current request."""

    def begin(self) -> None:
        """Start the choices of the next request."""
        self._first = len(self._choices)
        own = self.call.choices if self.call.samples else 1
        for index in range(own):
            splits = self.call.splits_thinking
            shows_marks = self.call.is_chat and not splits
            self._choices.append(_Choice(self._first + index, self.call.stop, splits, shows_marks))

    def feed(self, event: Event) -> Iterator[Json]:
        """Yield the chunks of a streamed answer that follow from an event."""
        if isinstance(event, RunStarted):
            self._prompt_tokens += len(event.prompt)
            for choice in self._choices[self._first :]:
                choice.begin(event)
        elif isinstance(event, TokenChosen):
            choice = self._choices[self._first + event.sequence]
            choice.add(event)
            yield from self._chunks(choice, choice.take_parts(), choice.take_tokens())
        elif isinstance(event, SequenceFinished):
            choice = self._choices[self._first + event.sequence]
            yield from self._chunks(choice, choice.finish(event), choice.take_tokens())
        elif isinstance(event, Finished):
            if event.reason == "stopped":
                raise ApiError(tr("The run was stopped in the program."), 503, code="stopped")
            yield from self._copies()

    def _copies(self) -> Iterator[Json]:
        """Yield the further choices of greedy decoding, which are equal."""
        if self.call.samples:
            return
        first = self._choices[self._first]
        for _ in range(self.call.choices - 1):
            choice = replace(first, index=len(self._choices), is_begun=False)
            self._choices.append(choice)
            yield from self._chunks(choice, [(True, first.thinking), (False, first.content)], first.details)

    def _chunks(
        self, choice: _Choice, parts: Sequence[tuple[bool, str]], details: Sequence[tuple[int, TokenChosen]]
    ) -> Iterator[Json]:
        if not self.call.is_streamed:
            return
        if self.call.is_chat and not choice.is_begun:
            choice.is_begun = True
            yield self._chunk(choice, {"delta": {"role": "assistant", "content": ""}})
        shown = [one for one in parts if one[1] and (self.call.returns_thinking or not one[0])]
        for is_thinking, text in shown or ([(False, "")] if details and self.call.top_logprobs is not None else []):
            name = "reasoning_content" if is_thinking else "content"
            yield self._chunk(choice, {"delta": {name: text}} if self.call.is_chat else {"text": text}, details)
            details = ()
        if choice.ending is not None:
            yield self._chunk(choice, {"delta": {}} if self.call.is_chat else {"text": ""}, finish=choice.finish_reason)

    def _chunk(
        self, choice: _Choice, content: Json, details: Sequence[tuple[int, TokenChosen]] = (), finish: str | None = None
    ) -> Json:
        logprobs = self._logprobs(details) if details else None
        one = {"index": choice.index, **content, "logprobs": logprobs, "finish_reason": finish}
        kind = "chat.completion.chunk" if self.call.is_chat else "text_completion"
        return {**self._head(kind), "choices": [one]} | ({"usage": None} if self.call.includes_usage else {})

    def last_chunk(self) -> Json | None:
        """Return the chunk with the usage, if the call requests it."""
        if not self.call.includes_usage:
            return None
        kind = "chat.completion.chunk" if self.call.is_chat else "text_completion"
        return {**self._head(kind), "choices": [], "usage": self._usage()}

    @property
    def body(self) -> Json:
        """The complete answer."""
        choices = []
        for choice in self._choices:
            logprobs = self._logprobs(choice.details) if self.call.top_logprobs is not None else None
            content: Json = {"message": self._message(choice)} if self.call.is_chat else {"text": choice.content}
            choices.append(
                {"index": choice.index, **content, "logprobs": logprobs, "finish_reason": choice.finish_reason}
            )
        kind = "chat.completion" if self.call.is_chat else "text_completion"
        return {**self._head(kind), "choices": choices, "usage": self._usage()}

    def _message(self, choice: _Choice) -> Json:
        message = {"role": "assistant", "content": choice.content, "refusal": None}
        shows = choice.thinking and self.call.returns_thinking
        return {**message, "reasoning_content": choice.thinking} if shows else message

    def _head(self, kind: str) -> Json:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.call.model.name}

    def _usage(self) -> Json:
        new = sum(choice.count for choice in self._choices)
        usage: Json = {
            "prompt_tokens": self._prompt_tokens, "completion_tokens": new, "total_tokens": self._prompt_tokens + new,
        }  # fmt: skip
        if self.call.is_chat:
            thinking = sum(choice.thinking_count for choice in self._choices)
            usage["completion_tokens_details"] = {"reasoning_tokens": thinking}
        return usage

    def _logprobs(self, details: Sequence[tuple[int, TokenChosen]]) -> Json | None:
        """Return the log-probabilities of tokens, by the model alone: before temperature, filters and biases."""
        count = self.call.top_logprobs
        if count is None:
            return None
        if self.call.is_chat:
            content = [
                {
                    **_token_entry(event.piece, event.raw_log_probability),
                    "top_logprobs": [
                        _token_entry(other.text, other.raw_log_probability) for other in event.alternatives[:count]
                    ],
                }
                for _, event in details
            ]
            return {"content": content, "refusal": None}
        return {
            "tokens": [event.piece for _, event in details],
            "token_logprobs": [_finite(event.raw_log_probability) for _, event in details],
            "top_logprobs": [
                {other.text: _finite(other.raw_log_probability) for other in event.alternatives[:count]}
                for _, event in details
            ]
            if count
            else None,
            "text_offset": [offset for offset, _ in details],
        }


_BYTE_PIECE = re.compile(r"(?:⟨[0-9A-F]{2}⟩)+")


def _token_entry(piece: str, log_probability: float) -> Json:
    """Return a token with its log-probability. Bytes of an incomplete character have no text: they are escaped."""
    if _BYTE_PIECE.fullmatch(piece):
        content = bytes.fromhex(piece.replace("⟨", "").replace("⟩", ""))
        piece = "bytes:" + "".join(f"\\x{byte:02x}" for byte in content)
    else:
        content = piece.encode("utf-8", "replace")
    return {"token": piece, "logprob": _finite(log_probability), "bytes": list(content)}


def _finite(value: float) -> float:
    return value if math.isfinite(value) else _MIN_LOGPROB
