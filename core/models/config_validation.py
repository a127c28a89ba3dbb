"""Whether the values of a config.json can be, judged before anything is built from them; without torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from resources.language import tr

_SIZES = {
    "num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers", "encoder_layers", "decoder_layers",
    "hidden_size", "n_embd", "d_model", "intermediate_size", "vocab_size", "max_position_embeddings", "n_positions",
    "num_attention_heads", "n_head", "n_heads", "num_heads", "num_key_value_heads", "head_dim", "d_kv", "d_ff",
}  # fmt: skip
"""Whole numbers in every family that has them; a list of them where layers differ."""
_POSITIVE = {"num_hidden_layers", "n_layer", "n_layers", "hidden_size", "n_embd", "d_model", "vocab_size"}
_FLAGS = {"is_encoder_decoder", "tie_word_embeddings", "use_cache"}
_FLAGS_OF_METHODS = {"load_in_8bit", "load_in_4bit"}
_ATTENTION = {"attn_implementation", "_attn_implementation", "_attn_implementation_internal"}
_OWN_ATTENTION = {"eager", "sdpa", "flash_attention_2", "flash_attention_3", "flash_attention_4"}
_MAX_SIZE = 2**31
_MAX_LAYERS = 1024
"""Where the weights' headers do not tell how many there can be; the deepest language models have about 130."""
_SHARED_LAYERS = 64
"""So many layers are believed whatever the headers list: layers may share their weights."""
_MAX_PARTS = 65_536
"""Experts, labels and whatever else a configuration or a module makes one Python object each of."""


def invalid_names_reason(config: Mapping[str, object]) -> str | None:
    """What is wrong with the names a configuration gives of itself and of other files; None when nothing is."""
    kind, code = config.get("model_type"), config.get("auto_map", {})
    if kind is not None and not isinstance(kind, str):
        return tr("its model_type is {value}, not a name").format(value=_quoted_value(kind))
    if not isinstance(code, dict) or not all(isinstance(name, str | list) for name in code.values()):
        return tr("its auto_map is {value}, not names of classes").format(value=_quoted_value(code))
    if "configuration_files" in config:
        return tr("it sends the reader on to other files (configuration_files)")
    return None


def impossible_value_reason(config: Mapping[str, object], tensors: int | None = None) -> str | None:
    """The first value that cannot be, in a sentence; None when there is none.

    `tensors` is how many the weights' headers list: each layer has one of its own at least.
    """
    found = (_value_problem(name, value, tensors) for name, value in _values(config))
    return next((trouble for trouble in found if trouble), None)


def external_attention_repository(config: Mapping[str, object]) -> str | None:
    """The repository whose compiled code its attention would be taken from; None when it is transformers' own."""
    asked = (value for name, value in _values(config) if name in _ATTENTION)
    return next((value for value in asked if isinstance(value, str) and "/" in value), None)


def _values(config: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Every named value, those of inner configurations too."""
    for name, value in config.items():
        yield name, value
        if isinstance(value, dict):
            yield from _values(value)


def _value_problem(name: str, value: object, tensors: int | None) -> str | None:
    if name in _ATTENTION:
        return _attention_problem(name, value)
    if name in _FLAGS and not isinstance(value, bool | None):
        return tr("its {name} is {value}, neither true nor false").format(name=name, value=_quoted_value(value))
    if name == "quantization_config" and value is not None and not _names_method(value):
        return tr("its quantization_config is {value}, and names no method (quant_method)").format(
            value=_quoted_value(value)
        )
    if name in _SIZES and value is not None:
        return next((_size_problem(name, size) for size in _items(value) if _size_problem(name, size)), None) or (
            _count_problem(name, value, tensors)
        )
    return _count_problem(name, value, tensors)


def _names_method(quantization: object) -> bool:
    """Older files of bitsandbytes name theirs by two flags."""
    if not isinstance(quantization, dict):
        return False
    return isinstance(quantization.get("quant_method"), str) or not _FLAGS_OF_METHODS.isdisjoint(quantization)


def _items(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _size_problem(name: str, size: object) -> str | None:
    if type(size) is not int:
        return (
            tr("its {name} is {value}, not a whole number").format(name=name, value=_quoted_value(size))
            if size is not None
            else None
        )
    low = 1 if name in _POSITIVE else -1 if name in ("max_position_embeddings", "n_positions") else 0
    if low <= size <= _MAX_SIZE:
        return None
    return tr("its {name} is {value}, which no model can have").format(name=name, value=_quoted_value(size))


def _count_problem(name: str, value: object, tensors: int | None) -> str | None:
    """Of how much there is of something that Python makes an object each of."""
    if type(value) is not int or value <= 0:
        return None
    if name in _SIZES and name.endswith(("layers", "layer")):
        return _layers_problem(name, value, tensors)
    counted = name.endswith(("layers", "_labels", "experts", "_heads", "_blocks", "_groups", "_stages"))
    return (
        tr("its {name} is {value}, which no model can have").format(name=name, value=_quoted_value(value))
        if counted and value > _MAX_PARTS
        else None
    )


def _layers_problem(name: str, value: int, tensors: int | None) -> str | None:
    if tensors is not None and value > max(tensors, _SHARED_LAYERS):
        return tr("its {name} is {value}, and the weights hold {tensors:,} tensors").format(
            name=name, value=_quoted_value(value), tensors=tensors
        )
    if tensors is None and value > _MAX_LAYERS:
        return tr("its {name} is {value}, which no model can have").format(name=name, value=_quoted_value(value))
    return None


def _attention_problem(name: str, value: object) -> str | None:
    asked = list(value.values()) if isinstance(value, dict) else [value]
    for one in asked:
        if one is not None and not isinstance(one, str):
            return tr("its {name} is {value}, not a name").format(name=name, value=_quoted_value(one))
        if one == "flex_attention":
            return tr(
                "its {name} is “flex_attention”, which is compiled anew for every length of a growing text"
            ).format(name=name)
        if one and "/" not in one and one not in _OWN_ATTENTION:
            return tr("its {name} is “{value}”, which transformers does not have").format(
                name=name, value=_quoted_value(one)
            )
    return None


def _quoted_value(value: object) -> str:
    """At most forty characters of what JSON would show. A huge integer is told by its length alone."""
    if type(value) is int and value.bit_length() > 200:
        return tr("a number of {bits:,} bits").format(bits=value.bit_length())
    words = f"“{value}”" if isinstance(value, str) else repr(value) if value is not None else "null"
    return words if len(words) <= 40 else f"{words[:39]}…"
