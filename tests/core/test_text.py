"""Text from tokens: whole characters only, and nothing is lost."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GenerationConfig, PreTrainedTokenizerFast

from decodescope import core
from decodescope.core.decoding.beams.beam_node import PathDecoder
from decodescope.core.decoding.prompt import to_prompt_tokens
from decodescope.core.events import SequenceFinished, TokenChosen
from decodescope.core.models.text import Decoder, TextStream, TokenSpellings
from tests.core import tiny


def byte_level() -> PreTrainedTokenizerFast:
    """Bytes only: every multi-byte character takes several tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=260, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=["<s>", "</s>"]
    )
    tokenizer.train_from_iterator(["the cat"], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")


def metaspace() -> PreTrainedTokenizerFast:
    """SentencePiece-like: a word's leading space is a mark that decoding strips at the start."""
    vocabulary = {"<unk>": 0, "</s>": 1, "▁once": 2, "▁upon": 3, "s": 4, "<0xC3>": 5, "<0xA9>": 6, "▁": 7}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>", unk_token="<unk>")


def byte_fallback() -> PreTrainedTokenizerFast:
    """Llama 2's and Mistral's way: words of a vocabulary, and bytes for every character that is not in it."""
    words = ["▁", *"▁the ▁cat ▁sat ▁naïve t h e c a s . , é ▁é".split(), *(f"<0x{byte:02X}>" for byte in range(256))]
    vocabulary = {word: place for place, word in enumerate(["<unk>", "<s>", "</s>", *dict.fromkeys(words)])}
    tokenizer = Tokenizer(
        models.BPE(vocab=vocabulary, merges=[("▁", "é")], byte_fallback=True, unk_token="<unk>", fuse_unk=True)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        clean_up_tokenization_spaces=False,
    )


_CHARACTERS = "the cat sat. ,é🎉🎈🎁🦊日本語ß€\n\t\u0301👩\u200d🚀ж"


def mixed_texts(count: int) -> Iterator[str]:
    """Words, and characters of one to four bytes, in long and short runs."""
    source = random.Random(7)
    for _ in range(count):
        runs = (source.choice(_CHARACTERS) * source.choice((1, 1, 1, 2, 9)) for _ in range(source.randint(1, 24)))
        yield "".join(runs)


@pytest.mark.slow
def test_byte_fallback_characters_are_decoded_whole() -> None:
    tokenizer, decode = byte_fallback(), Decoder(byte_fallback())
    for number, text in enumerate(mixed_texts(3000)):
        ids = tokenizer(text)["input_ids"]
        cut = number % len(ids) if number % 3 else 0
        stream = TextStream(tokenizer, ids[:cut])
        shown = "".join([*(stream.push(token) for token in ids[cut:]), stream.flush()])
        if "\ufffd" not in decode(ids[:cut]):
            assert decode(ids[:cut]) + shown == decode(ids), ids
            assert "\ufffd" not in shown


def test_beam_paths_are_decoded_whole() -> None:
    tokenizer, decode = byte_fallback(), Decoder(byte_fallback())
    for text in mixed_texts(500):
        ids = tokenizer(text)["input_ids"]
        speller = PathDecoder(tokenizer, TokenSpellings(tokenizer), [])
        path, shown = speller.start, []
        for token in ids:
            new, path = speller.push(path, token)
            shown.append(new)
        assert "".join(shown) + speller.flush(path) == decode(ids), ids


@pytest.mark.parametrize("broken", [[0xF0], [0xC3, 0xC3], [0xF0, 0x9F, 0x8E], [0x80]])
def test_invalid_byte_does_not_remove_shown_characters(broken: list[int]) -> None:
    tokenizer = byte_fallback()
    first, byte, last = (
        tokenizer("🎉🎈")["input_ids"],
        tokenizer.convert_tokens_to_ids("<0x00>"),
        tokenizer("a")["input_ids"][-1],
    )
    ids = [*first, *(byte + value for value in broken), last]
    stream, speller = TextStream(tokenizer, []), PathDecoder(tokenizer, TokenSpellings(tokenizer), [])
    path, spelled = speller.start, ""
    for token in ids:
        new, path = speller.push(path, token)
        spelled += new
    assert "".join(stream.push(token) for token in ids) == spelled == "🎉🎈" + "\ufffd" * len(broken) + "a"


@pytest.mark.parametrize("text", ["plain text", "café – naïve", "日本語 🦊🦊", "a\u0301 e\u0301", "tab\tand\nline"])
def test_text_stream_adds_up_and_holds_back_partial_characters(text: str) -> None:
    tokenizer = byte_level()
    stream = TextStream(tokenizer, [])
    out = [stream.push(token) for token in tokenizer(text)["input_ids"]]
    assert "".join(out) + stream.flush() == text
    assert all("\ufffd" not in part for part in out)


def test_incomplete_character_is_released_by_flush() -> None:
    tokenizer = byte_level()
    ids = tokenizer("ab🦊")["input_ids"][:-1]
    stream = TextStream(tokenizer, [])
    assert "".join(stream.push(token) for token in ids) == "ab"
    assert stream.flush() == tokenizer.decode(ids)[2:] != ""
    assert stream.flush() == ""


def test_long_streams_stay_exact() -> None:
    tokenizer = byte_level()
    text = "the cat – 🦊 " * 200
    stream = TextStream(tokenizer, [])
    assert "".join(stream.push(token) for token in tokenizer(text)["input_ids"]) == text


def test_leading_space_after_a_prompt() -> None:
    tokenizer = metaspace()
    assert TextStream(tokenizer, [2]).push(3) == " upon"
    assert TextStream(tokenizer, []).push(3) == "upon"
    stream = TextStream(tokenizer, [2])
    assert [stream.push(token) for token in (5, 6, 4)] == ["", "é", "s"]


def test_special_tokens_add_no_text() -> None:
    assert TextStream(byte_level(), []).push(1) == ""


def test_token_spellings_show_partial_bytes() -> None:
    fox = byte_level()("🦊é a")["input_ids"]
    pieces = TokenSpellings(byte_level())
    assert [pieces[token] for token in fox] == ["⟨F0⟩", "⟨9F⟩", "⟨A6⟩", "⟨8A⟩", "⟨C3⟩", "⟨A9⟩", " ", "a"]
    assert pieces[1] == "</s>"
    assert [TokenSpellings(metaspace())[token] for token in (2, 4, 5)] == [" once", "s", "⟨C3⟩"]
    assert TokenSpellings(None)[7] == "⟨7⟩"


def test_events_spell_the_decoded_text() -> None:
    model = tiny.make("llama", vocab_size=260, bos_token_id=0, eos_token_id=1)
    model.tokenizer = byte_level()
    config = GenerationConfig(do_sample=True, max_new_tokens=60, top_k=0, temperature=3.0)
    for seed in range(4):
        result = core.run(model, core.Request("the cat", config, seed=seed))
        shown = "".join(
            event.text if isinstance(event, TokenChosen) else event.tail
            for event in result.events
            if isinstance(event, (TokenChosen, SequenceFinished))
        )
        assert shown == result.texts[0]
        assert shown == model.tokenizer.decode(result.sequences[0], skip_special_tokens=True)


def test_prompt_token_texts_add_up_to_the_text() -> None:
    rng = random.Random(9)
    for tokenizer in (byte_level(), byte_fallback()):
        pieces = TokenSpellings(tokenizer)
        for _ in range(300):
            text = "".join(rng.choice(" the cat’s🎉é₿“中—\u00ad") for _ in range(rng.randrange(1, 24)))
            ids = tokenizer.encode(text, add_special_tokens=False)
            assert "".join(pieces.texts(ids)).removeprefix(" ") == text.removeprefix(" ")


def test_invalid_bytes_are_shown_as_escapes() -> None:
    tokenizer = byte_level()
    pieces = TokenSpellings(tokenizer)
    cut = tokenizer.encode("a’", add_special_tokens=False)[:-1]
    assert pieces.texts(cut) == ["a", "", "⟨E2⟩⟨80⟩"]
    begin = tokenizer.bos_token_id
    assert pieces.texts([*cut, begin]) == ["a", "", "⟨E2⟩⟨80⟩", "<s>"]


def test_prompt_tokens_have_text_and_piece() -> None:
    pieces = TokenSpellings(byte_level())
    reported = to_prompt_tokens(byte_level().encode("a’b", add_special_tokens=False), pieces)
    assert [(token.text, token.piece) for token in reported] == [
        ("a", ""), ("", "⟨E2⟩"), ("", "⟨80⟩"), ("’", "⟨99⟩"), ("b", ""),
    ]  # fmt: skip
