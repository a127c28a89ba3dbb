"""Audio and image models: every strategy, token for token against transformers' own generate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from decodescope import core
from decodescope.core import errors
from decodescope.core.events import CacheMeasured, CachePlan, Notice, RunStarted, TokenChosen
from tests.core import tiny_media
from tests.core.tiny_media import ONE_OF_EACH, PROMPTS, given, reference, shared, without_end
from tests.core.versions import skip_other_draws

NEW = 14
BEAMS: dict[str, dict[str, Any]] = {
    "three": {"num_beams": 3, "num_return_sequences": 3},
    "long": {"num_beams": 4, "length_penalty": 2.0, "early_stopping": True},
    "sampled": {"num_beams": 3, "do_sample": True, "top_k": 0, "temperature": 0.9},
}
PROCESSORS: dict[str, dict[str, Any]] = {
    "repetition_penalty": {"repetition_penalty": 1.6},
    "no_repeat_ngram": {"no_repeat_ngram_size": 2},
    "bad_words": {"bad_words_ids": [[17], [34, 11], [44]]},
    "min_new_tokens": {"min_new_tokens": 12},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("media")


def ours(kind: str, path: str, seed: int = 0, **settings: Any) -> core.Result:
    request = core.Request(PROMPTS.get(kind, ""), {"max_new_tokens": NEW, **settings}, media=(path,), seed=seed)
    return core.run(shared(kind), request)


def texts(result: core.Result) -> list[list[int]]:
    return [without_end(ids) for ids in result.sequences]


@pytest.mark.parametrize("kind", tiny_media.KINDS)
def test_greedy_equals_generate(kind: str, folder: Path) -> None:
    found = []
    for number in range(3):
        path = given(kind, folder, number)
        found.append(texts(ours(kind, path)))
        assert found[-1] == reference(shared(kind), path, max_new_tokens=NEW, do_sample=False)
    assert kind == "languages" or found[0] != found[1]  # the media determine the text


@pytest.mark.parametrize("name", PROCESSORS)
@pytest.mark.parametrize("kind", tiny_media.KINDS)
def test_processors_equal_generate(kind: str, name: str, folder: Path) -> None:
    path, settings = given(kind, folder), PROCESSORS[name]
    expected = reference(shared(kind), path, max_new_tokens=NEW, do_sample=False, **settings)
    assert texts(ours(kind, path, **settings)) == expected


@pytest.mark.parametrize("name", BEAMS)
@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_beams_equal_generate(kind: str, name: str, folder: Path) -> None:
    path, settings = given(kind, folder), dict(BEAMS[name])
    skip_other_draws(settings)
    torch.manual_seed(5)
    expected = reference(shared(kind), path, max_new_tokens=NEW, **settings)
    assert texts(ours(kind, path, seed=5, **settings)) == expected


@pytest.mark.parametrize("kind", tiny_media.KINDS)
def test_sampling_equals_generate(kind: str, folder: Path) -> None:
    path = given(kind, folder)
    settings: dict[str, Any] = {"do_sample": True, "top_k": 0, "temperature": 0.8, "num_return_sequences": 3}
    torch.manual_seed(7)
    expected = reference(shared(kind), path, max_new_tokens=NEW, **settings)
    assert len(expected) == 3
    assert texts(ours(kind, path, seed=7, **settings)) == expected


WAYS: dict[str, dict[str, Any]] = {
    "lookup": {"strategy": "prompt_lookup"},
    "lookahead": {"strategy": "lookahead"},
    "early exit": {"strategy": "early_exit", "config": {"assistant_early_exit": 1}},
    "assisted": {"strategy": "assisted"},
    "token tree": {"strategy": "token_tree", "options": {"widths": [1, 2, 2]}},
    "beam of one": {"strategy": "beam_search", "config": {"num_beams": 1}},
    "contrastive without contrast": {"strategy": "contrastive", "config": {"penalty_alpha": 0.0, "top_k": 4}},
}


@pytest.mark.every(3)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_every_lossless_strategy_gives_the_greedy_text(kind: str, way: str, folder: Path) -> None:
    """Drafts and candidates change nothing; what cannot be done is refused before anything runs."""
    model, requested, path = shared(kind), dict(WAYS[way]), given(kind, folder)
    settings = {"max_new_tokens": 24, "min_new_tokens": 24, **requested.pop("config", {})}
    drafters = [tiny_media.make(kind, seed=1)] if way in ("assisted", "token tree") else []
    request = core.Request(PROMPTS.get(kind, ""), settings, media=(path,), drafters=drafters, **requested)
    if model.is_encoder_decoder and way in ("early exit", "token tree", "lookahead"):
        with pytest.raises(errors.StrategyError):
            core.run(model, request)
        return
    plain = core.Request(
        PROMPTS.get(kind, ""), {"max_new_tokens": 24, "min_new_tokens": 24}, strategy="greedy", media=(path,)
    )
    assert core.run(model, request).sequences == core.run(model, plain).sequences


@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_a_draft_model_equal_to_its_target_is_always_accepted(kind: str, folder: Path) -> None:
    """Fails if a drafter does not receive the same media."""
    request = core.Request(
        PROMPTS.get(kind, ""), {"max_new_tokens": 20, "min_new_tokens": 20}, strategy="assisted",
        media=(given(kind, folder),), drafters=[tiny_media.make(kind)], options={"schedule": "constant"},
    )  # fmt: skip
    assert core.run(shared(kind), request).metrics.acceptance_rate == 1.0


@pytest.mark.parametrize("cache", ["dynamic", "static", "offloaded", "offloaded_static", "quantized", "sliding_window",
                                   "encoder_decoder", "sink", "model_specific"])  # fmt: skip
@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_every_cache_gives_the_same_text_or_a_reason(kind: str, cache: str, folder: Path) -> None:
    model, path = shared(kind), given(kind, folder)
    backend = core.caches.registry[cache]
    request = core.Request(
        PROMPTS.get(kind, ""), {"max_new_tokens": NEW, "min_new_tokens": NEW}, media=(path,), cache=cache
    )
    if backend.unsupported_reason(model) or (cache == "sink" and not model.is_encoder_decoder):
        with pytest.raises(errors.CacheError):
            core.run(model, request)
        return
    result = core.run(model, request)
    plan = next((event for event in result.events if isinstance(event, CachePlan)), None)
    measured = [event for event in result.events if isinstance(event, CacheMeasured)][-1]
    if backend.exact:
        assert result.sequences == ours(kind, path, min_new_tokens=NEW).sequences
    if plan is not None and cache == "dynamic":
        assert measured.bytes == dict(zip(plan.lengths, plan.predicted, strict=True))[measured.tokens]


def test_audio_is_encoded_and_the_decoder_starts_with_special_tokens(folder: Path) -> None:
    path = given("whisper", folder)
    started = ours("whisper", path).events[0]
    assert isinstance(started, RunStarted)
    (medium,) = started.media
    assert (medium.kind, medium.place, medium.first, medium.last) == ("sound", "encoder", 0, 79)
    assert (medium.seconds, medium.heard) == (pytest.approx(1.0), 4.0)
    assert [token.id for token in started.prompt] == [3, 60]
    assert not {"is_multilingual", "no_timestamps_token_id", "lang_to_id"} & {name for name, _ in started.settings}


def test_image_is_placed_before_the_text(folder: Path) -> None:
    started = ours("git", given("git", folder)).events[0]
    assert isinstance(started, RunStarted)
    (medium,) = started.media
    assert (medium.kind, medium.place, medium.first, medium.last) == ("picture", "before", 0, 9)
    assert (medium.rows, medium.columns, medium.width, medium.height) == (3, 3, 9, 6)
    assert core.medium_place(medium, 1) == ("patch", 0, 0)


@pytest.mark.parametrize(("asked", "begins"), [
    ({"language": "fr"}, [3, 52, 55, 60]),
    ({"language": "german", "task": "translate"}, [3, 50, 56, 60]),
])  # fmt: skip
def test_language_and_task_are_set_by_special_tokens(asked: dict[str, str], begins: list[int], folder: Path) -> None:
    path = given("languages", folder)
    result = ours("languages", path, **asked)
    assert [token.id for token in result.events[0].prompt] == begins  # type: ignore[attr-defined]
    assert texts(result) == reference(shared("languages"), path, max_new_tokens=NEW, do_sample=False, **asked)


def test_unknown_language_and_timestamps_are_refused(folder: Path) -> None:
    for requested in ({"language": "klingon"}, {"return_timestamps": True}):
        with pytest.raises(errors.ParameterError):
            ours("languages", given("languages", folder), **requested)


def test_text_prompt_of_whisper_equals_its_prompt_ids(folder: Path) -> None:
    path, before = given("languages", folder), [20, 21, 22]
    request = core.Request(before, {"max_new_tokens": NEW, "language": "en"}, media=(path,))
    result = core.run(shared("languages"), request)
    expected = reference(
        shared("languages"), path, max_new_tokens=NEW, do_sample=False, language="en",
        prompt_ids=torch.tensor([57, *before]),
    )  # fmt: skip
    assert texts(result) == [expected[0]]
    with pytest.raises(errors.ParameterError):
        core.run(shared("whisper"), core.Request(before, media=(path,)))


def test_long_audio_is_cut_with_a_notice(folder: Path) -> None:
    path = given("whisper", folder, 9)
    result = ours("whisper", path)
    assert [event.kind for event in result.events if isinstance(event, Notice)] == ["media_cut"]
    features = tiny_media.inputs(shared("whisper"), path)
    assert texts(result) == [
        without_end(row.tolist()) for row in shared("whisper").model.generate(**features, max_new_tokens=NEW)
    ]


@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_branch_of_a_media_run_continues_like_the_run(kind: str, folder: Path) -> None:
    path, settings = given(kind, folder), {"max_new_tokens": 12, "min_new_tokens": 12}
    whole = core.run(shared(kind), core.Request(PROMPTS.get(kind, ""), settings, media=(path,))).sequences[0]
    more = {"max_new_tokens": 7, "min_new_tokens": 7}
    branch = core.Request(PROMPTS.get(kind, ""), more, media=(path,), beginning=whole[:5])
    assert core.run(shared(kind), branch).sequences[0] == whole[5:]


def test_prefixes_are_shared_by_the_same_image_only(folder: Path) -> None:
    store, model = core.PrefixStore(), shared("git")
    first, second = (given("git", folder, number) for number in (0, 1))

    def run(path: str) -> core.Result:
        request = core.Request([1, 20, 21, 22], {"max_new_tokens": NEW}, media=(path,))
        return core.run(model, request, prefixes=store)

    alone = [core.run(model, core.Request([1, 20, 21, 22], {"max_new_tokens": NEW}, media=(path,))).sequences
             for path in (first, second)]  # fmt: skip
    assert run(first).sequences == alone[0]
    other, again = run(second), run(first)
    assert (other.sequences, again.sequences) == (alone[1], alone[0])
    reused = [next(event for event in result.events if hasattr(event, "reused")).reused for result in (other, again)]  # type: ignore[attr-defined]
    assert reused == [0, 3]


def test_replay_step_of_an_audio_run(folder: Path) -> None:
    request = core.Request("", {"max_new_tokens": NEW}, media=(given("whisper", folder),))
    result = core.run(shared("whisper"), request)
    found = core.replay_step(shared("whisper"), request, result.sequences[0], 2, {"repetition_penalty": 1.0})
    assert found.before.id == found.after.id == result.sequences[0][2]


@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_loaded_media_models_refuse_unsupported_input(kind: str, folder: Path, tmp_path: Path) -> None:
    made = shared(kind)
    made.model.save_pretrained(tmp_path)
    made.processor.save_pretrained(tmp_path)
    path = given(kind, folder)
    loaded = core.load(tmp_path, dtype="float32")
    assert isinstance(loaded, core.LoadedModel)
    assert (
        core.run(loaded, core.Request(PROMPTS.get(kind, ""), {"max_new_tokens": NEW}, media=(path,))).sequences
        == ours(kind, path).sequences
    )
    wrong = given("git" if kind == "whisper" else "whisper", tmp_path, 3)
    with pytest.raises(errors.MediaRefusedError):
        core.run(loaded, core.Request("", media=(wrong,)))
    for name in ("preprocessor_config.json", "processor_config.json"):
        (tmp_path / name).write_text("{")
    with pytest.raises(errors.ProcessorMissingError):
        core.load(tmp_path)


@pytest.mark.parametrize("kind", ["whisper", "git", "llava", "blip"])
def test_last_lens_row_equals_the_distribution_of_the_run(kind: str, folder: Path) -> None:
    """Fails if a lens does not receive the media of the run."""
    path = given(kind, folder)
    result = core.run(shared(kind), core.Request(
        PROMPTS.get(kind, ""), {"max_new_tokens": 6, "min_new_tokens": 6, "suppress_tokens": [], "do_sample": False,
                                "begin_suppress_tokens": []}, media=(path,)))  # fmt: skip
    started = result.events[0]
    assert isinstance(started, RunStarted)
    ids = [*(token.id for token in started.prompt), *result.sequences[0]]
    step = len(started.prompt) + 3
    chosen = [event for event in result.events if isinstance(event, TokenChosen)][3]
    (last, one) = (core.lens(shared(kind), ids, step, media=(path,))[-1], ids[step])
    assert last.probability == pytest.approx(chosen.raw_probability, abs=1e-4)
    assert last.rank == chosen.rank
    assert one == chosen.id
    rows = list(core.lens_text(shared(kind), ids, step, media=(path,)))
    assert rows[0][-1].probability == pytest.approx(last.probability, abs=1e-5)
    for row in core.attention(shared(kind), ids, step, media=(path,)):
        assert len(row.shares) == step
        assert sum(row.shares) == pytest.approx(1.0, abs=1e-4) or (kind == "git" and sum(row.shares) < 1)
    with pytest.raises(errors.InsideError):
        core.occlude(shared(kind), ids, step, media=(path,))


def test_scoring_with_an_audio_model_is_refused(folder: Path) -> None:
    with pytest.raises(errors.MediaRefusedError):
        core.score(shared("whisper"), [5, 6, 7])


def test_script_contains_the_media_paths(folder: Path) -> None:
    path = given("git", folder)
    request = core.Request("", {"max_new_tokens": 3}, media=(path,))
    written = core.as_code(request, "core", model=shared("git"))
    assert f'media=["{path}"]' in written
    compile(written, "script", "exec")
    assert core.why_not_generate(request, model=shared("git"))


def test_several_images_are_placed_in_order(folder: Path) -> None:
    paths = [given("qwen", folder, number) for number in range(2)]
    request = core.Request("w10 <|image_pad|> w11 <|image_pad|> w12", {"max_new_tokens": NEW}, media=paths)
    result = core.run(shared("qwen"), request)
    started = result.events[0]
    assert isinstance(started, RunStarted)
    first, second = started.media
    assert started.prompt[first.first - 1].id == 10
    assert started.prompt[second.first - 1].id == 11
    assert first.rows * first.columns == first.last - first.first + 1
    again = core.Request([token.id for token in started.prompt], {"max_new_tokens": NEW}, media=paths)
    assert core.run(shared("qwen"), again).sequences == result.sequences
    with pytest.raises(errors.PromptError):
        core.run(shared("qwen"), core.Request([10, 5, 11], media=paths))


def test_image_does_not_affect_the_next_text(folder: Path) -> None:
    """Qwen's module stores how far a picture shifted the text."""
    model, ids = tiny_media.make("qwen"), [10, 11, 12, 13]
    text = core.Request(ids, {"max_new_tokens": NEW, "min_new_tokens": NEW})
    before = core.run(model, text).sequences
    core.run(model, core.Request("w10", {"max_new_tokens": 3}, media=(given("qwen", folder),)))
    assert core.run(model, text).sequences == before


