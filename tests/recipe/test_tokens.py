"""The tokenizer and the chat format that the models were trained on."""

import batches
import bpe
import corpus
import pytest
from chat import SPECIAL_TOKENS, render
from shapes import BOS, END, EOS, PAD

TALK = [
    {"role": "system", "content": "You tell short stories."},
    {"role": "user", "content": "Who is Fern?\nAnd who is Otto?"},
    {"role": "assistant", "content": "Fern is a fox."},
    {"role": "user", "content": "What did she lose?"},
]


@pytest.fixture(scope="module")
def tokenizer():
    return bpe.for_decoder()


@pytest.mark.every(2)
@pytest.mark.parametrize("prompt", [False, True])
def test_chat_template_renders_the_training_format(tokenizer, prompt: bool) -> None:
    assert tokenizer.apply_chat_template(TALK, tokenize=False, add_generation_prompt=prompt) == render(TALK, prompt)


def test_chat_document_of_the_corpus_matches_the_chat_template(tokenizer) -> None:
    doc = next(doc for doc in (corpus.document(0, index) for index in range(99)) if doc.sort == "telling")
    turns = [part.split("|>", 1) for part in doc.text.removeprefix("<|begin|>").split("<|end|>") if part]
    messages = [{"role": head.removeprefix("<|"), "content": content} for head, content in turns]
    assert tokenizer.apply_chat_template(messages, tokenize=False) == doc.text


def test_special_tokens_have_the_first_ids(tokenizer) -> None:
    assert len(tokenizer) == bpe.VOCABULARY
    assert tokenizer.convert_tokens_to_ids(SPECIAL_TOKENS) == list(range(len(SPECIAL_TOKENS)))
    assert (tokenizer.pad_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id) == (PAD, BOS, EOS)
    assert tokenizer.convert_ids_to_tokens(END) == "<|end|>"


def test_encoded_text_decodes_to_the_same_text(tokenizer) -> None:
    for text in ("Once upon a time…", "Ça va ? l'été 狐 🦊\n\ttabs", "  two  spaces "):
        assert tokenizer.decode(tokenizer.encode(text), skip_special_tokens=True) == text


def test_decoder_text_starts_with_bos_and_task_text_ends_with_eos(tokenizer) -> None:
    assert tokenizer.encode("Hello")[0] == BOS
    assert bpe.for_encoder_decoder().encode("Hello")[-1] == EOS


def test_document_encoded_in_segments_has_the_tokens_of_the_whole_text(tokenizer) -> None:
    for index in range(40):
        doc = corpus.document(0, index)
        ids, weights = batches.encode(tokenizer, doc)
        assert ids == tokenizer.encode(doc.text, add_special_tokens=False)
        assert len(weights) == len(ids)
