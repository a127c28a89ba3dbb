"""The script that uses transformers alone: its tokenizer, its model and its `generate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from decodescope.core.code.decodescope_script import is_config_object, prompt_source
from decodescope.core.code.python_literals import call_source, literal, quoted
from decodescope.core.code.script_model import (
    EffectiveSettings,
    ScriptModel,
    differing_settings,
    has_different_tokenizer,
)
from decodescope.core.common.hf_generation import DEFAULTS
from decodescope.core.models.config_validation import FLOATS
from decodescope.core.parameter import Settings
from decodescope.core.request import Request
from decodescope.resources.language import mark, tr

_DRAFTER_SETTINGS = ("num_assistant_tokens", "num_assistant_tokens_schedule", "assistant_confidence_threshold")
"""Settings that `generate` reads only from the draft model's configuration."""
_CUSTOM_FUNCTION = "custom_generate"
"""Argument that makes `generate` call a function of the user."""
_PT = '"pt"'
_SEED_COMMENT = mark("With this seed, generate samples the same tokens as the run, given the same versions and device.")


def script_lines(
    request: Request,
    effective_settings: EffectiveSettings,
    source: ScriptModel,
    drafts: Sequence[ScriptModel],
    extra_settings: Settings,
) -> list[str]:
    """Return the lines of the script. `extra_settings` are those of the strategy and the cache."""
    wanted = {**_generate_settings(effective_settings), **extra_settings}
    if source.gguf_file:  # transformers does not read the file's own settings
        own = {name: value for name, value in source.generation_config.items() if name in DEFAULTS}
        settings = differing_settings({**own, **wanted}, DEFAULTS)
    else:
        settings = differing_settings(wanted, source.generation_config, DEFAULTS)
    config: dict[str, object] = {}
    if _CUSTOM_FUNCTION in extra_settings:  # which reads its settings from there
        config = {name: settings.pop(name) for name in list(settings) if name not in extra_settings}
    drafting = {name: settings.pop(name) for name in _DRAFTER_SETTINGS if name in settings}
    prompt = _PromptSource(request, effective_settings, source)
    foreign = [draft for draft in drafts if has_different_tokenizer(source, draft)]
    prompt.needs_tokenizer |= bool(foreign)
    return [
        *(["import base64", "import zlib", ""] if effective_settings.samples and request.generator_state else []),
        *_import_lines(source, settings, prompt, bool(config)),
        *_peft_imports(source),
        "",
        *([f"tokenizer = {_load_tokenizer(source)}"] if prompt.needs_tokenizer else []),
        f"model = {_load(source)}",
        *_adapter_lines(source),
        *(f"draft = {_load(draft)}" for draft in drafts),
        *(f"draft_tokenizer = {_load_tokenizer(draft)}" for draft in foreign),
        *_drafter_setting_lines("draft" if drafts else "model", drafting),
        "",
        *prompt.lines,
        *_generate_lines(request, effective_settings, settings, config, bool(drafts), bool(foreign), source.device),
        *prompt.print_lines,
    ]


def _generate_settings(effective_settings: EffectiveSettings) -> dict[str, object]:
    """Return the settings for `generate`; token healing is a separate step of the script."""
    left_out = {"token_healing", "cache_implementation", "prefill_chunk_size"}
    return {name: value for name, value in effective_settings.settings.items() if name not in left_out}


class _PromptSource:
    """The prompt of the script and the lines that print the result."""

    def __init__(self, request: Request, plain: EffectiveSettings, source: ScriptModel) -> None:
        self._request, self._source = request, source
        self._heals = bool(plain.settings.get("token_healing")) and not source.is_encoder_decoder
        self._several = (plain.settings.get("num_return_sequences") or 1) > 1
        is_text = isinstance(request.prompt, str)
        self.is_empty = len(request.prompt) == 0
        self.is_ids = not is_text and not self.is_empty and not isinstance(request.prompt[0], Mapping)
        self.needs_tokenizer = (
            self._heals
            or not self.is_ids
            or "stop_strings" in plain.settings
            or isinstance(request.negative_prompt, str)
        )

    @property
    def lines(self) -> list[str]:
        """Return the lines that make `inputs` on the model's device, with the end of the prompt healed if that is
        set.
        """
        if not self._heals:
            return self._inputs
        if self.is_empty:
            return self._inputs
        return [
            *self._inputs,
            'ids = model.heal_tokens(inputs["input_ids"], tokenizer)',
            'inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}',
        ]

    @property
    def _inputs(self) -> list[str]:
        place = "" if self._source.device in ("auto", "cpu") else ".to(model.device)"
        if self.is_empty:  # generate starts with the model's own first token
            return ["inputs = {}"]
        if self.is_ids:
            ids = f"torch.tensor([{prompt_source(self._request)}]){place}"
            return [f"ids = {ids}", 'inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}']
        if isinstance(self._request.prompt, str):
            prompt = prompt_source(self._request)
            before, prompt = ([], prompt) if "\n" not in prompt else ([f"prompt = {prompt}"], "prompt")
            return [*before, f"inputs = {call_source('tokenizer', prompt, return_tensors=_PT)}{place}"]
        made = call_source(
            "tokenizer.apply_chat_template", "messages", add_generation_prompt="True", return_dict="True",
            return_tensors=_PT,
        )  # fmt: skip
        return [f"messages = {prompt_source(self._request)}", f"inputs = {made}{place}"]

    @property
    def print_lines(self) -> list[str]:
        """Return the lines that print the new text, or the new tokens for a prompt of ids."""
        start = "" if self._source.is_encoder_decoder or self.is_empty else 'inputs["input_ids"].shape[1] :'
        if self._several:
            new = f"row[{start}]" if start else "row"
        else:
            new = f"outputs[0, {start}]" if start else "outputs[0]"
        shown = f"{new}.tolist()" if self.is_ids else f"tokenizer.decode({new}, skip_special_tokens=True)"
        return ["for row in outputs:", f"    print({shown})"] if self._several else [f"print({shown})"]


