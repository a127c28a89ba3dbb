"""Ids to text, token by token, over every family of tokenizers: what the tokenizer decodes, at a constant cost."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.models.text import TextStream, TokenSpellings
from decodescope.core.models.token_bytes import word_spellings
from decodescope.core.models.token_scheme import special_ids
from tests.core import tiny
from tests.core.tokenizer_families import FAMILIES, ORDINARY, SPECIAL, decoded

_PARTS = ("the cat", " ", "\n", "日本", "👩\u200d🚀", "مرحبا", "\x07", "e\u0301", *ORDINARY, SPECIAL, "\u200b", "  ")
_INVALID = "\ufffd"


@pytest.fixture(scope="module", params=list(FAMILIES))
def tokenizer(request: pytest.FixtureRequest) -> Any:
    return FAMILIES[request.param]()


def sequences(tokenizer: Any, count: int) -> Iterator[list[int]]:
    """Random ids, and the ids of texts of many scripts."""
    dice = random.Random(5)
    for number in range(count):
        ids = [dice.randrange(len(tokenizer)) for _ in range(dice.randrange(30))] if number % 3 else []
        text = "".join(dice.choice(_PARTS) for _ in range(dice.randrange(10)))
        yield ids + tokenizer.encode(text, add_special_tokens=False)


def written(tokenizer: Any, pieces: TokenSpellings, before: list[int], ids: list[int]) -> str:
    stream = TextStream(tokenizer, before, pieces)
    return "".join([*map(stream.push, ids), stream.flush()])


def gives_up_runs(tokenizer: Any, text: str) -> bool:
    """Return whether the decoder dropped a run of byte tokens because of one of them; the shown part stays."""
    return _INVALID in text and TokenSpellings(tokenizer).scheme.byte_fallback


def test_joined_pieces_are_the_decoded_text(tokenizer: Any) -> None:
    pieces, compared = TokenSpellings(tokenizer), 0
    for ids in sequences(tokenizer, 600):
        whole = decoded(tokenizer, ids)
        if not gives_up_runs(tokenizer, whole):
            compared += 1
            assert written(tokenizer, pieces, [], ids) == whole, tokenizer.convert_ids_to_tokens(ids)
    assert compared > 150


def test_text_after_a_prompt_continues_it_exactly(tokenizer: Any) -> None:
    pieces, dice = TokenSpellings(tokenizer), random.Random(6)
    for ids in sequences(tokenizer, 600):
        cut = dice.randint(0, len(ids))
        before, whole = decoded(tokenizer, ids[:cut]), decoded(tokenizer, ids)
        if gives_up_runs(tokenizer, whole):
            continue
        shown = written(tokenizer, pieces, ids[:cut], ids[cut:])
        if gives_up_runs(tokenizer, before):  # the run of bytes that the prompt cuts is whole with what follows
            assert whole.endswith(shown)
            assert len(shown) >= len(whole) - len(before)
            continue
        halves = len(before) - len(before.rstrip(_INVALID))
        assert any(before[: len(before) - half] + shown == whole for half in range(halves + 1)), ids


def test_prompt_tokens_add_up_to_the_text(tokenizer: Any) -> None:
    pieces = TokenSpellings(tokenizer)
    for ids in sequences(tokenizer, 300):
        texts = [text for token, text in zip(ids, pieces.texts(ids), strict=True) if token not in pieces.special]
        joined, whole = "".join(texts), decoded(tokenizer, ids)
        if "⟨" not in joined and not joined.startswith("  "):
            assert joined == whole, tokenizer.convert_ids_to_tokens(ids)


class CountingTokenizer:
    """A tokenizer that counts the ids it decodes."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer, self.ids = tokenizer, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)

    def decode(self, ids: list[int], **more: Any) -> str:
        self.ids += len(ids)
        return str(self._tokenizer.decode(ids, **more))


def a_token(tokenizer: Any, kind: str) -> int | None:
    """The id of a token of that kind; None where the vocabulary has none."""
    byte = {"invalid byte": 0xFF, "first byte": 0xE6}.get(kind)
    if byte is not None:
        token: int | None = tokenizer.convert_tokens_to_ids(f"<0x{byte:02X}>")
        if token not in (None, tokenizer.unk_token_id):
            return token
        pieces = TokenSpellings(tokenizer)
        return next((one for one in range(len(tokenizer)) if pieces.data(one) == bytes([byte])), None)
    texts = {"line break": "\n", "space": " ", "special": SPECIAL, "word": "cat"}
    ids = tokenizer.encode(texts.get(kind, ""), add_special_tokens=False)
    return 10**6 if kind == "unknown" else ids[-1] if ids else None


KINDS = ("line break", "space", "special", "unknown", "invalid byte", "word", "first byte")
MISSING: dict[str, set[str]] = {
    "wordpiece": {"line break", "space", "invalid byte", "first byte"},
    "unigram": {"invalid byte", "first byte"},
    "suffix": {"line break", "space", "invalid byte", "first byte"},
}
"""Kinds of tokens that the vocabulary of a family does not have."""


