"""Green lists and SynthID: equal to transformers token for token, found again as its detector finds them, and not found
where there are none."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import SynthIDTextWatermarkingConfig, WatermarkDetector, WatermarkingConfig

from decodescope import core
from decodescope.core.errors import ParameterError
from decodescope.core.events import TokenChosen, WatermarkSign
from decodescope.core.explain import text_statistics
from decodescope.core.processors.synthid_length import KEYS, parse_keys
from tests.core import tiny
from tests.core.recorded_claims import LEVELS_AND_LANGUAGES, explanations_at

PROMPT = [5, 6, 7]
GREEN: dict[str, Any] = {"watermark_bias": 3.0, "watermark_ratio": 0.4, "watermark_key": 77}
SELF: dict[str, Any] = {**GREEN, "watermark_scheme": "selfhash", "watermark_width": 2}
SYNTH: dict[str, Any] = {"synthid_length": 4}
THEIRS = {
    "green": WatermarkingConfig(0.4, 3.0, 77, "lefthash", 1),
    "selfhash": WatermarkingConfig(0.4, 3.0, 77, "selfhash", 2),
    "synthid": SynthIDTextWatermarkingConfig(4, parse_keys(str(KEYS.default))),
}
OURS = {"green": GREEN, "selfhash": SELF, "synthid": SYNTH}


def run(options: dict[str, Any], seed: int = 3, tokens: int = 30, **config: Any) -> list[TokenChosen]:
    settings = {"max_new_tokens": tokens, "min_new_tokens": tokens, "top_k": 0, **config}
    request = core.Request(PROMPT, settings, "sampling", options, seed=seed, top_n=2)
    return [event for event in core.stream(tiny.shared("llama"), request) if isinstance(event, TokenChosen)]


def signs(events: Any) -> list[WatermarkSign]:
    return [s.detail.sign for e in events for s in e.funnel if s.detail is not None and s.detail.sign is not None]


@pytest.mark.parametrize("name", OURS)
def test_watermarked_text_equals_that_of_transformers(name: str) -> None:
    """The same processor given as GenerationConfig's `watermarking_config` writes the same text."""
    own = [event.id for event in run(OURS[name])]
    model = tiny.shared("llama")
    config = core.make_config({
        "do_sample": True, "max_new_tokens": 30, "min_new_tokens": 30, "top_k": 0, "watermarking_config": THEIRS[name],
    })  # fmt: skip
    assert own == list(core.run(model, core.Request(PROMPT, config, seed=3)).sequences[0])
    torch.manual_seed(3)
    reported = model.model.generate(torch.tensor([PROMPT]), generation_config=config)[0, len(PROMPT) :].tolist()
    assert own == reported
    assert own != [event.id for event in run({})]


@pytest.mark.parametrize("name", ["green", "selfhash"])
def test_the_statistic_is_that_of_transformers_detector(name: str) -> None:
    events = run(OURS[name])
    found = text_statistics.watermark_found(signs(events))
    model = tiny.shared("llama").model
    detector = WatermarkDetector(model.config, "cpu", THEIRS[name])
    for place in (5, 17, 29):
        ids = torch.tensor([[event.id for event in events[: place + 1]]])
        reference = detector(ids, return_dict=True)
        assert found[place].tokens == reference.num_tokens_scored[0]
        assert found[place].z == pytest.approx(reference.z_score[0])
        assert found[place].mean == pytest.approx(reference.green_fraction[0])


def test_the_mean_score_is_that_of_synthids_g_values() -> None:
    events = run(SYNTH)
    ids = torch.tensor([[event.id for event in events]])
    processor = THEIRS["synthid"].construct_processor(61, "cpu")
    values = processor.compute_g_values(ids)[0].double()
    stored = processor.compute_context_repetition_mask(ids)[0]
    last = text_statistics.watermark_found(signs(events))[-1]
    assert last.tokens == int(stored.sum())
    assert last.mean == pytest.approx(float(values[stored].mean()))
    weights = torch.linspace(10, 1, values.shape[1], dtype=torch.double)
    weighted = (values[stored] * weights / weights.mean()).mean()
    assert last.weighted == pytest.approx(float(weighted), abs=1e-6)


