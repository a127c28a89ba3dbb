"""Write a tokenizer as metadata of a GGUF file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from decodescope.core.errors import UnpackableError
from decodescope.core.models.gguf.architectures import Metadata
from decodescope.core.models.gguf.tokenizer import (
    BYTE,
    CONTROL,
    NORMAL,
    SPECIAL_TOKENS,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    pre_tokenizer_rules,
)
from decodescope.resources.language import tr


def tokenizer_metadata(model_name: str, tokenizer: Any, size: int, end_tokens: Sequence[int]) -> Metadata:
    """Return the vocabulary, merges, special tokens and chat template of a tokenizer; None stands for no tokenizer.

    `size`: number of tokens, 0 if only the tokenizer says; `end_tokens`: ids that end a text. Raises UnpackableError.
    """
    if tokenizer is None:
        return {"tokenizer.ggml.model": "no_vocab"}
    backend = getattr(tokenizer, "backend_tokenizer", None)
    written: dict[str, Any] = json.loads(backend.to_str()) if backend is not None else {}
    kind = written.get("model", {}).get("type")
    if kind != "BPE":
        raise UnpackableError(
            tr("{model} has a tokenizer of the kind {kind}; only BPE is written as GGUF here.").format(
                model=model_name, kind=kind or type(tokenizer).__name__
            ),
            tr("Use llama.cpp's own converter."),
        )
    words, kinds = _vocabulary(written, size)
    found: Metadata = {
        "tokenizer.ggml.tokens": words, "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.add_bos_token": _begins_with_bos(tokenizer),
    }  # fmt: skip
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in written["model"]["merges"]]
    if written["model"].get("byte_fallback"):
        found |= {"tokenizer.ggml.model": "llama", "tokenizer.ggml.scores": _scores(words, merges)}
        found["tokenizer.ggml.add_space_prefix"] = "Prepend" in json.dumps(written.get("normalizer")) or (
            (written.get("pre_tokenizer") or {}).get("prepend_scheme") in ("always", "first")
        )
    else:
        found |= {
            "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.merges": merges,
            "tokenizer.ggml.pre": _rule(model_name, written),
        }  # fmt: skip
    for name, key in SPECIAL_TOKENS.items():
        number = getattr(tokenizer, f"{name}_token_id", None)
        if isinstance(number, int):
            found[f"tokenizer.ggml.{key}_token_id"] = number
    others = [end for end in end_tokens if end != found.get("tokenizer.ggml.eos_token_id")]
    if others and len(end_tokens) > 1:
        found["tokenizer.ggml.eot_token_id"] = others[0]
    if isinstance(template := getattr(tokenizer, "chat_template", None), str):
        found["tokenizer.chat_template"] = template
    return found


def _vocabulary(written: Mapping[str, Any], size: int) -> tuple[list[str], list[int]]:
    by_number = {number: word for word, number in written["model"]["vocab"].items()}
    added = {token["id"]: token for token in written["added_tokens"]}
    unknown = written["model"].get("unk_token")
    words, kinds = [], []
    for number in range(max(size, *by_number, *added, 0) + 1 if not size else size):
        token = added.get(number)
        word = token["content"] if token else by_number.get(number)
        if word is None:
            words.append(f"[PAD{number}]")
            kinds.append(UNUSED)
            continue
        words.append(word)
        is_byte = len(word) == 6 and word.startswith("<0x") and written["model"].get("byte_fallback")
        kinds.append(
            UNKNOWN if word == unknown else CONTROL if token and token["special"] else USER_DEFINED if token
            else BYTE if is_byte else NORMAL
        )  # fmt: skip
    return words, kinds


def _scores(words: Sequence[str], merges: Sequence[str]) -> list[float]:
    """Return scores that make SentencePiece's rule merge in the order of the list."""
    ranks: dict[str, int] = {}
    for rank, pair in enumerate(merges):
        ranks.setdefault(pair.replace(" ", "", 1), rank)
    return [float(-ranks.get(word, 10**6)) for word in words]


def _rule(model_name: str, written: Mapping[str, Any]) -> str:
    rule = pre_tokenizer_rules().get(json.dumps(written.get("pre_tokenizer"), sort_keys=True))
    if rule is None:
        raise UnpackableError(
            tr("The tokenizer of {model} splits words by a rule that llama.cpp has no name for.").format(
                model=model_name
            ),
            tr("Use llama.cpp's own converter."),
        )
    return rule


def _begins_with_bos(tokenizer: Any) -> bool:
    ids = tokenizer("a")["input_ids"]
    return bool(ids) and tokenizer.bos_token_id is not None and ids[0] == tokenizer.bos_token_id