def _import_lines(
    source: ScriptModel, settings: dict[str, object], prompt: _PromptSource, has_config: bool
) -> list[str]:
    head = "AutoModelForSeq2SeqLM" if source.is_encoder_decoder else "AutoModelForCausalLM"
    classes = {type(value).__name__ for value in settings.values() if is_config_object(value)}
    classes |= {"GenerationConfig"} if has_config else set()
    names = sorted({head, *classes, *(["AutoTokenizer"] if prompt.needs_tokenizer else [])})
    return ["import torch", f"from transformers import {', '.join(names)}"]


def _load(source: ScriptModel) -> str:
    """Return the line that loads the model as in the run: float32 on a CPU unless set otherwise."""
    head = "AutoModelForSeq2SeqLM" if source.is_encoder_decoder else "AutoModelForCausalLM"
    dtype = "torch.float32" if source.dtype not in FLOATS else f"torch.{source.dtype}"
    made = call_source(
        f"{head}.from_pretrained", quoted(source.hub_id_or_folder), **_gguf_argument(source), dtype=dtype
    )
    return made if source.device in ("auto", "cpu") else f"{made}.to({quoted(source.device)})"


def _load_tokenizer(source: ScriptModel) -> str:
    return call_source("AutoTokenizer.from_pretrained", quoted(source.hub_id_or_folder), **_gguf_argument(source))


def _gguf_argument(source: ScriptModel) -> dict[str, str]:
    return {"gguf_file": quoted(source.gguf_file)} if source.gguf_file else {}


def _peft_imports(source: ScriptModel) -> list[str]:
    if not source.adapters:
        return []
    is_scaled = any(one.strength != 1 for one in source.adapters)
    names = ["from peft import PeftModel", *(["from peft.tuners.lora import LoraLayer"] if is_scaled else [])]
    return names


def _adapter_lines(source: ScriptModel) -> list[str]:
    """Return the lines that load the adapters, make all of them active and set their strengths."""
    if not source.adapters:
        return []
    names = [f"adapter{number}" for number, _ in enumerate(source.adapters, 1)]
    first, *others = zip(names, source.adapters, strict=True)
    loaded = call_source("PeftModel.from_pretrained", "model", quoted(first[1].path), adapter_name=quoted(first[0]))
    lines = [f"model = {loaded}"]
    for name, one in others:
        lines.append(call_source("model.load_adapter", quoted(one.path), adapter_name=quoted(name)))
    if others:
        lines.append(f"model.base_model.set_adapter({literal(names)})")
    scaled = {name: one.strength for name, one in zip(names, source.adapters, strict=True) if one.strength != 1}
    if scaled:
        lines += [
            f"strengths = {literal(scaled)}",
            "for layer in model.modules():",
            "    if isinstance(layer, LoraLayer):",
            "        for name in strengths.keys() & layer.scaling.keys():",
            "            layer.scaling[name] *= strengths[name]",
        ]
    return [*lines, "model.eval()"]


def _drafter_setting_lines(name: str, settings: dict[str, object]) -> list[str]:
    return [f"{name}.generation_config.{setting} = {literal(value)}" for setting, value in settings.items()]


def _generate_lines(
    request: Request,
    effective_settings: EffectiveSettings,
    settings: dict[str, object],
    config: dict[str, object],
    drafts: bool,
    uses_other_names: bool,
    device: str,
) -> list[str]:
    named = {name: literal(value) for name, value in settings.items()}
    if config:
        fields = ", ".join(f"{name}={literal(value)}" for name, value in config.items())
        named = {"generation_config": f"GenerationConfig({fields})", **named}
    if drafts:
        named["assistant_model"] = "draft"
    if "stop_strings" in settings or uses_other_names:
        named["tokenizer"] = "tokenizer"
    if uses_other_names:
        named["assistant_tokenizer"] = "draft_tokenizer"
    before = []
    if request.negative_prompt is not None:
        before, named["negative_prompt_ids"] = [_negative_prompt_line(request.negative_prompt)], "negative"
    if effective_settings.samples:
        before += [
            *([] if effective_settings.strategy.speculates else [f"# {tr(_SEED_COMMENT)}"]),
            *_seed_lines(request, device),
        ]
    return [*before, f"outputs = {call_source('model.generate', '**inputs', **named)}"]


def _seed_lines(request: Request, device: str) -> list[str]:
    """Return the lines that set the random generator."""
    if not request.generator_state:
        return [f"torch.manual_seed({request.seed})"]
    place = "torch.cuda" if device.startswith("cuda") else "torch"
    return [
        f"state = zlib.decompress(base64.b64decode({quoted(request.generator_state)}))",
        f"{place}.set_rng_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))",
    ]


def _negative_prompt_line(prompt: str | Sequence[int]) -> str:
    if isinstance(prompt, str):
        return f'negative = tokenizer({quoted(prompt)}, return_tensors="pt").input_ids.to(model.device)'
    return f"negative = torch.tensor([{literal(list(prompt))}]).to(model.device)"
