"""The script for `import decodescope`, with only the settings that are needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from decodescope.core import caches
from decodescope.core.code.python_literals import ConfigObject, call_source, dict_literal, literal, multiline_literal
from decodescope.core.code.script_model import EffectiveSettings, ScriptModel, changed_options, differing_settings
from decodescope.core.common.hf_generation import DEFAULTS
from decodescope.core.models.config_validation import QUANTIZED_FORMATS
from decodescope.core.plugins.installation import used_plugins
from decodescope.core.request import Request


def script_lines(
    request: Request, effective_settings: EffectiveSettings, source: ScriptModel, drafts: Sequence[ScriptModel]
) -> list[str]:
    """Return the lines of the script. `drafts` are the draft models."""
    settings = _needed_settings(request, effective_settings, source)
    classes = sorted({type(value).__name__ for value in settings.values() if is_config_object(value)})
    prompt = prompt_source(request)
    arguments = _request_arguments(request, effective_settings, settings, drafts, source)
    before, prompt = ([], prompt) if "\n" not in prompt else ([f"prompt = {prompt}"], "prompt")
    return [
        *([f"from transformers import {', '.join(classes)}", ""] if classes else []),
        "import decodescope",
        "",
        *_plugin_lines(request),
        f"model = {_load_call(source)}",
        *before,
        f"request = {call_source('decodescope.Request', prompt, **arguments)}",
        "result = decodescope.run(model, request)",
        *_print_lines(effective_settings),
    ]


def _plugin_lines(request: Request) -> list[str]:
    """Return the lines that add the plug-in files and folders of the run."""
    paths = [str(plugin.folder or plugin.path) for plugin in used_plugins(request) if plugin.path is not None]
    return [f"decodescope.plugins.use({', '.join(map(literal, paths))})"] if paths else []


def prompt_source(request: Request) -> str:
    """Return the source code of the prompt: a text, chat messages, or token ids."""
    prompt = request.prompt
    if isinstance(prompt, str):
        return multiline_literal(prompt)
    turns = [item for item in prompt if isinstance(item, Mapping)]
    if turns:
        return "[\n" + "".join(f"    {literal(turn)},\n" for turn in turns) + "]"
    return literal([item for item in prompt if not isinstance(item, Mapping)])


def is_config_object(value: object) -> bool:
    """Return whether the value is written as a constructor call of a transformers class."""
    return isinstance(value, ConfigObject)


def _needed_settings(request: Request, effective_settings: EffectiveSettings, source: ScriptModel) -> dict[str, object]:
    """Return the settings that differ from those a run with this strategy, or these flags, has by default."""
    if request.strategy is None:
        return differing_settings(effective_settings.settings, source.generation_config, DEFAULTS)
    free = {
        name: value
        for name, value in effective_settings.settings.items()
        if name not in effective_settings.strategy.flags
    }
    return differing_settings(free, effective_settings.strategy.defaults, source.generation_config, DEFAULTS)


def _request_arguments(
    request: Request, effective_settings: EffectiveSettings, settings: dict[str, object],
    drafts: Sequence[ScriptModel], source: ScriptModel,
) -> dict[str, str]:  # fmt: skip
    backend = caches.registry[request.cache]
    found: dict[str, object] = {
        "options": changed_options(effective_settings.strategy.parameters, request.options),
        "cache": "" if backend.name == "dynamic" else backend.name,
        "cache_options": changed_options(backend.parameters, request.cache_options),
        "top_n": None if request.top_n == 10 else request.top_n,
        "seed": request.seed if effective_settings.samples and not request.generator_state else None,
        "generator_state": request.generator_state if effective_settings.samples else None,
        "beginning": request.beginning if isinstance(request.beginning, str) else list(request.beginning),
        "negative_prompt": request.negative_prompt,
        "media": [str(path) for path in request.media],
        "memory_fallback": None if request.memory_fallback else False,
        "steady": request.steady or None,
        "adapters": [(one.path, one.strength) for one in source.adapters],
    }
    fields = {"config": dict_literal(settings)} if settings else {}
    if request.strategy is not None:
        fields["strategy"] = literal(effective_settings.strategy.name)
    fields |= {name: literal(value) for name, value in found.items() if value not in (None, "", {}, [])}
    if drafts:
        fields["drafters"] = f"[{', '.join(_load_call(draft) for draft in drafts)}]"
    return fields


def _load_call(source: ScriptModel) -> str:
    set_to = {
        "device": source.device,
        "dtype": source.dtype,
        "weights": source.weights if source.weights in QUANTIZED_FORMATS else "auto",
    }
    more: dict[str, int | str] = {name: value for name, value in set_to.items() if value != "auto"}
    if source.memory_limit is not None:
        more["memory_limit"] = source.memory_limit
    return call_source(
        "decodescope.load", literal(source.name), **{name: literal(value) for name, value in more.items()}
    )


def _print_lines(effective_settings: EffectiveSettings) -> list[str]:
    if (effective_settings.settings.get("num_return_sequences") or 1) > 1:
        return ["for text in result.texts:", "    print(text)"]
    return ["print(result.texts[0])"]
