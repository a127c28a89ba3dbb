"""Parse the responses of an engine's tokenizer."""

from __future__ import annotations

_MAX_TOKENS = 2**22
_MAX_ID = 2**31


class UnexpectedReplyError(Exception):
    """The tokenizer's response has an unexpected form."""


def text_field(reply: object, name: str) -> str:
    """Return a text in a response. Raises UnexpectedReplyError."""
    text = reply.get(name) if isinstance(reply, dict) else None
    if not isinstance(text, str):
        raise UnexpectedReplyError
    return text


def parse_tokens(reply: object) -> tuple[list[int], list[str | bytes]]:
    """Return the ids, and each token as in the vocabulary or as its text. Raises UnexpectedReplyError."""
    tokens = reply.get("tokens") if isinstance(reply, dict) else None
    names = reply.get("token_strs") if isinstance(reply, dict) else None
    if not isinstance(tokens, list) or not 0 < len(tokens) <= _MAX_TOKENS:
        raise UnexpectedReplyError
    if all(isinstance(one, dict) for one in tokens):
        names, tokens = [one.get("piece") for one in tokens], [one.get("id") for one in tokens]
    if not all(isinstance(one, int) and not isinstance(one, bool) and 0 <= one < _MAX_ID for one in tokens):
        raise UnexpectedReplyError
    if not isinstance(names, list) or len(names) != len(tokens):
        names = [None] * len(tokens)
    return tokens, [_token_name(one) for one in names]


def _token_name(value: object) -> str | bytes:
    if isinstance(value, list) and all(isinstance(one, int) and 0 <= one < 256 for one in value):
        return bytes(value)
    return value if isinstance(value, str) else ""
