"""The tokenizers of engines on other machines: replies of `/tokenize`, `/detokenize` and `/apply-template` as vLLM and
llama.cpp's server give them, written by hand from their published schemas."""

from __future__ import annotations

import re
from typing import Any

from decodescope.core.models.token_scheme import byte_alphabet

START = 1
"""Id of the special token that stands before every text."""
_PIECES = re.compile(r" ?[A-Za-z]+|.", re.DOTALL)
_TEMPLATE = "<|im_start|>{role}\n{content}<|im_end|>\n"


def cut(text: str) -> list[bytes]:
    """Words with the space before them; of every other character, its bytes."""
    words = _PIECES.findall(text)
    return [part for word in words for part in ([word.encode()] if word.isascii() else _bytes(word))]


def _bytes(text: str) -> list[bytes]:
    return [bytes([one]) for one in text.encode()]


def number(piece: bytes) -> int:
    """The same for the same piece."""
    return 1000 + sum(one * (place + 1) for place, one in enumerate(piece))


def answer(kind: str, written: str, path: str, body: dict[str, Any]) -> Any:
    """The reply. `written`: how the vocabulary is."""
    if written == "garbage":
        return {"tokens": "seven", "prompt": 7, "content": None}
    if path == "/detokenize":
        return {"content" if kind == "llama.cpp" else "prompt": " ".join(f"word{one}" for one in body["tokens"])}
    if path == "/apply-template":
        return {"prompt": templated(body["messages"])}
    text = body["content"] if kind == "llama.cpp" else body.get("prompt")
    pieces = cut(templated(body["messages"]) if text is None else text)
    if kind == "llama.cpp":
        special = [{"id": START, "piece": "<s>"}] if body["add_special"] else []
        return {"tokens": special + [{"id": number(one), "piece": _text_or_bytes(one)} for one in pieces]}
    ids = [START, *map(number, pieces)]
    reported = {"count": len(ids), "max_model_len": 4096, "tokens": ids, "token_strs": None}
    if body.get("return_token_strs"):
        reported["token_strs"] = ["<s>", *(_format_tokens(one, written, not place) for place, one in enumerate(pieces))]
    return reported


def templated(messages: list[dict[str, Any]]) -> str:
    """A chat as the model reads it."""
    return "".join(_TEMPLATE.format(**one) for one in messages) + "<|im_start|>assistant\n"


def _text_or_bytes(piece: bytes) -> str | list[int]:
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return list(piece)


def _format_tokens(piece: bytes, how: str, is_first: bool) -> str:
    if how == "pieces":
        try:
            return ("▁" if is_first else "") + piece.decode().replace(" ", "▁")
        except UnicodeDecodeError:
            return f"<0x{piece[0]:02X}>"
    stands_for = {data: char for char, data in byte_alphabet().items()}
    name = "".join(stands_for[one] for one in piece)
    return name.lower() if how == "lower" else name
