"""Recognize how a tokenizer's decoder converts tokens to text, and which special tokens it skips."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_SPACE_MARK = "▁"
_LOCAL = frozenset(("Sequence", "Replace", "ByteFallback", "Fuse", "Strip", "Metaspace"))
_PURE_BYTES = frozenset(("Sequence", "Fuse", "ByteLevel"))


@cache
def byte_alphabet() -> dict[str, int]:
    """Return byte-level BPE's printable characters: character → byte (Radford et al. 2019)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in set(printable)]
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}


@dataclass(frozen=True, slots=True)
class TokenScheme:
    """The way in which the tokens of a vocabulary represent text."""

    byte_level: bool = False
    """Each character of a token represents a byte, by `byte_alphabet`."""
    latin1: bool = False
    """Each token is a byte, named by the Latin-1 character of its number (ByT5)."""
    byte_fallback: bool = False
    """Tokens such as <0xE6> represent single bytes."""
    space_mark: bool = False
    """▁ represents a space."""
    errors: str = ""
    """Treatment of invalid bytes ("replace", "ignore") if the text is the UTF-8 text of the tokens' bytes; empty if
    only the tokenizer can decode.
    """
    is_local: bool = False
    """Whether the text of a token is independent of its neighbors, except for a space stripped from the first one."""

    def token_bytes(self, raw: str, is_added: bool) -> bytes | None:
        """Return the bytes that the vocabulary token `raw` represents, or None."""
        if self.latin1 and not is_added:
            return bytes([ord(raw)]) if len(raw) == 1 and ord(raw) < 256 else None
        alphabet = byte_alphabet()
        if self.byte_level and all(char in alphabet for char in raw):
            return bytes(alphabet[char] for char in raw)
        if self.byte_fallback and (match := BYTE_TOKEN.fullmatch(raw)):
            return bytes([int(match[1], 16)])
        return (raw.replace(_SPACE_MARK, " ") if self.space_mark else raw).encode("utf-8", "surrogatepass")

    def is_byte(self, raw: str) -> bool:
        """Return whether `raw` is a byte token of a byte fallback."""
        return self.byte_fallback and not self.byte_level and BYTE_TOKEN.fullmatch(raw) is not None


def detect_scheme(tokenizer: Any) -> TokenScheme:
    """Return the scheme of a tokenizer, read from its decoder."""
    is_plain = _decodes_plainly(tokenizer)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        return _scheme_of_decoder(backend.decoder, is_plain)
    if hasattr(tokenizer, "byte_decoder"):
        return TokenScheme(byte_level=True, errors="replace" if is_plain else "")
    if _has_latin1_bytes(tokenizer):
        return TokenScheme(latin1=True, errors="ignore" if is_plain else "")
    return TokenScheme(byte_fallback=True, space_mark=True)


def special_ids(tokenizer: Any) -> frozenset[int]:
    """Return the ids that `decode(skip_special_tokens=True)` skips: the added tokens marked as special. Python
    tokenizers skip the tokens in `all_special_ids`.
    """
    if tokenizer is None:
        return frozenset()
    added = _added_tokens(tokenizer)
    if added is None:
        return frozenset(tokenizer.all_special_ids)
    return frozenset(number for number, token in added.items() if token.special)


def added_ids(tokenizer: Any) -> frozenset[int]:
    """Return the ids of tokens added to the vocabulary, special or not."""
    added = _added_tokens(tokenizer)
    return frozenset(getattr(tokenizer, "added_tokens_decoder", ()) if added is None else added)


def _added_tokens(tokenizer: Any) -> dict[int, Any] | None:
    """Return the added tokens of a tokenizer of the library `tokenizers`; None for a Python tokenizer."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    return None if backend is None else dict(backend.get_added_tokens_decoder())


def _decodes_plainly(tokenizer: Any) -> bool:
    """Return whether `decode` is transformers' own: subclasses such as Whisper's change the text afterwards."""
    methods = [getattr(type(tokenizer), name, None) for name in ("decode", "_decode", "convert_ids_to_tokens")]
    return all(str(getattr(method, "__module__", "")).startswith("transformers.tokenization_") for method in methods)


def _scheme_of_decoder(decoder: Any, is_plain: bool) -> TokenScheme:
    parts = _decoder_parts(decoder)
    names = {str(part.get("type")) for part in parts}
    marks = [part for part in parts if part.get("type") == "Metaspace" or _replaces_mark(part)]
    if "ByteLevel" in names:
        return TokenScheme(byte_level=True, errors="replace" if is_plain and names <= _PURE_BYTES else "")
    others = [part for part in parts if part.get("type") == "Replace" and not _replaces_mark(part)]
    strips = [part for part in parts if part.get("type") == "Strip" and part.get("stop")]
    return TokenScheme(
        byte_fallback="ByteFallback" in names,
        space_mark=bool(marks),
        is_local=is_plain and bool(marks) and names <= _LOCAL and not others and not strips,
    )


def _replaces_mark(part: dict[str, Any]) -> bool:
    return (
        part.get("type") == "Replace"
        and part.get("pattern") == {"String": _SPACE_MARK}
        and part.get("content") == " "
    )  # fmt: skip


def _decoder_parts(decoder: Any) -> list[dict[str, Any]]:
    """Return the parts of a `tokenizers` decoder, including nested ones; empty if there is no decoder."""
    if decoder is None:
        return []
    try:
        state = json.loads(decoder.__getstate__())
    except Exception:  # a decoder written in Python has no readable state
        return [{"type": "custom"}]
    return list(_flatten(state))


def _flatten(state: Any) -> Iterator[dict[str, Any]]:
    if isinstance(state, dict):
        yield state
        for part in state.get("decoders", ()):
            yield from _flatten(part)


def _has_latin1_bytes(tokenizer: Any) -> bool:
    try:
        return bool(tokenizer.convert_tokens_to_string(["\xc3", "\xa9"]) == "é")
    except Exception:  # other Python tokenizers raise various exceptions here
        return False
