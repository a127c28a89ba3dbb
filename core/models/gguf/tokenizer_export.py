"""Write a tokenizer as metadata of a GGUF file."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from decodescope.core.errors import TokenizerMissingError, UnpackableError
from decodescope.core.models.gguf.architectures import Metadata
from decodescope.core.models.gguf.file_writer import write_file
from decodescope.core.models.gguf.gguf_file import read_gguf
from decodescope.core.models.gguf.pre_tokenizer_rules import RULES, pre_tokenizer
from decodescope.core.models.gguf.tokenizer import load_gguf_tokenizer
from decodescope.core.models.gguf.tokenizer_samples import TEXTS
from decodescope.core.models.gguf.vocabulary import (
    BYTE,
    CONTROL,
    NORMAL,
    SPECIAL_TOKENS,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    end_tokens,
)
from decodescope.resources.language import mark, tr

_REMEDY = mark("Save it in transformers' layout instead.")


def tokenizer_metadata(model_name: str, tokenizer: Any, size: int, ends: Sequence[int]) -> Metadata:
    """Return the vocabulary, merges, special tokens and chat template of a tokenizer; None stands for no tokenizer.

    `size`: number of tokens, 0 if only the tokenizer says; `ends`: ids that end a text. The metadata is read back, and
    splits all texts of `tokenizer_samples.py` as the tokenizer does. Raises UnpackableError with the difference where
    GGUF cannot express the tokenizer.
    """
    if tokenizer is None:
        return {"tokenizer.ggml.model": "no_vocab"}
    backend = getattr(tokenizer, "backend_tokenizer", None)
    written = _written(model_name, backend) if backend is not None else {}
    kind = written.get("model", {}).get("type")
    if kind != "BPE":
        raise UnpackableError(
            tr("{model} has a tokenizer of the kind {kind}; only BPE is written as GGUF here.").format(
                model=model_name, kind=kind or type(tokenizer).__name__
            ),
            tr("Use llama.cpp's own converter."),
        )
    words, kinds = _vocabulary(written, size)
    begins, finishes = _frame(tokenizer)
    found: Metadata = {
        "tokenizer.ggml.tokens": words, "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.add_bos_token": begins, "tokenizer.ggml.add_eos_token": finishes,
    }  # fmt: skip
    for name, key in SPECIAL_TOKENS.items():
        number = getattr(tokenizer, f"{name}_token_id", None)
        if isinstance(number, int):
            found[f"tokenizer.ggml.{key}_token_id"] = number
    _add_ends(found, ends)
    if isinstance(template := getattr(tokenizer, "chat_template", None), str):
        found["tokenizer.chat_template"] = template
    texts = [*TEXTS, *_texts_with_special_tokens(written)]
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in written["model"]["merges"]]
    if written["model"].get("byte_fallback"):
        found |= {"tokenizer.ggml.model": "llama", "tokenizer.ggml.scores": _scores(words, merges)}
        found["tokenizer.ggml.add_space_prefix"] = "Prepend" in json.dumps(written.get("normalizer")) or (
            (written.get("pre_tokenizer") or {}).get("prepend_scheme") in ("always", "first")
        )
    else:
        found |= {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.merges": merges}
        found["tokenizer.ggml.pre"] = _rule(model_name, backend, written)
    _check_reading(model_name, tokenizer, found, texts, ends)
    return found


def _written(model_name: str, backend: Any) -> dict[str, Any]:
    """Return the library's own description of a tokenizer. Raises UnpackableError if it has parts in Python."""
    try:
        found: dict[str, Any] = json.loads(backend.to_str())
    except Exception as error:  # the library raises it plainly
        raise UnpackableError(
            tr("The tokenizer of {model} has parts that cannot be written: {reason}.").format(
                model=model_name, reason=str(error).rstrip(".")
            ),
            tr("Keep the GGUF file that it was read from."),
        ) from error
    return found


def _add_ends(found: Metadata, ends: Sequence[int]) -> None:
    """Name the tokens that end a text: the EOS token, the end of a turn, the end of a message."""
    eos = found.get("tokenizer.ggml.eos_token_id")
    others = [end for end in ends if end != eos]
    if eos is None and others:
        found["tokenizer.ggml.eos_token_id"] = others.pop(0)
    for key, end in zip(("eot", "eom"), others, strict=False):
        found[f"tokenizer.ggml.{key}_token_id"] = end


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


def _rule(model_name: str, backend: Any, written: Mapping[str, Any]) -> str:
    """Return the name of the rule that splits all sample texts into words as the tokenizer does.

    Raises UnpackableError.
    """
    own = backend.pre_tokenizer
    if own is not None:
        words = [own.pre_tokenize_str(text) for text in TEXTS]
        ignores_merges = bool(written["model"].get("ignore_merges"))
        for name, rule in RULES.items():
            if rule.ignores_merges != ignores_merges or not rule.reads_bytes:
                continue
            split = pre_tokenizer(rule)
            if all(split.pre_tokenize_str(text) == found for text, found in zip(TEXTS, words, strict=True)):
                return name
    raise UnpackableError(
        tr("The tokenizer of {model} splits words by a rule that llama.cpp has no name for.").format(model=model_name),
        tr(_REMEDY),
    )


def _frame(tokenizer: Any) -> tuple[bool, bool]:
    """Return whether texts begin with the BOS token and end with the EOS token."""
    plain, framed = (tokenizer("a", add_special_tokens=special)["input_ids"] for special in (False, True))
    before = len(framed) > len(plain) and framed[0] == tokenizer.bos_token_id
    return before, len(framed) > len(plain) and framed[-1] == tokenizer.eos_token_id


def _texts_with_special_tokens(written: Mapping[str, Any], limit: int = 40) -> Iterator[str]:
    """Yield texts with the tokenizer's own added tokens: some absorb white space, or match whole words only."""
    for token in written["added_tokens"][:limit]:
        word = token["content"]
        yield from (word, f"a {word} b", f"a{word}\n b", f"a\n {word}b{word}")


def _check_reading(
    model_name: str, tokenizer: Any, metadata: Metadata, texts: Sequence[str], ends: Sequence[int]
) -> None:  # fmt: skip
    """Read the metadata back, and compare the ids of all texts. Raises UnpackableError."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.gguf"
        with path.open("wb") as stream:
            write_file(stream, {"general.architecture": "llama", "general.name": model_name, **metadata}, [])
        file = read_gguf(path)
        try:
            again = load_gguf_tokenizer(file)
        except TokenizerMissingError as error:
            raise UnpackableError(
                tr("The tokenizer of {model} cannot be read back from GGUF. {reason}").format(
                    model=model_name, reason=error.cause
                ),
                tr(_REMEDY),
            ) from error
        lost = sorted(set(ends) - set(end_tokens(file)))
        del file
    assert again is not None
    if lost:
        raise UnpackableError(
            tr("{model} ends texts at “{token}”, which GGUF has no key for.").format(
                model=model_name, token=tokenizer.convert_ids_to_tokens(lost[0])
            ),
            tr(_REMEDY),
        )
    for text in texts:
        for special in (True, False):
            if (
                again(text, add_special_tokens=special)["input_ids"]
                != tokenizer(text, add_special_tokens=special)["input_ids"]
            ):
                raise UnpackableError(
                    tr("The tokenizer of {model} would read texts otherwise from GGUF, for example “{text}”.").format(
                        model=model_name, text=text[:40]
                    ),
                    tr(_REMEDY),
                )
