"""The fields of a call: each is read once, dropped because it does not change the text, or refused by name.

Fields of OpenAI's API: https://platform.openai.com/docs/api-reference, and the types of its client `openai` 3.57.
Those of llama.cpp's server: tools/server/README.md and server-schema.cpp of https://github.com/ggml-org/llama.cpp; of
vLLM: its classes ChatCompletionRequest and CompletionRequest. Further names are those of text-generation-webui and
KoboldCpp, as Open WebUI, SillyTavern and LibreChat send them to any server with this API.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from decodescope.core.grammar.grammar_setting import GrammarKind, grammar_format_problem
from decodescope.resources.language import join_names, mark, tr

Json = dict[str, Any]
WHOLE_TEXT = 100_000
"""Range of a penalty in tokens from which it counts as that of the whole text."""


class ApiError(Exception):
    """A call that cannot be answered, with the fields of OpenAI's error object."""

    def __init__(
        self, message: str, status: int = 400, *, param: str | None = None, code: str | None = None, kind: str = ""
    ) -> None:
        super().__init__(message)
        self.message, self.status, self.param, self.code = message, status, param, code
        self.kind = kind or ("server_error" if status >= 500 else "invalid_request_error")

    @property
    def body(self) -> Json:
        """The JSON object."""
        return {"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}}


class FieldRule(NamedTuple):
    """A field without a counterpart: refused with a reason, unless its value has no effect."""

    reason: str
    """Marked for translation."""
    neutral: tuple[object, ...] = ()
    """Values without effect."""


_TOOLS, _TEXT = mark("the model gets no tools."), mark("answers are text.")
_SAMPLER, _SEARCH = mark("the program does not have it."), mark("only sampling and greedy decoding are served.")
_LENGTH, _END = mark("the model decides how much it writes."), mark("the model decides when its answer ends.")
_ORDER, _NEW = mark("the order of the samplers is the setting stages."), mark("only new tokens are returned.")
_TOKENS, _WHOLE = mark("use logprobs."), mark("the prompt is read as a whole.")
_TEMPLATE, _GRAMMAR = mark("the model's own chat template is used."), mark("a grammar applies from the first token on.")
REFUSED: Mapping[str, FieldRule] = {
    "tools": FieldRule(_TOOLS, ([],)),
    "functions": FieldRule(_TOOLS, ([],)),
    "tool_choice": FieldRule(_TOOLS, ("none", "auto")),
    "function_call": FieldRule(_TOOLS, ("none", "auto")),
    "parse_tool_calls": FieldRule(_TOOLS, (False,)),
    "documents": FieldRule(_TOOLS, ([],)),
    "modalities": FieldRule(_TEXT, (["text"],)),
    "audio": FieldRule(_TEXT),
    "moderation": FieldRule(mark("texts are not moderated.")),
    "verbosity": FieldRule(_LENGTH, ("medium",)),
    "web_search_options": FieldRule(mark("the model has no access to the network.")),
    "echo": FieldRule(_NEW, (False,)),
    "prompt_logprobs": FieldRule(_NEW, (0, False)),
    "return_prompt_text": FieldRule(_NEW, (False,)),
    "suffix": FieldRule(mark("the text is continued at its end only."), ("",)),
    "store": FieldRule(mark("the window keeps a history of its own."), (False,)),
    "sampler_order": FieldRule(_ORDER, ([],)),
    "sampler_priority": FieldRule(_ORDER, ([], "")),
    "temperature_last": FieldRule(_ORDER, (False,)),
    **{name: FieldRule(_SAMPLER, (1,)) for name in ("tfs", "tfs_z", "smoothing_curve", "rep_pen_slope")},
    **{name: FieldRule(_SAMPLER, (0,)) for name in ("top_a", "smoothing_factor", "skew", "rep_pen_decay", "n_indent")},
    "adaptive_target": FieldRule(_SAMPLER, (-1,)),
    "repetition_detection": FieldRule(_SAMPLER),
    "watermarking": FieldRule(mark("use watermark_bias or synthid_length."), (False,)),
    "min_keep": FieldRule(mark("filters keep at least one token."), (0, 1)),
    "dry_sequence_breakers": FieldRule(mark("the breakers are line break, colon, quote and asterisk."), ([], "")),
    "use_beam_search": FieldRule(_SEARCH, (False,)),
    "num_beams": FieldRule(_SEARCH, (1,)),
    "penalty_alpha": FieldRule(_SEARCH, (0,)),
    "length_penalty": FieldRule(_SEARCH, (1,)),
    "early_stopping": FieldRule(_SEARCH, (False,)),
    "ignore_eos": FieldRule(_END, (False,)),
    "ban_eos_token": FieldRule(_END, (False,)),
    "stop_token_ids": FieldRule(mark("use stop, with texts."), ([],)),
    "include_stop_str_in_output": FieldRule(mark("an answer ends before the stop text."), (False,)),
    "t_max_predict_ms": FieldRule(mark("use max_time, in seconds."), (0, -1)),
    "bad_words": FieldRule(mark("use banned_phrases."), ([],)),
    "allowed_token_ids": FieldRule(mark("use a grammar, or suppress_tokens."), ([],)),
    "negative_prompt": FieldRule(mark("only one prompt is read."), ("",)),
    "prompt_embeds": FieldRule(mark("a prompt is text or token ids.")),
    "truncate_prompt_tokens": FieldRule(_WHOLE),
    "add_bos_token": FieldRule(_WHOLE, (True,)),
    "lora": FieldRule(mark("choose adapters in the program."), ([],)),
    "post_sampling_probs": FieldRule(mark("log-probabilities are those of the model alone."), (False,)),
    **{name: FieldRule(_TOKENS, (False,))
       for name in ("return_token_ids", "return_tokens_as_token_ids", "return_token_offsets")},
    "logprob_token_ids": FieldRule(_TOKENS, ([],)),
    "response_fields": FieldRule(mark("all fields of OpenAI's API are returned."), ([],)),
    "skip_special_tokens": FieldRule(mark("answers have no special tokens."), (True,)),
    "preserved_tokens": FieldRule(mark("answers have no special tokens."), ([],)),
    "grammar_lazy": FieldRule(_GRAMMAR, (False,)),
    "grammar_triggers": FieldRule(_GRAMMAR, ([],)),
    "continue_final_message": FieldRule(mark("an answer is written from its beginning."), (False,)),
    "add_generation_prompt": FieldRule(mark("an answer is written from its beginning."), (True,)),
    "chat_template": FieldRule(_TEMPLATE),
    "chat_format": FieldRule(_TEMPLATE, (0,)),
    "chat_parser": FieldRule(_TEMPLATE, ("",)),
    "generation_prompt": FieldRule(_TEMPLATE, ("",)),
    "reasoning_budget_start_tag": FieldRule(mark("use thinking_marks."), ("",)),
    "reasoning_budget_end_tag": FieldRule(mark("use thinking_marks."), ("",)),
    "reasoning_budget_end_tags": FieldRule(mark("use thinking_marks."), ([],)),
    "vllm_xargs": FieldRule(_SAMPLER, ({},)),
}  # fmt: skip
CHAT_ONLY: Mapping[str, FieldRule] = {
    "chat_template_kwargs": FieldRule(mark("a text has no chat template."), ({},)),
    "reasoning_effort": FieldRule(mark("a text has no chat template."), ("none",)),
    "reasoning_format": FieldRule(mark("a text is returned as it is written."), ("none", "auto")),
    "include_reasoning": FieldRule(mark("a text is returned as it is written."), (True,)),
}  # fmt: skip
"""Fields of a chat, which a text completion refuses."""
IGNORED = frozenset({
    "user", "metadata", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
    "prompt_cache_options", "parallel_tool_calls", "prediction",
    "cache_prompt", "id_slot", "slot_id", "n_keep", "num_keep", "n_discard", "n_cache_reuse", "backend_sampling",
    "timings_per_token", "return_progress", "return_tokens", "sse_ping_interval", "verbose", "reasoning_control",
    "adaptive_decay", "grammar_type", "truncation_side", "spaces_between_special_tokens",
    "truncation_length", "num_ctx", "max_context_length", "keep_alive", "session_id", "chat_id", "request_id",
    "priority", "cache_salt", "kv_transfer_params", "ec_transfer_params", "stream_interval",
    "routed_experts_prompt_start", "media_io_kwargs", "mm_processor_kwargs", "mm_payload", "return_mm_kwargs",
})  # fmt: skip
"""Fields that do not change the text: who calls, what is stored or cached, when parts are sent, and what is reported. A
prediction and a cache change the speed only; the context is the model's own; some have an effect only with another
field, which is refused.
"""
ALIASES: Mapping[str, str] = {
    other: name
    for name, others in {
        "repetition_penalty": ("repeat_penalty", "rep_pen"),
        "frequency_penalty": ("freq_pen",),
        "presence_penalty": ("presence_pen",),
        "typical_p": ("typical", "typ_p"),
        "top_n_sigma": ("nsigma",),
        "min_new_tokens": ("min_tokens",),
        "thinking_budget": ("thinking_budget_tokens", "reasoning_budget_tokens", "thinking_token_budget"),
        "thinking_message": ("reasoning_budget_message",),
        "repeat_last_n": ("rep_pen_range", "repetition_penalty_range"),
        "mirostat": ("mirostat_mode",),
        "dynatemp_low": ("min_temp",),
        "dynatemp_high": ("max_temp",),
        "dynamic_temperature": ("dynatemp",),
        "max_tokens": ("max_new_tokens", "n_predict", "num_predict"),
        "n": ("n_cmpl",),
        "stop": ("stop_strings", "stopping_strings", "stop_sequence", "stop_sequences"),
        "seed": ("sampler_seed",),
        "json_schema": ("guided_json",),
        "grammar": ("guided_grammar",),
    }.items()
    for other in others
}
"""Name in another program → name here."""
_OFF: Mapping[str, tuple[float, ...]] = {
    "top_k": (-1,), "top_n_sigma": (-1, 0), "typical_p": (0,), "max_tokens": (-1,), "min_new_tokens": (0,),
    "dry_range": (-1,), "thinking_budget": (-1,), "top_h": (0,), "seed": (-1,),
}  # fmt: skip
"""Values of other programs that mean “off” or “no limit”."""
_OWN = frozenset({
    "max_new_tokens", "stop_strings", "num_return_sequences", "seed_each", "sequence_bias", "grammar", "temperature",
    "top_p", "top_k",
})  # fmt: skip
"""Settings that fields of another name or meaning have."""
_GRAMMARS: Mapping[str, GrammarKind] = {
    "grammar": "gbnf", "json_schema": "json_schema", "guided_regex": "regex", "guided_choice": "choice",
}  # fmt: skip


class CallFields:
    """Reads the fields of a body, each once; what is left at the end is refused by name."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self._left: Json = {}
        named: dict[str, str] = {}
        for field, value in body.items():
            name = ALIASES.get(field, field)
            if value is None or any(is_equal(value, off) for off in (*_OFF.get(name, ()), *_OFF.get(field, ()))):
                continue
            if name in self._left and not is_equal(self._left[name], value):
                raise ApiError(
                    tr("{name} and {other} have different values. Give one of them.").format(
                        name=field, other=named[name]
                    ),
                    param=field,
                )
            self._left[name], named[name] = value, field

    def take(self, name: str) -> Any:
        """Return the value of a field, None without one."""
        return self._left.pop(name, None)

    def has(self, name: str) -> bool:
        """Return whether a field is there and not read yet."""
        return name in self._left

    def drop(self, *names: str) -> None:
        """Remove fields without effect."""
        for name in names:
            self.take(name)

    def give(self, **values: object) -> None:
        """Set fields to what others mean."""
        self._left |= values

    def number(self, name: str, default: float, low: float, high: float, *, keep: bool = False) -> float:
        """Return a number within a range; `keep`: the field stays unread."""
        value = self._left.get(name) if keep else self.take(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise ApiError(
                tr("{name} is {value}. It must be a number from {low} to {high}.").format(
                    name=name, value=shown(value), low=f"{low:g}", high=f"{high:g}"
                ),
                param=name,
            )
        return float(value)

    def integer(self, name: str, default: int, low: int, high: int) -> int:
        """Return an integer within a range."""
        value = self.take(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ApiError(
                tr("{name} is {value}. It must be an integer from {low:,} to {high:,}.").format(
                    name=name, value=shown(value), low=low, high=high
                ),
                param=name,
            )
        return value

    def flag(self, name: str) -> bool:
        """Return whether a field is true."""
        value = self.take(name)
        if value is not None and not isinstance(value, bool):
            raise ApiError(
                tr("{name} is {value}. It must be true or false.").format(name=name, value=shown(value)), param=name
            )
        return bool(value)

    def refuse(self, name: str, rule: FieldRule) -> None:
        """Refuse a field, unless its value has no effect."""
        value = self.take(name)
        if value is not None and not any(is_equal(value, one) for one in rule.neutral):
            raise unsupported(name, tr(rule.reason), rule.neutral)

    def end(self, is_chat: bool) -> None:
        """Refuse the first field that was not read."""
        for name, rule in {**REFUSED, **({} if is_chat else CHAT_ONLY)}.items():
            self.refuse(name, rule)
        self.refuse("add_special_tokens", FieldRule(_WHOLE, (not is_chat,)))  # a chat template writes its own
        self.drop(*IGNORED)
        if self._left:
            name = next(iter(self._left))
            text = tr("Unknown parameter: {name}. Remove it.").format(name=name)
            raise ApiError(text, param=name, code="unknown_parameter")


def unsupported(name: str, reason: str, neutral: Sequence[object] = ()) -> ApiError:
    """Return the error for a field without a counterpart; `neutral` are its values without effect."""
    cause = tr("{name} is not supported: {reason}").format(name=name, reason=reason)
    remedy = tr("Remove it or set it to {value}.").format(value=shown(neutral[0])) if neutral else tr("Remove it.")
    return ApiError(f"{cause} {remedy}", param=name, code="unsupported_parameter")


def is_equal(value: object, other: object) -> bool:
    """Return whether values are equal; 0 is not false."""
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def shown(value: object) -> str:
    """Return a value as JSON, shortened."""
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= 60 else f"{text[:59]}…"


def take_settings(fields: CallFields, samples: bool) -> Json:
    """Return the program's settings among the fields, by name, with those of other programs translated.

    Settings of sampling are dropped unless the call samples. Raises ApiError and ParameterError.
    """
    from decodescope.core import strategies  # the list of models does not need it
    from decodescope.core.parameter import check

    parameters = {one.name: one for one in strategies.registry["sampling"].parameters}
    used = strategies.registry["sampling" if samples else "greedy"].parameter_names
    found: Json = {}
    for name, parameter in parameters.items():
        if name in _OWN or (value := fields.take(name)) is None:
            continue
        if parameter.kind == "float" and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        check(parameter, value)
        if name in used:
            found[name] = value
    _check_penalty_range(fields, found)
    return found


def _check_penalty_range(fields: CallFields, found: Json) -> None:
    """Refuse penalties for the last tokens only; without a penalty, their range has no effect."""
    tokens = fields.integer("repeat_last_n", -1, -1, 2**31)
    off = {"repetition_penalty": 1.0, "frequency_penalty": 0.0, "presence_penalty": 0.0}
    if tokens == 0:
        found |= {name: value for name, value in off.items() if name in found or name == "repetition_penalty"}
    elif 0 < tokens < WHOLE_TEXT and any(found.get(name, value) != value for name, value in off.items()):
        raise unsupported("repeat_last_n", tr("penalties cover the whole text."), (-1,))


def translate_samplers(fields: CallFields) -> None:
    """Replace the fields by which other programs switch samplers on and off, and order them; before the temperature is
    read.
    """
    if _is_mirostat_on(fields):  # llama.cpp has no other sampler then but the temperature
        _sampler_names(fields.take("samplers") or [])
        fields.drop(*({one for sampler in SAMPLERS.values() for one in sampler.fields} - {"temperature"}))
    _translate_order(fields)
    _translate_moving_temperature(fields)
    _translate_dry(fields)
    if fields.number("xtc_threshold", 0.0, 0.0, 1.0, keep=True) > _MAX_XTC_THRESHOLD:
        fields.drop("xtc_probability", "xtc_threshold")


_MAX_XTC_THRESHOLD = 0.5
"""Above it no two tokens can have that much probability, and llama.cpp switches XTC off."""
_MIN_TEMPERATURE = 1e-6
"""A moving temperature here begins above 0; the text is the same."""
_DRY_FIELDS = ("dry_multiplier", "dry_base", "dry_allowed_length", "dry_range")
_BREAKERS = ["\n", '"', "*", ":"]


class Sampler(NamedTuple):
    """A sampler of llama.cpp: its letter, its stages here, its fields, and further names."""

    letter: str
    stages: tuple[str, ...]
    fields: tuple[str, ...]
    aliases: tuple[str, ...] = ()


SAMPLERS: Mapping[str, Sampler] = {
    "penalties": Sampler(
        "e", ("repetition_penalty", "frequency_penalty", "presence_penalty"),
        ("repetition_penalty", "frequency_penalty", "presence_penalty", "repeat_last_n"),
    ),
    "dry": Sampler("d", ("dry_multiplier",), (*_DRY_FIELDS, "dry_penalty_last_n", "dry_sequence_breakers")),
    "top_n_sigma": Sampler("s", ("top_n_sigma",), ("top_n_sigma",), ("top-n-sigma",)),
    "top_k": Sampler("k", ("top_k",), ("top_k",), ("top-k",)),
    "typ_p": Sampler("y", ("typical_p",), ("typical_p",), ("typ-p", "typ", "typical_p", "typical-p", "typical")),
    "top_p": Sampler("p", ("top_p",), ("top_p",), ("top-p", "nucleus")),
    "min_p": Sampler("m", ("min_p",), ("min_p",), ("min-p",)),
    "xtc": Sampler("x", ("xtc_probability",), ("xtc_probability", "xtc_threshold")),
    "temperature": Sampler(
        "t", ("temperature", "dynatemp_high"),
        ("temperature", "dynatemp_range", "dynatemp_exponent", "dynatemp_low", "dynatemp_high", "dynamic_temperature"),
        ("temp",),
    ),
    "adaptive_p": Sampler("a", (), ("adaptive_target",), ("adaptive-p",)),
}  # fmt: skip
"""The samplers in llama.cpp's default order, by name. Names and letters: `common_sampler_types_from_names` and
`common_sampler_type_to_chr` of its common/sampling.cpp.
"""


def _translate_order(fields: CallFields) -> None:
    """Apply llama.cpp's order of samplers: those that it leaves out are off, and grammars and bans act before them."""
    value = fields.take("samplers")
    if value is None:
        return
    if fields.has("stages"):
        raise ApiError(
            tr("{name} and {other} have different values. Give one of them.").format(name="samplers", other="stages"),
            param="samplers",
        )
    names = _sampler_names(value)
    for name in SAMPLERS.keys() - set(names):
        fields.drop(*SAMPLERS[name].fields)
    if stages := _stages_in_order([stage for name in names for stage in SAMPLERS[name].stages]):
        fields.give(stages=stages)


def _sampler_names(value: object) -> list[str]:
    """Return the names of the samplers in a list of names, or in a string of letters. Raises ApiError."""
    known = {other: name for name, one in SAMPLERS.items() for other in (name, *one.aliases)}
    letters = {one.letter: name for name, one in SAMPLERS.items()}
    given = value if isinstance(value, list) else [letters.get(one, one) for one in value] if isinstance(
        value, str
    ) else [value]  # fmt: skip
    names = [known.get(one) if isinstance(one, str) else None for one in given]
    if None in names:
        other = given[names.index(None)]
        raise ApiError(
            tr("samplers has {name}, which is not supported. Supported: {names}.").format(
                name=shown(other), names=join_names(SAMPLERS)
            ),
            param="samplers", code="unsupported_parameter",
        )  # fmt: skip
    found = [name for name in names if name is not None]
    if twice := next((name for name in found if found.count(name) > 1), None):
        raise ApiError(
            tr("samplers lists {name} twice, and each stage acts once. List it once.").format(name=twice),
            param="samplers", code="unsupported_parameter",
        )  # fmt: skip
    return found


def _stages_in_order(names: Sequence[str]) -> list[str]:
    """Return the setting `stages` with which these stages act in this order, after all bans; [] for the usual order."""
    from decodescope import core

    usual = core.stage_order()
    if list(names) == [name for name in usual if name in names]:
        return []
    own = {stage for one in SAMPLERS.values() for stage in one.stages}
    first, last = min(map(usual.index, names)), usual.index("dry_multiplier")
    return [*(name for name in usual[first:last] if name not in own), *names]


def _translate_dry(fields: CallFields) -> None:
    """Read the range of DRY as other programs write it, 0 for off and -1 for the whole text, and its breakers."""
    tokens = fields.integer("dry_penalty_last_n", -1, -1, 2**31)
    if tokens == 0:
        fields.drop(*_DRY_FIELDS)
    elif 0 < tokens < WHOLE_TEXT:
        fields.give(dry_range=tokens)
    breakers = fields.take("dry_sequence_breakers")
    if isinstance(breakers, str):  # SillyTavern and KoboldCpp send the list as text
        with suppress(ValueError, RecursionError):
            breakers = json.loads(breakers)
    if breakers is not None and not (isinstance(breakers, list) and sorted(map(str, breakers)) == sorted(_BREAKERS)):
        if fields.has("dry_multiplier"):
            fields.give(dry_sequence_breakers=breakers)


def _translate_moving_temperature(fields: CallFields) -> None:
    """Drop the ends of a moving temperature that is off, and turn llama.cpp's range into its ends."""
    is_on = fields.take("dynamic_temperature")
    reach = fields.number("dynatemp_range", 0.0, 0.0, 100.0)
    if is_on is False:
        fields.drop("dynatemp_low", "dynatemp_high", "dynatemp_exponent")
    elif reach:
        middle = fields.number("temperature", 1.0, 0.0, 100.0)
        ends = (
            {"dynatemp_low": max(_MIN_TEMPERATURE, middle - reach), "dynatemp_high": middle + reach} if middle else {}
        )
        fields.give(temperature=1.0 if middle else 0.0, **ends)


def _is_mirostat_on(fields: CallFields) -> bool:
    """Read the version of mirostat in llama.cpp's field: 0 is off, 2 is on, and there is no other one here."""
    version = fields.take("mirostat")
    if version is None:
        return False
    if version not in (0, 2):
        raise unsupported("mirostat", tr("there is mirostat 2 only."), (0, 2))
    if version == 0:
        fields.drop("mirostat_tau", "mirostat_eta")
        return False
    if not fields.has("mirostat_tau"):
        fields.give(mirostat_tau=5.0)
    return True


def take_grammar(fields: CallFields) -> Json | None:
    """Return the grammar that the answer must follow, as the program's setting: of a response_format, or of the fields
    of llama.cpp and vLLM. None without one.
    """
    found = [*_response_format(fields.take("response_format")), *_other_grammars(fields)]
    if len(found) > 1:
        names = join_names([name for name, _ in found])
        raise ApiError(tr("The answer has several forms: {names}. Give one of them.").format(names=names),
                       param=found[1][0])  # fmt: skip
    for name, grammar in found:
        if problem := grammar_format_problem(grammar):
            raise ApiError(f"{name}: {problem}", param=name)
    return found[0][1] if found else None


def _response_format(value: object) -> Iterable[tuple[str, Json]]:
    name = "response_format"
    kind = value.get("type") if isinstance(value, Mapping) else value
    if value is None or kind == "text":
        return
    holder = value if isinstance(value, Mapping) else {}
    inner = holder.get("json_schema") if kind == "json_schema" else None
    schema = inner.get("schema") if isinstance(inner, Mapping) else holder.get("schema")  # llama.cpp: without a wrapper
    if isinstance(value, Mapping) and kind == "json_object":
        yield name, {"json_schema": value.get("schema", {"type": "object"})}  # llama.cpp takes a schema here too
    elif kind == "json_schema" and isinstance(schema, Mapping):
        yield name, {"json_schema": dict(schema)}
    else:
        raise ApiError(
            tr("response_format must be of the type text, json_object, or json_schema with a schema."), param=name
        )


_STRUCTURED: Mapping[str, GrammarKind] = {
    "json": "json_schema", "grammar": "gbnf", "regex": "regex", "choice": "choice",
}  # fmt: skip
"""Forms in vLLM's `structured_outputs`."""


def _structured_outputs(value: object) -> Iterable[tuple[str, Json]]:
    name = "structured_outputs"
    if not isinstance(value, Mapping):
        raise ApiError(tr("{name} is not an object.").format(name=name), param=name)
    for kind, content in value.items():
        if content in (None, False):
            continue
        if kind == "json_object":
            yield name, {"json_schema": {"type": "object"}}
        elif kind in _STRUCTURED:
            if kind == "json" and isinstance(content, str):
                with suppress(ValueError, RecursionError):
                    content = json.loads(content)
            yield name, {_STRUCTURED[kind]: content}
        else:
            raise unsupported(
                f"{name}.{kind}",
                tr("the forms are {names}.").format(names=join_names((*_STRUCTURED, "json_object"))),
            )


def _other_grammars(fields: CallFields) -> Iterable[tuple[str, Json]]:
    if fields.has("structured_outputs"):
        yield from _structured_outputs(fields.take("structured_outputs"))
    for name, kind in _GRAMMARS.items():
        value = fields.take(name)
        if value not in (None, "", {}, []):
            yield name, dict(value) if name == "grammar" and isinstance(value, Mapping) else {kind: value}
