"""The sequential test of an honest server of llama.cpp, which sends only whole characters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from tokenizers import pre_tokenizers
from transformers import PreTrainedTokenizerFast

from decodescope import core
from decodescope.core.remote.remote_model import RemoteModel
from tests.core import gguf_models
from tests.llama_cpp_server import IS_INSTALLED, LlamaCppServer

LEVEL = 0.2
"""Of the tests here: with 0.05, too many would be needed to see more false alarms than allowed."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not IS_INSTALLED, reason="xllamacpp (llama.cpp's server) is missing"),
]


def tokenizer_of_bytes() -> PreTrainedTokenizerFast:
    """Every byte is a token, so that most characters that are not ASCII have several; some pairs of letters too."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary, merges = {letter: number for number, letter in enumerate(letters)}, []
    for pair in ((one, other) for one in "etaoinshrdlu" for other in "etaoinsh"):
        vocabulary["".join(pair)] = len(vocabulary)
        merges.append(pair)
    return gguf_models.byte_level(vocabulary, merges)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> core.LoadedModel:
    tokenizer = tokenizer_of_bytes()
    first = len(tokenizer) - 3
    made = gguf_models.make(
        "llama", vocab_size=len(tokenizer), bos_token_id=first, eos_token_id=first + 1, pad_token_id=first + 2
    )
    path = tmp_path_factory.mktemp("bytes") / "bytes.gguf"
    core.save_gguf(core.wrap(made.model, tokenizer, "bytes"), path)
    return core.load(path)


@pytest.fixture(scope="module")
def engine(model: core.LoadedModel) -> Iterator[RemoteModel]:
    assert model.path is not None
    with LlamaCppServer(Path(model.path)) as server:
        found = core.load(f"http://127.0.0.1:{server.port}")
        assert isinstance(found, RemoteModel)
        yield found


@pytest.mark.parametrize("with_reference", [False, True])
def test_honest_server_that_withholds_parts_of_characters_is_seldom_rejected(
    model: core.LoadedModel, engine: RemoteModel, with_reference: bool
) -> None:
    tests, alarms, tokens = 60, 0, 0
    for number in range(tests):
        request = core.Request("the hint", seed=1000 * number)
        found = core.check_engine(engine, request, model if with_reference else None, answers=15, tokens=6, level=LEVEL)
        alarms += found.is_rejected
        tokens += found.tokens
    assert tokens > 20 * tests
    assert alarms <= tests * LEVEL + 3 * math.sqrt(tests * LEVEL * (1 - LEVEL))