@pytest.mark.parametrize("name", ["green", "synthid"])
def test_scored_text_has_the_signs_of_the_generated_one(name: str) -> None:
    """Scored after its prompt, the text has the signs that it had during generation."""
    events = run(OURS[name])
    text = [event.id for event in events]
    reported = core.score_stream(tiny.shared("llama"), text, 2, given=PROMPT, watermark=OURS[name])
    scored = [event for event in reported if isinstance(event, TokenChosen)]
    assert [(s.share, s.counts) for s in signs(scored) if s.counts] == [
        (s.share, s.counts) for s in signs(events) if s.counts
    ]
    assert all(event.funnel[-1].survivors == event.funnel[0].survivors for event in scored)


@pytest.mark.parametrize("name", ["green", "synthid"])
def test_most_texts_without_a_watermark_stay_below_the_threshold(name: str) -> None:
    """z is nearly normal without one: over 3 in one text of 740."""
    model = tiny.shared("llama")
    above = {}
    for marked in (True, False):
        settings = {"max_new_tokens": 50, "min_new_tokens": 50, "top_k": 0, "num_return_sequences": 12}
        request = core.Request(PROMPT, settings, "sampling", OURS[name] if marked else {}, seed=1, top_n=0)
        texts = [core.score_stream(model, [*PROMPT, *text], 1, given=None, watermark=OURS[name])
                 for text in core.run(model, request).sequences]  # fmt: skip
        last = [
            text_statistics.watermark_found(signs(e for e in text if isinstance(e, TokenChosen)))[-1] for text in texts
        ]
        above[marked] = sum(found.z >= text_statistics.THRESHOLD for found in last)
    assert above[False] <= 1
    assert above[True] >= 10


def test_run_without_a_watermark_reports_no_signs() -> None:
    assert signs(run({})) == []
    assert signs(core.score(tiny.shared("llama"), [5, 6, 7, 8])) == []


@pytest.mark.parametrize("keys", ["1 two", "", "--5", "5 ²", "1" * 30, "5-"])
def test_invalid_synthid_keys_are_refused(keys: str) -> None:
    with pytest.raises(ParameterError, match="integers of at most 18 digits"):
        run({**SYNTH, "synthid_keys": keys})


def test_synthid_refuses_drafts_by_name() -> None:
    request = core.Request(PROMPT, {"max_new_tokens": 4, "do_sample": True}, "prompt_lookup", SYNTH)
    with pytest.raises(ParameterError, match="SynthID needs tokens one by one"):
        core.run(tiny.shared("llama"), request)


def test_explanation_matches_the_watermark_statistic() -> None:
    many = [WatermarkSign(1.0, 1.0, 0.25, 0.433)] * 12
    few = [WatermarkSign(0.0, 0.0, 0.25, 0.433)] * 12
    for each, code in LEVELS_AND_LANGUAGES:
        with explanations_at(each, code):
            reported = [core.explain_watermark(text_statistics.watermark_found(s)[-1]) for s in (many, few)]
            assert reported[0] != reported[1]
            assert all("{" not in text for text in reported)
    assert "the mean score of 12 tokens is 100 %, where 25 % is expected by chance" in core.explain_watermark(
        text_statistics.watermark_found(many)[-1]
    )
    chance = text_statistics.watermark_found([WatermarkSign(share, share, 0.25, 0.433) for share in (1.0, 0.0, 0.0)])
    assert "z = 0.33, p = 0.37" in core.explain_watermark(chance[-1])
    uncounted = text_statistics.watermark_found([WatermarkSign(0.0, 0.0, 0.25, 0.4, counts=False)])
    assert core.explain_watermark(uncounted[0]) == "Too few tokens yet to detect the watermark."