def test_recorded_run_keeps_its_media(folder: Path, tmp_path: Path) -> None:
    path, file = given("whisper", folder), tmp_path / "run.decodescope"
    request = core.Request("", {"max_new_tokens": 5}, media=(path,))
    events = list(core.record(file, core.stream(shared("whisper"), request), request=request))
    found = core.trace.read(file)
    assert found.events[0] == events[0]
    assert found.header.request["media"] == [path]


@pytest.mark.parametrize(("kind", "positions"), [("whisper", 80), ("captioner", 10), ("git", 10), ("blip", 10)])
def test_memory_estimate_includes_media(kind: str, positions: int, folder: Path) -> None:
    """Fails when the cache of a picture's positions, or of cross-attention, is left out."""
    path, model = given(kind, folder), shared(kind)
    request = core.Request("", {"max_new_tokens": NEW, "min_new_tokens": NEW}, media=(path,))
    result = core.run(model, request)
    plan = next(event for event in result.events if isinstance(event, CachePlan))
    expected = core.estimate(model, request).cache
    assert expected == pytest.approx(plan.predicted[-1], rel=0.1)
    assert expected > positions * 32 * 4 * 2 * model.layers


def test_text_support_of_whisper_follows_its_vocabulary() -> None:
    from decodescope.core.models.modalities import modalities_of

    assert not shared("whisper").modalities.text
    assert modalities_of({"model_type": "whisper", "vocab_size": 51_865}).text
