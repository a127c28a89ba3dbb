"""JSON form of a run's request, for history, recordings and remote engines.

Permissions of a model (pickled weights, custom code, http) are left out, so that a file from another person grants
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from decodescope.app.state.setting_values import is_count, is_integer
from decodescope.app.state.worker_messages import LoadRequest, RunRequest
from decodescope.core import AdapterChoice, adapters
from decodescope.core.errors import DecodescopeError
from decodescope.resources.language import mark, tr

JsonDict = dict[str, Any]
_Reader = Callable[[Any], Any]


class RequestFormatError(DecodescopeError):
    """Plain values that are not a valid request; `field` names the invalid field, or is empty if the whole is
    invalid.
    """

    title = mark("Cannot read the settings of this run")

    def __init__(self, cause: str, field: str = "") -> None:
        self.field = field
        super().__init__(cause, tr("The run itself can be shown. Set its parameters by hand."))


def request_to_json(request: RunRequest) -> JsonDict:
    """Return names and values that `json` can write and `request_from_json` reads back."""
    plain = {name: _plain(getattr(request, _FIELD_NAMES.get(name, name))) for name in _READERS}
    plain["load"] = {name: getattr(request.load, name) for name in _LOAD_READERS}
    return plain


def request_from_json(data: object) -> RunRequest:
    """Return the request from plain values. Unknown fields of later versions are dropped, and missing ones get their
    defaults.

    Raises RequestFormatError.
    """
    if not isinstance(data, Mapping) or "prompt" not in data:
        raise RequestFormatError(tr("The prompt is missing."))
    values = {_FIELD_NAMES.get(name, name): value for name, value in _read(_READERS, data).items()}
    return RunRequest(**values)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


def _read(readers: Mapping[str, _Reader], data: Mapping[str, Any], within: str = "") -> JsonDict:
    found = {}
    for name, read in readers.items():
        if name in data:
            try:
                found[name] = read(data[name])
            except ValueError as wrong:
                raise RequestFormatError(
                    tr("Its {part} {wrong}.").format(part=f"{within}{name.replace('_', ' ')}", wrong=wrong), name
                ) from None
    return found


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(tr("is not text"))
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(tr("is neither true nor false"))
    return value


def _count(value: Any) -> int:
    if not is_count(value):
        raise ValueError(tr("is not a non-negative integer"))
    return value


def _integer(value: Any) -> int:
    if not is_integer(value):
        raise ValueError(tr("is not an integer"))
    return value


def _settings(value: Any) -> JsonDict:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ValueError(tr("is not a mapping of settings"))
    return dict(value)


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise ValueError(tr("is not a list of names"))
    return tuple(value)


def _adapters(value: Any) -> tuple[AdapterChoice, ...] | None:
    """Read the adapters of a run, each a path and a strength."""
    if value is None:
        return None
    try:
        return adapters.check_adapters(value)
    except DecodescopeError:
        raise ValueError(tr("is not a list of adapters")) from None


def _is_turn(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(value.get(name), str) for name in ("role", "content"))


def _prompt(value: Any) -> Any:
    """Read a prompt: text, the turns of a chat, or token ids."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(map(_is_turn, value)):
        return tuple({"role": turn["role"], "content": turn["content"]} for turn in value)
    if isinstance(value, list | tuple) and all(map(is_count, value)):
        return tuple(value)
    raise ValueError(tr("is not text, a chat or token ids"))


def _beginning(value: Any) -> tuple[int | str, ...]:
    """Read a beginning: token ids and texts, in order."""
    if not isinstance(value, list | tuple) or not all(isinstance(part, str) or is_count(part) for part in value):
        raise ValueError(tr("is not a list of texts or token ids"))
    return tuple(value)


def _facts(value: Any) -> tuple[tuple[str, str], ...]:
    """Read the facts of a captured call, each a kind and a name."""
    pairs: Any = value if isinstance(value, list | tuple) else [None]
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 and _names(pair) for pair in pairs):
        raise ValueError(tr("is not a list of facts"))
    return tuple((kind, name) for kind, name in pairs)


def _load(value: Any) -> LoadRequest:
    if not isinstance(value, Mapping):
        raise ValueError(tr("is not a group of values"))
    return LoadRequest(**_read(_LOAD_READERS, value, "model's "))


_LOAD_READERS: Mapping[str, _Reader] = {
    "model": _text,
    "device": _text,
    "dtype": _text,
    "threads": _count,
    "weights": _text,
    "memory": _integer,
}
_READERS: Mapping[str, _Reader] = {
    "prompt": _prompt,
    "strategy": _text,
    "config": _settings,
    "options": _settings,
    "cache": _text,
    "cache_options": _settings,
    "top_n": _count,
    "seed": _integer,
    "negative_prompt": lambda value: value if value is None else _prompt(value),
    "memory_fallback": _flag,
    "steady": _flag,
    "load": _load,
    "draft_names": _names,
    "prefix_budget": _count,
    "when_full": _text,
    "beginning": _beginning,
    "media": _names,
    "adapters": _adapters,
    "parent": _text,
    "place": _count,
    "scored": _flag,
    "second": _text,
    "prompt_text": _text,
    "generator_state": _text,
    "call_facts": _facts,
}
_FIELD_NAMES = {"place": "shared_tokens"}
"""Name in files → field of RunRequest, where they differ."""