@pytest.mark.parametrize("family", FAMILIES)
def test_tokenizer_families_lack_only_the_listed_token_kinds(family: str) -> None:
    tokenizer = FAMILIES[family]()
    assert {kind for kind in KINDS if a_token(tokenizer, kind) is None} == MISSING.get(family, set())


@pytest.mark.parametrize(
    ("family", "kind"), [(name, kind) for name in FAMILIES for kind in KINDS if kind not in MISSING.get(name, set())]
)
def test_cost_per_token_is_constant(family: str, kind: str) -> None:
    """Counted in ids that are decoded, for tokens without visible text as for others."""
    tokenizer = FAMILIES[family]()
    token = a_token(tokenizer, kind)
    assert token is not None
    costs = []
    for count in (200, 400):
        counted = CountingTokenizer(tokenizer)
        stream = TextStream(counted, [], TokenSpellings(tokenizer))  # type: ignore[arg-type]
        for _ in range(count):
            stream.push(token)
        costs.append(counted.ids)
    assert costs[1] <= 2.2 * costs[0] + 100
    assert costs[1] <= 400 * 40


def test_special_ids_equal_those_skipped_by_decoding(tokenizer: Any) -> None:
    if not hasattr(tokenizer, "backend_tokenizer"):
        assert special_ids(tokenizer) == frozenset(tokenizer.all_special_ids)
        return
    plain = tokenizer.encode("cat", add_special_tokens=False)
    for token in tokenizer.added_tokens_decoder:
        skipped = decoded(tokenizer, [*plain, token]) == decoded(tokenizer, plain)
        assert (token in special_ids(tokenizer)) == skipped, tokenizer.convert_ids_to_tokens(token)
    assert tokenizer.convert_tokens_to_ids(SPECIAL) in special_ids(tokenizer)


def test_added_tokens_are_spelled_as_the_decoder_writes_them() -> None:
    for name in ("byte level", "sentencepiece"):
        tokenizer = FAMILIES[name]()
        pieces, plain = TokenSpellings(tokenizer), tokenizer.encode("cat", add_special_tokens=False)
        for added in ORDINARY[:2]:
            token = tokenizer.convert_tokens_to_ids(added)
            assert "cat" + pieces[token] == decoded(tokenizer, [*plain, token]).strip()


def test_bytes_of_byt5_are_shown_as_bytes_and_its_text_as_text() -> None:
    tokenizer = FAMILIES["byt5"]()
    pieces, ids = TokenSpellings(tokenizer), tokenizer.encode("日é", add_special_tokens=False)
    ids = ids if len(ids) > 1 else [byte + 3 for byte in "日é".encode()]
    assert [pieces[token] for token in ids] == ["⟨E6⟩", "⟨97⟩", "⟨A5⟩", "⟨C3⟩", "⟨A9⟩"]
    assert pieces.texts(ids) == ["", "", "日", "", "é"]
    assert pieces.data(300) is None  # a row of the embedding beyond the vocabulary: decode would fail
    assert written(tokenizer, pieces, [], [300, *ids, 300]) == "日é"


@pytest.mark.parametrize("name", ["byte level", "sentencepiece", "byt5"])
@pytest.mark.parametrize("text", ["é", "日", "🎉"])
def test_character_begun_in_the_prompt_is_shown_when_complete(name: str, text: str) -> None:
    tokenizer = FAMILIES[name]()
    pieces = TokenSpellings(tokenizer)
    by_bytes = {pieces.data(token): token for token in reversed(range(len(tokenizer))) if pieces.data(token)}
    bytes_of = {0x100 - 1 - n: by_bytes.get(bytes([0x100 - 1 - n])) for n in range(0x80)}
    ids = [bytes_of[byte] for byte in text.encode()]
    start = tokenizer.encode("cat", add_special_tokens=False)
    for cut in range(1, len(ids)):
        assert written(tokenizer, pieces, [*start, *ids[:cut]], [*ids[cut:], *start]).startswith(text)  # type: ignore[list-item]


def test_run_completes_a_character_of_its_prompt() -> None:
    """Beams too, and a branch that begins inside one."""
    tokenizer = FAMILIES["byte level"]()
    model = tiny.make("llama", vocab_size=len(tokenizer), bos_token_id=0, eos_token_id=1)
    model.tokenizer = tokenizer
    first, *rest = (next(i for i in range(len(tokenizer)) if model.pieces.data(i) == bytes([b])) for b in "é".encode())
    for settings in ({}, {"num_beams": 2}):
        config = GenerationConfig(max_new_tokens=1, suppress_tokens=[i for i in range(len(tokenizer)) if i not in rest],
                                  eos_token_id=None, **settings)  # fmt: skip
        prompt = [*tokenizer.encode("cat", add_special_tokens=False), first]
        assert core.run(model, core.Request(prompt, config)).texts == ["é"]


@pytest.mark.parametrize("name", list(FAMILIES))
def test_word_spellings_cover_every_context(name: str) -> None:
    model = tiny.make("llama", vocab_size=700)
    model.tokenizer = FAMILIES[name]()
    encode, found = model.tokenizer.encode, word_spellings(model, "cat")
    for before in ("", "(", "\n", '"', "the "):
        ids = encode(f"{before}cat", add_special_tokens=False)
        assert any(ids[-len(spelling) :] == spelling for spelling in found), (before, ids)
