"""The script for `import decodescope`: what is set, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core import caches
from core.code.effective_settings import EffectiveSettings, changed_options, differing
from core.code.python_literals import Constructed, call, literal, mapping, paragraph
from core.code.script_model import ScriptModel
from core.defaults import DEFAULTS
from core.request import Request


def lines(request: Request, plain: EffectiveSettings, source: ScriptModel, drafts: Sequence[ScriptModel]) -> list[str]:
    """The script, line by line. `drafts` are the draft models."""
    settings = _settings(request, plain, source)
    classes = sorted({type(value).__name__ for value in settings.values() if is_constructed(value)})
    prompt = prompt_of(request)
    before, prompt = ([], prompt) if "\n" not in prompt else ([f"prompt = {prompt}"], "prompt")
    return [
        *([f"from transformers import {', '.join(classes)}", ""] if classes else []),
        "import decodescope",
        "",
        f"model = {_load(source)}",
        *before,
        f"request = {call('decodescope.Request', prompt, **_fields(request, plain, settings, drafts))}",
        "result = decodescope.run(model, request)",
        *_printing(plain, request),
    ]


def prompt_of(request: Request) -> str:
    """The prompt's source: a text, the messages of a chat, or token ids."""
    prompt = request.prompt
    if isinstance(prompt, str):
        return paragraph(prompt)
    turns = [item for item in prompt if isinstance(item, Mapping)]
    if turns:
        return "[\n" + "".join(f"    {literal(turn)},\n" for turn in turns) + "]"
    return literal([item for item in prompt if not isinstance(item, Mapping)])


def is_constructed(value: object) -> bool:
    """Whether it is written as a call of its class in transformers."""
    return isinstance(value, Constructed)


def _settings(request: Request, plain: EffectiveSettings, source: ScriptModel) -> dict[str, object]:
    """Those that a run by this name, or by these flags, would not have by itself."""
    if request.strategy is None:
        return differing(plain.settings, source.own, DEFAULTS)
    free = {name: value for name, value in plain.settings.items() if name not in plain.strategy.flags}
    return differing(free, plain.strategy.defaults, source.own, DEFAULTS)


def _fields(
    request: Request, plain: EffectiveSettings, settings: dict[str, object], drafts: Sequence[ScriptModel]
) -> dict[str, str]:
    backend = caches.registry[request.cache]
    found: dict[str, object] = {
        "options": changed_options(plain.strategy.parameters, request.options),
        "cache": "" if backend.name == "dynamic" else backend.name,
        "cache_options": changed_options(backend.parameters, request.cache_options),
        "top_n": None if request.top_n == 10 else request.top_n,
        "seed": request.seed if plain.samples else None,
        "beginning": request.beginning if isinstance(request.beginning, str) else list(request.beginning),
        "negative_prompt": request.negative_prompt,
        "media": [str(path) for path in request.media],
        "memory_fallback": None if request.memory_fallback else False,
        "steady": request.steady or None,
    }
    fields = {"config": mapping(settings)} if settings else {}
    if request.strategy is not None:
        fields["strategy"] = literal(plain.strategy.name)
    fields |= {name: literal(value) for name, value in found.items() if value not in (None, "", {}, [])}
    if drafts:
        fields["drafters"] = f"[{', '.join(_load(draft) for draft in drafts)}]"
    return fields


def _load(source: ScriptModel) -> str:
    set_to = {"device": source.device, "dtype": source.dtype, "weights": source.weights or "auto"}
    more: dict[str, int | str] = {name: value for name, value in set_to.items() if value != "auto"}
    if source.memory_limit is not None:
        more["memory_limit"] = source.memory_limit
    return call("decodescope.load", literal(source.name), **{name: literal(value) for name, value in more.items()})


def _printing(plain: EffectiveSettings, request: Request) -> list[str]:
    if (plain.settings.get("num_return_sequences") or 1) > 1:
        return ["for text in result.texts:", "    print(text)"]
    return ["print(result.texts[0])"]
