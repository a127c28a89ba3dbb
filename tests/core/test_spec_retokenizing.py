"""A draft model with another tokenizer: drafts are converted through text and the result stays the same."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from tokenizers.decoders import ByteLevel
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from decodescope import core
from decodescope.core.decoding.speculation.drafters.base import SpeculationText
from decodescope.core.decoding.speculation.drafters.compatibility import why_not_draft
from decodescope.core.decoding.speculation.drafters.retokenizing_drafter import (
    ModelVocabulary,
    OffsetTokenizer,
    RetokenizedText,
    RetokenizingDrafter,
    complete_length,
    retokenize,
    tokenize_continuation,
)
from decodescope.core.decoding.speculation.round_plan import RoundPlan
from decodescope.core.models.text import TokenSpellings
from tests.core import tiny
from tests.core.spec_models import few_token_model, rounds
from tests.core.spec_tables import p_value
from tests.core.test_as_code import execute
from tests.core.test_spec_lossless import ALARM, _model_shares

STORY = "Once upon a time, there was a little fox named Mia. She lived in a den under the hill."
ODD = "Zoë said “naïve?” — 12.5 ½ 狐狸 went 🦊🦊 home.\n\n  Then: the end."


@cache
def small_words(size: int = 320) -> PreTrainedTokenizerFast:
    """Byte-level pairs of a few words only: most tokens are letters."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        [STORY] * 4, trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, special_tokens=["<end>"])
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>")


def spelling(tokenizer: Any) -> OffsetTokenizer:
    return OffsetTokenizer(tokenizer, TokenSpellings(tokenizer))


@cache
def storyteller() -> core.LoadedModel:
    return core.load("storyteller")


@cache
def renumbered() -> core.LoadedModel:
    """The bundled draft with its tokens under other numbers: it drafts as well, and not one id means the same."""
    draft = core.load("storyteller-draft")
    raw = json.loads(draft.tokenizer.backend_tokenizer.to_str())
    special = {token["id"] for token in raw["added_tokens"]}
    free = [token for token in range(draft.vocabulary) if token not in special]
    shuffled = random.Random(0).sample(free, len(free))
    place = {token: token for token in special} | dict(zip(free, shuffled, strict=True))
    raw["model"]["vocab"] = {word: place[token] for word, token in raw["model"]["vocab"].items()}
    network = copy.deepcopy(draft.model)
    old = torch.tensor(sorted(place, key=place.__getitem__))
    with torch.no_grad():
        for weight in {network.get_input_embeddings().weight, network.get_output_embeddings().weight}:
            weight.copy_(weight[old].clone())
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(raw)), eos_token=draft.tokenizer.eos_token
    )
    return core.wrap(network, tokenizer, "renumbered")


@cache
def stranger() -> core.LoadedModel:
    """Random weights on small words: wrong nearly always, and its tokens end elsewhere."""
    torch.manual_seed(0)
    words = small_words()
    shape = LlamaConfig(
        vocab_size=len(words), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=512, eos_token_id=words.eos_token_id, bos_token_id=None,
    )  # fmt: skip
    return core.wrap(LlamaForCausalLM(shape), words, "stranger")


def _run(drafts: list[core.LoadedModel], way: str = "assisted", prompt: str = STORY, **more: Any) -> core.Result:
    options, seed = more.pop("options", {"schedule": "constant"}), more.pop("seed", 0)
    settings = GenerationConfig(**{"max_new_tokens": 24, **more})
    return core.run(storyteller(), core.Request(prompt, settings, way, options, drafters=drafts, seed=seed, top_n=0))


def _greedy(prompt: str = STORY) -> list[int]:
    request = core.Request(prompt, GenerationConfig(max_new_tokens=24), "greedy", top_n=0)
    return core.run(storyteller(), request).sequences[0]


def test_renumbered_draft_model_keeps_text_and_acceptance_rate() -> None:
    same, other = _run([core.load("storyteller-draft")]), _run([renumbered()])
    assert other.sequences == same.sequences
    assert other.sequences[0] == _greedy()
    assert same.metrics.acceptance_rate is not None
    assert other.metrics.acceptance_rate == pytest.approx(same.metrics.acceptance_rate, abs=0.1)


