"""Text out of tokens: whole characters only, and nothing lost."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GenerationConfig, PreTrainedTokenizerFast

import core
from core.events import SequenceFinished, TokenChosen
from core.models.text import Pieces, TextStream
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


@pytest.mark.parametrize("text", ["plain text", "café – naïve", "日本語 🦊🦊", "a\u0301 e\u0301", "tab\tand\nline"])
def test_stream_adds_up_and_holds_back_halves(text: str) -> None:
    tokenizer = byte_level()
    stream = TextStream(tokenizer, [])
    out = [stream.push(token) for token in tokenizer(text)["input_ids"]]
    assert "".join(out) + stream.flush() == text
    assert all("\ufffd" not in part for part in out)


def test_what_never_becomes_whole_is_released_at_the_end() -> None:
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


def test_pieces() -> None:
    fox = byte_level()("🦊é a")["input_ids"]
    pieces = Pieces(byte_level())
    assert [pieces[token] for token in fox] == ["⟨F0⟩", "⟨9F⟩", "⟨A6⟩", "⟨8A⟩", "⟨C3⟩", "⟨A9⟩", " ", "a"]
    assert pieces[1] == "</s>"
    assert [Pieces(metaspace())[token] for token in (2, 4, 5)] == [" once", "s", "⟨C3⟩"]
    assert Pieces(None)[7] == "⟨7⟩"


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
