"""Stop strings end a run where they end transformers' `generate`, in every strategy."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers

from decodescope import core
from decodescope.core.decoding.stopping import StopStringMatcher
from decodescope.core.models.text import TokenSpellings
from tests.core.tokenizer_families import FAMILIES, SPECIAL

_WAYS: dict[str, dict[str, Any]] = {
    "greedy": {}, "sampling": {"do_sample": True}, "beams": {"num_beams": 2},
    "lookup": {"prompt_lookup_num_tokens": 3},
}  # fmt: skip


def chain(names: dict[str, str], tokenizer: Any, layers: int = 1) -> Any:
    """A model whose next token depends on the last one alone."""
    size = len(tokenizer)
    width = (size + 7) // 8 * 8
    config = transformers.LlamaConfig(
        vocab_size=size, hidden_size=width, intermediate_size=8, num_hidden_layers=layers, num_attention_heads=1,
        num_key_value_heads=1, head_dim=8, eos_token_id=None, bos_token_id=0, pad_token_id=None,
    )  # fmt: skip
    network = transformers.LlamaForCausalLM(config).eval()
    ids = {name: tokenizer.convert_tokens_to_ids(name) for name in names}
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.fill_(1.0) if "norm" in name else parameter.zero_()
        for one in range(size):
            network.model.embed_tokens.weight[one, one] = 1.0
        for name, following in names.items():
            network.lm_head.weight[ids[following], ids[name]] = 1.0
    return network


@pytest.mark.parametrize("way", _WAYS)
@pytest.mark.parametrize("stop", [SPECIAL, "c", f"c{SPECIAL}", f"{SPECIAL}a", "im_end", "ab", "xyz", "bca"])
def test_a_run_stops_where_generate_stops(way: str, stop: str) -> None:
    tokenizer = FAMILIES["byte level"]()
    network = chain({"a": "b", "b": "c", "c": SPECIAL, SPECIAL: "a"}, tokenizer)
    model = core.wrap(network, tokenizer, "chain")
    config = transformers.GenerationConfig(max_new_tokens=9, stop_strings=[stop], **_WAYS[way])
    inputs = tokenizer("a", return_tensors="pt")
    torch.manual_seed(0)
    reference = network.generate(**inputs, generation_config=config, tokenizer=tokenizer)[0, 1:].tolist()
    ours = core.run(model, core.Request("a", config))
    assert list(ours.sequences[0]) == reference
    assert (len(reference) < 9) == (stop != "xyz" and stop != "bca") or way == "beams"


@pytest.mark.parametrize("strategy", ["contrastive", "token_tree", "dola", "speculative"])
def test_custom_strategies_stop_at_special_tokens(strategy: str) -> None:
    tokenizer = FAMILIES["byte level"]()
    network = chain({"a": "b", "b": "c", "c": SPECIAL, SPECIAL: "a"}, tokenizer, layers=4)
    model = core.wrap(network, tokenizer, "chain")
    request = core.Request("a", {"max_new_tokens": 9, "stop_strings": [SPECIAL]}, strategy=strategy,
                           drafters=(model,) if strategy in ("token_tree", "speculative") else ())  # fmt: skip
    found = core.run(model, request)
    assert [tokenizer.decode(found.sequences[0])] == [f"bc{SPECIAL}"]


@pytest.mark.every(3)
@pytest.mark.parametrize("name", ["byte level", "sentencepiece", "wordpiece", "unigram"])
def test_stop_strings_match_like_in_generate(name: str) -> None:
    """Token by token over random ids, for strings inside words, over several tokens and of several bytes."""
    tokenizer = FAMILIES[name]()
    pieces, strings = TokenSpellings(tokenizer), ["e t", "日", "cat", "</s>", SPECIAL, "\n", "本e", "th"]
    generator, stops = torch.Generator().manual_seed(3), 0
    for string in strings:
        try:
            criteria = transformers.StopStringCriteria(tokenizer, [string])
        except ValueError:  # no token of the vocabulary has its letters
            continue
        for _ in range(12):
            ids = torch.randint(len(tokenizer), (60,), generator=generator).tolist()
            ids += tokenizer.encode(f"the {string} cat", add_special_tokens=False)
            matcher = StopStringMatcher([string], pieces.stop_bytes, ids[:20])
            tail = matcher.start
            for end in range(20, len(ids)):
                found, tail = matcher.push(tail, ids[end])
                reference = bool(criteria(torch.tensor([ids[: end + 1]]), None)[0])
                assert bool(found) == reference, (string, tokenizer.convert_ids_to_tokens(ids[: end + 1]))
                stops += reference
    assert stops > 20


@pytest.mark.parametrize("settings", _WAYS.values(), ids=_WAYS)
def test_the_script_of_a_run_stops_where_the_run_stopped(
    settings: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """With a stop string that begins in the prompt."""
    model = core.load("storyteller")
    free = core.run(model, core.Request("Once upon a", {"max_new_tokens": 12, **settings}, seed=4)).texts[0]
    request = core.Request(
        "Once upon a", {"max_new_tokens": 12, "stop_strings": [f"upon a{free[:4]}"], **settings}, seed=4
    )
    text = core.run(model, request).texts[0]
    assert len(text) < len(free)
    script = core.as_code(request, model=model)
    capsys.readouterr()
    exec(compile(script, "script.py", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.removesuffix("\n") == text