@pytest.mark.parametrize("case", range(3))
def test_drafts_of_other_tokens_change_no_text(case: int) -> None:
    """Alone and beside one that shares the tokens; letters that the text has only begun; an automatic length."""
    way, prompt, drafts, options = (
        ("assisted", STORY, [stranger()], {"schedule": "constant"}),
        ("assisted", STORY + " 狐", [stranger()], {}),
        ("token_tree", [{"role": "user", "content": "Tell me a story."}], [renumbered(), stranger()], {}),
    )[case]
    found = _run(drafts, way, prompt, options=options)  # type: ignore[arg-type]
    assert found.sequences[0] == _greedy(prompt)  # type: ignore[arg-type]


def test_script_names_both_tokenizers(tmp_path: Path) -> None:
    """transformers' universal assisted generation writes the same; vocabularies of one size it takes for equal."""
    stranger().model.save_pretrained(tmp_path)
    stranger().tokenizer.save_pretrained(tmp_path)
    request = core.Request(STORY, {"max_new_tokens": 24, "do_sample": False}, "assisted")
    script = core.as_code(request, model="storyteller", drafters=(tmp_path,))
    assert "assistant_tokenizer=draft_tokenizer" in script
    assert execute(script)[1].strip() == storyteller().tokenizer.decode(_greedy()).strip()
    renumbered().model.save_pretrained(tmp_path)
    renumbered().tokenizer.save_pretrained(tmp_path)
    assert "of the same size" in core.why_not_generate(request, model="storyteller", drafters=(tmp_path,))


def test_sampled_retokenized_drafts_count_as_certain() -> None:
    texts = [_run([renumbered()], do_sample=True, temperature=0.9, options={}, seed=3) for _ in range(2)]
    assert texts[0].sequences == texts[1].sequences
    nodes = [node for event in rounds(texts[0]) for node in event.nodes]
    assert {node.draft_probability for node in nodes} == {1.0}
    for node in nodes:
        assert node.ratio is None or node.ratio == pytest.approx(node.target_probability, abs=1e-5)


@pytest.mark.slow
def test_sampled_runs_follow_the_target_distribution() -> None:
    """Six letters, and a drafter whose tokens are letters and pairs of them."""
    prompt, counts = [1, 2, 3, 1, 2], Counter[tuple[int, ...]]()
    target = core.wrap(few_token_model(0).model, _letters({}), "letters")
    target.strategy_data["spells"] = True
    torch.manual_seed(1)
    pairs = {"ab": 6, "cd": 7, "bc": 8}
    shape = LlamaConfig(
        vocab_size=9, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=64, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    draft = core.wrap(LlamaForCausalLM(shape), _letters(pairs), "pairs")
    draft.strategy_data["spells"] = True
    taken = 0
    for seed in range(160):
        settings = GenerationConfig(max_new_tokens=5, do_sample=True, temperature=1.3, top_k=4)
        options = {"schedule": "constant"}
        request = core.Request(prompt, settings, "assisted", options, seed=seed, top_n=0, drafters=[draft])
        result = core.run(target, request)
        taken += sum(len(event.nodes) for event in rounds(result))
        counts[tuple(result.sequences[0][1:3])] += 1
    assert taken > 160
    shares = _model_shares(target, prompt, 1.3, 4)
    assert p_value(counts, {path: share for path, share in shares.items() if share > 0}) > ALARM


def _letters(pairs: dict[str, int]) -> PreTrainedTokenizerFast:
    vocabulary = {letter: place for place, letter in enumerate("abcdef")} | pairs
    merges = [(pair[0], pair[1]) for pair in pairs]
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE(vocabulary, merges)))


