"""Draft models with fewer or more token ids than their target model."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers as t
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from decodescope import core
from decodescope.core.decoding.forward.forward_pass import Forward


def tokenizer(first: int = 0) -> Any:
    """Bytes one by one; `first` moves the letters' ids, so that two tokenizers are not the same."""
    words = ["<s>", "</s>", *(f"<x{n}>" for n in range(first)), *sorted(pre_tokenizers.ByteLevel.alphabet())]
    inner = Tokenizer(models.BPE(vocab={word: i for i, word in enumerate(words)}, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.decoder = decoders.ByteLevel()
    return t.PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<s>", eos_token="</s>")


def model(rows: int, seed: int, words: Any, *, layers: int = 2, gpt2: bool = False) -> core.LoadedModel:
    torch.manual_seed(seed)
    if gpt2:
        config = t.GPT2Config(
            vocab_size=rows, n_embd=32, n_layer=layers, n_head=4, n_positions=256, eos_token_id=1, bos_token_id=0
        )
        return core.wrap(t.GPT2LMHeadModel(config).eval(), words, f"gpt2-{rows}-{seed}")
    config = t.LlamaConfig(
        vocab_size=rows, hidden_size=32, intermediate_size=64, num_hidden_layers=layers, num_attention_heads=4,
        num_key_value_heads=2, eos_token_id=1, bos_token_id=0, pad_token_id=None, max_position_embeddings=256,
    )  # fmt: skip
    return core.wrap(t.LlamaForCausalLM(config).eval(), words, f"rows-{rows}-{seed}")


SAME = tokenizer()
STRATEGIES: list[tuple[str, dict[str, Any]]] = [
    ("assisted", {"schedule": "constant"}),
    ("assisted", {"several": "choose"}),
    ("assisted", {"with_lookup": True}),
    ("token_tree", {}),
    ("token_tree", {"widths": "2 2 1"}),
    ("token_tree", {"schedule": "auto"}),
]


@pytest.mark.parametrize(("strategy", "options"), STRATEGIES, ids=str)
@pytest.mark.parametrize(("target_rows", "draft_rows"), [(320, 258), (258, 320)])
@pytest.mark.parametrize("samples", [False, True], ids=["greedy", "sampled"])
def test_models_with_different_row_counts_draft_for_each_other(
    strategy: str, options: dict[str, Any], target_rows: int, draft_rows: int, samples: bool
) -> None:
    target = model(target_rows, 0, SAME)
    drafts = [model(draft_rows, 2, SAME, gpt2=samples), model(draft_rows, 3, SAME)]
    assert core.why_not_draft(target, drafts[0]) is None
    for seed in range(2 if samples else 1):
        config = {"max_new_tokens": 16, "do_sample": samples, "top_k": 0}
        request = core.Request("the cat", config, strategy=strategy, options=options, seed=seed, steady=True)
        found = core.run(target, request, drafters=drafts if "several" in options else drafts[:1])
        assert all(token < target_rows for token in found.sequences[0])
        if not samples:
            assert found.sequences == core.run(target, core.Request("the cat", config)).sequences


@pytest.mark.parametrize("strategy", ["assisted", "token_tree"])
def test_prompt_with_ids_unknown_to_the_draft_model(strategy: str) -> None:
    target, draft = model(320, 0, SAME), model(258, 2, SAME)
    prompt, config = [5, 319, 300, 6], {"max_new_tokens": 12}
    found = core.run(target, core.Request(prompt, config, strategy=strategy), drafters=[draft])
    assert found.sequences == core.run(target, core.Request(prompt, config)).sequences


@pytest.mark.parametrize("strategy", ["assisted", "token_tree"])
def test_draft_model_with_all_ids_banned_proposes_nothing(strategy: str) -> None:
    """Every id of the draft is banned: it has no guess, and a plain step is taken."""
    target, draft = model(320, 0, SAME), model(258, 2, SAME)
    for samples in (False, True):
        config = {"max_new_tokens": 6, "suppress_tokens": list(range(258)), "do_sample": samples}
        found = core.run(target, core.Request("the cat", config, strategy=strategy), drafters=[draft])
        assert all(token >= 258 for token in found.sequences[0])


@pytest.mark.parametrize(("target_rows", "draft_rows"), [(300, 290), (290, 300), (265, 265)])
@pytest.mark.parametrize("samples", [False, True], ids=["greedy", "sampled"])
def test_retokenized_drafts_with_unequal_row_counts(target_rows: int, draft_rows: int, samples: bool) -> None:
    """Two tokenizers, of which either may have more tokens than its model has rows."""
    target, draft = model(target_rows, 0, tokenizer()), model(draft_rows, 2, tokenizer(12))
    for seed in range(3):
        config = {"max_new_tokens": 16, "do_sample": samples, "top_k": 0}
        request = core.Request("the cat ÿ\u0142", config, strategy="assisted", seed=seed)
        try:
            plain = core.run(target, core.Request("the cat ÿ\u0142", config, seed=seed))
        except core.errors.ParameterError:
            pytest.skip("the prompt has ids that the target lacks")
        found = core.run(target, request, drafters=[draft])
        assert samples or found.sequences == plain.sequences


def test_ids_unknown_to_the_draft_model_never_reach_it(monkeypatch: pytest.MonkeyPatch) -> None:
    target, draft = model(320, 0, SAME), model(258, 2, SAME, gpt2=True)
    highest, usual = [0], Forward.__call__

    def watched(self: Forward, ids: torch.Tensor, **more: Any) -> Any:
        if self.model is draft:
            highest.append(int(ids.max()))
        return usual(self, ids, **more)

    monkeypatch.setattr(Forward, "__call__", watched)
    config = {"max_new_tokens": 24, "do_sample": True, "top_k": 0}
    found = core.run(target, core.Request([5, 319], config, strategy="assisted", seed=1), drafters=[draft])
    assert max(found.sequences[0]) >= 258, "the case is not what it is meant to be"
    assert 0 < max(highest) < 258
