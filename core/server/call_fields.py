"""The fields of a call: each is read once, dropped because it does not change the text, or refused by name.

Fields of OpenAI's API: https://platform.openai.com/docs/api-reference, and the types of its client `openai` 3.57.
Further names are those of llama.cpp's server, vLLM, text-generation-webui and KoboldCpp, as Open WebUI, SillyTavern and
LibreChat send them to any server with this API.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
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
REFUSED: Mapping[str, FieldRule] = {
    "tools": FieldRule(_TOOLS, ([],)),
    "functions": FieldRule(_TOOLS, ([],)),
    "tool_choice": FieldRule(_TOOLS, ("none", "auto")),
    "function_call": FieldRule(_TOOLS, ("none", "auto")),
    "modalities": FieldRule(_TEXT, (["text"],)),
    "audio": FieldRule(_TEXT),
    "moderation": FieldRule(mark("texts are not moderated.")),
    "reasoning_effort": FieldRule(_LENGTH, ("none",)),
    "verbosity": FieldRule(_LENGTH, ("medium",)),
    "web_search_options": FieldRule(mark("the model has no access to the network.")),
    "echo": FieldRule(mark("only new tokens are returned."), (False,)),
    "suffix": FieldRule(mark("the text is continued at its end only."), ("",)),
    "store": FieldRule(mark("the window keeps a history of its own."), (False,)),
    "samplers": FieldRule(mark("the order of the samplers is the setting stages."), ([], "")),
    "sampler_order": FieldRule(mark("the order of the samplers is the setting stages."), ([],)),
    "sampler_priority": FieldRule(mark("the order of the samplers is the setting stages."), ([], "")),
    "temperature_last": FieldRule(mark("the order of the samplers is the setting stages."), (False,)),
    **{name: FieldRule(_SAMPLER, (1,)) for name in ("tfs", "tfs_z", "smoothing_curve", "rep_pen_slope")},
    **{name: FieldRule(_SAMPLER, (0,)) for name in ("top_a", "smoothing_factor", "skew", "rep_pen_decay")},
    "dry_sequence_breakers": FieldRule(mark("the breakers are line break, colon, quote and asterisk."), ([], "")),
    "use_beam_search": FieldRule(_SEARCH, (False,)),
    "num_beams": FieldRule(_SEARCH, (1,)),
    "penalty_alpha": FieldRule(_SEARCH, (0,)),
    "length_penalty": FieldRule(_SEARCH, (1,)),
    "early_stopping": FieldRule(_SEARCH, (False,)),
    "ignore_eos": FieldRule(_END, (False,)),
    "ban_eos_token": FieldRule(_END, (False,)),
    "stop_token_ids": FieldRule(mark("use stop, with texts."), ([],)),
    "negative_prompt": FieldRule(mark("only one prompt is read."), ("",)),
    "n_probs": FieldRule(mark("use logprobs."), (0,)),
    "prompt_logprobs": FieldRule(mark("only new tokens are returned."), (0, False)),
    "continue_final_message": FieldRule(mark("an answer is written from its beginning."), (False,)),
}  # fmt: skip
IGNORED = frozenset({
    "user", "metadata", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
    "prompt_cache_options", "parallel_tool_calls", "prediction",
    "cache_prompt", "id_slot", "slot_id", "n_keep", "num_keep", "timings_per_token", "return_progress", "return_tokens",
    "reasoning_format", "include_reasoning", "skip_special_tokens", "spaces_between_special_tokens",
    "add_generation_prompt", "add_bos_token", "truncation_length", "num_ctx", "max_context_length", "keep_alive",
    "session_id", "chat_id",
})  # fmt: skip
"""Fields that do not change the text: who calls, what is stored or cached, and what is reported. A prediction and a
cache change the speed only; the context is the model's own.
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
        "thinking_budget": ("thinking_budget_tokens",),
        "dry_range": ("dry_penalty_last_n",),
        "repeat_last_n": ("rep_pen_range", "repetition_penalty_range"),
        "mirostat": ("mirostat_mode",),
        "dynatemp_low": ("min_temp",),
        "dynatemp_high": ("max_temp",),
        "dynamic_temperature": ("dynatemp",),
        "max_tokens": ("max_new_tokens", "n_predict", "num_predict"),
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
    "dry_range": (-1,), "thinking_budget": (-1,), "top_h": (0,), "sampler_seed": (-1,),
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

    def number(self, name: str, default: float, low: float, high: float) -> float:
        """Return a number within a range."""
        value = self.take(name)
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

    def end(self) -> None:
        """Refuse the first field that was not read."""
        for name, rule in REFUSED.items():
            self.refuse(name, rule)
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
    """Refuse a repetition penalty for the last tokens only; without a penalty, its range has no effect."""
    tokens = fields.integer("repeat_last_n", -1, -1, 2**31)
    if tokens == 0:
        found["repetition_penalty"] = 1.0
    elif 0 < tokens < WHOLE_TEXT and found.get("repetition_penalty", 1.0) != 1.0:
        raise unsupported("repeat_last_n", tr("repetition_penalty covers the whole text."), (-1,))


def translate_samplers(fields: CallFields) -> None:
    """Replace the fields by which other programs switch samplers on and off; before the temperature is read."""
    _translate_moving_temperature(fields)
    _translate_mirostat(fields)


def _translate_moving_temperature(fields: CallFields) -> None:
    """Drop the ends of a moving temperature that is off, and turn llama.cpp's range into its ends."""
    is_on = fields.take("dynamic_temperature")
    reach = fields.number("dynatemp_range", 0.0, 0.0, 100.0)
    if is_on is False:
        fields.drop("dynatemp_low", "dynatemp_high", "dynatemp_exponent")
    elif reach:
        middle = fields.number("temperature", 1.0, 0.0, 100.0)
        ends = {"dynatemp_low": max(0.01, middle - reach), "dynatemp_high": middle + reach} if middle else {}
        fields.give(temperature=1.0 if middle else 0.0, **ends)


def _translate_mirostat(fields: CallFields) -> None:
    """Read the version of mirostat: 0 is off, 2 is on, and there is no other one here."""
    version = fields.take("mirostat")
    if version is None:
        return
    if version not in (0, 2):
        raise unsupported("mirostat", tr("there is mirostat 2 only."), (0, 2))
    if version == 0:
        fields.drop("mirostat_tau", "mirostat_eta")
    elif not fields.has("mirostat_tau"):
        fields.give(mirostat_tau=5.0)


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
    inner = value.get("json_schema") if isinstance(value, Mapping) and kind == "json_schema" else None
    if isinstance(value, Mapping) and kind == "json_object":
        yield name, {"json_schema": value.get("schema", {"type": "object"})}  # llama.cpp takes a schema here too
    elif isinstance(inner, Mapping) and isinstance(inner.get("schema"), Mapping):
        yield name, {"json_schema": dict(inner["schema"])}
    else:
        raise ApiError(
            tr("response_format must be of the type text, json_object, or json_schema with a schema."), param=name
        )


def _other_grammars(fields: CallFields) -> Iterable[tuple[str, Json]]:
    for name, kind in _GRAMMARS.items():
        value = fields.take(name)
        if value not in (None, "", {}, []):
            yield name, dict(value) if name == "grammar" and isinstance(value, Mapping) else {kind: value}