def test_incremental_retokenization_equals_that_of_the_whole_text() -> None:
    story, small = storyteller().tokenizer, spelling(small_words())
    for text in (STORY + ODD, ODD * 3):
        spelled = RetokenizedText(spelling(story))
        ids, pieces, same = story.encode(text, add_special_tokens=False), [], 0
        for count in range(1, len(ids) + 1):
            spelled.append_new(ids[:count])
            data = bytes(spelled.data[: complete_length(spelled.data)])
            pieces = retokenize(pieces, data, small) or []
            reported = b"".join(small.token_bytes(piece.id) or b"" for piece in pieces)
            assert reported == data
            same += pieces == (small.tokenize(data) or [])
        assert bytes(spelled.data).decode() == text
        assert same > 0.95 * len(ids)


def test_written_tokens_are_kept_at_the_seam() -> None:
    """After “hap”, “py” is added: its tokens follow those of “hap”, even if “happy” has other tokens."""
    story = spelling(storyteller().tokenizer)
    for text in (STORY, "The fox was hap", ODD, "狐".encode()[:2]):
        data = text if isinstance(text, bytes) else text.encode()
        cut = [story_id for byte in data for story_id in _byte(byte)]
        spelled = RetokenizedText(story)
        spelled.append_new(cut)
        for drafted in ("py and glad.", " She", "\n"):
            pieces = tokenize_continuation(spelled, drafted.encode(), story)
            assert b"".join(story.token_bytes(piece.id) or b"" for piece in pieces) == drafted.encode()
            assert pieces[-1].end == len(drafted.encode())


@cache
def _bytes() -> dict[bytes, int]:
    story = spelling(storyteller().tokenizer)
    return {data: token for token in range(storyteller().vocabulary) if (data := story.token_bytes(token)) is not None}


def _byte(value: int) -> list[int]:
    return [_bytes()[bytes([value])]]


class _FixedTextPasses:
    """Replaces the passes of a draft model by a fixed text."""

    def __init__(self, ids: list[int], size: int) -> None:
        self._ids, self._size = ids, size
        self.length = self.extra = 0

    def _row(self, place: int) -> torch.Tensor:
        token = self._ids[place] if place < len(self._ids) else 0
        return torch.nn.functional.one_hot(torch.tensor([token]), self._size).float() * 20

    def read_text(self, ids: torch.Tensor) -> torch.Tensor:
        self.length += ids.shape[1]
        return self._row(self.length)

    def read_nodes(self, ids: torch.Tensor, depths: Any, visibility: np.ndarray) -> torch.Tensor:
        self.extra += 1
        return self._row(self.length + self.extra)

    def commit(self, rows: Any) -> None:
        self.length, self.extra = self.length + len(rows), 0

    def crop(self, length: int) -> None:
        self.length, self.extra = min(length, self.length), 0


def test_retokenized_drafts_of_the_known_text_are_accepted() -> None:
    """Round after round: nothing is lost at the seam, nothing is read twice."""
    story, small = storyteller().tokenizer, small_words()
    whole = story.encode(STORY + " " + ODD, add_special_tokens=False)
    heart = small.encode(STORY + " " + ODD, add_special_tokens=False)
    drafter = RetokenizingDrafter(
        "heart", _FixedTextPasses(heart, len(small)), ModelVocabulary(spelling(small), len(small)),
        ModelVocabulary(spelling(story), len(story)), 0, lambda: False, None, torch.device("cpu"),
    )  # fmt: skip
    text, drafted, right = SpeculationText(whole[:6], torch.device("cpu")), 0, 0
    while len(text) < len(whole) - 8:
        branch = drafter.propose(text, RoundPlan(4))
        assert branch is not None
        ahead = whole[len(text) :]
        agreed = next((n for n, token in enumerate(branch.ids) if token != ahead[n]), len(branch.ids))
        drafted, right = drafted + len(branch.ids), right + agreed
        drafter.commit(branch.ids[:agreed])
        text.extend(ahead[: agreed + 1])
    assert right > 0.7 * drafted > 30


def test_draft_models_that_cannot_be_retokenized_are_refused() -> None:
    target = storyteller()
    assert why_not_draft(target, renumbered()) is None
    blind = tiny.make("llama", vocab_size=50)
    assert "does not preserve text exactly" in (why_not_draft(target, blind) or "")
    other = core.wrap(core.load("summarizer").model, small_words(), "other")
    assert "not supported for encoder–decoder models" in (why_not_draft(core.load("summarizer"), other) or "")
