"""Every listed audio and image family, token for token against its own `generate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers.models.auto.image_processing_auto import IMAGE_PROCESSOR_MAPPING_NAMES
from transformers.models.auto.processing_auto import PROCESSOR_MAPPING_NAMES

from decodescope import core
from decodescope.core import errors
from decodescope.core.events import RunStarted, TokenChosen
from decodescope.core.models.modalities import _FAMILIES, _LIBRARIES
from decodescope.core.models.text_decoder import cache_name
from tests.core import media_families, tiny_media
from tests.core.test_media_models import BEAMS, WAYS, ours, texts
from tests.core.tiny_media import PROMPTS, given, reference, shared
from tests.core.versions import skip_other_draws
from tests.long import every, slow

NEW = 14
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation")  # of PaliGemma's processor, from numpy
KINDS = tuple(media_families.MAKERS)
CACHES = ("static", "offloaded", "offloaded_static", "quantized", "sliding_window", "encoder_decoder", "sink",
          "model_specific")  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("families")


@pytest.mark.every(3)
@pytest.mark.parametrize("kind", KINDS)
def test_greedy_equals_generate(kind: str, folder: Path) -> None:
    sure = []
    for number in range(2):
        path = given(kind, folder, number)
        result = ours(kind, path)
        assert texts(result) == reference(shared(kind), path, max_new_tokens=NEW, do_sample=False)
        sure.append(next(event.raw_probability for event in result.events if isinstance(event, TokenChosen)))
    assert sure[0] != pytest.approx(sure[1], rel=1e-4)  # the media determine the text


@pytest.mark.parametrize(("kind", "name"), every(7, [(kind, name) for kind in KINDS for name in (*BEAMS, "sampling")]))
def test_beams_and_sampling_equal_generate(kind: str, name: str, folder: Path) -> None:
    path = given(kind, folder)
    plain = {"do_sample": True, "top_k": 0, "temperature": 0.8, "num_return_sequences": 3}
    settings: dict[str, Any] = dict(BEAMS.get(name, plain))
    skip_other_draws(settings)
    torch.manual_seed(5)
    expected = reference(shared(kind), path, max_new_tokens=NEW, **settings)
    assert texts(ours(kind, path, seed=5, **settings)) == expected


def greedily(kind: str, path: str, **more: Any) -> list[list[int]]:
    """Return our greedy text of fixed length with the given strategy and cache."""
    settings = {"max_new_tokens": NEW, "min_new_tokens": NEW, **more.pop("config", {})}
    request = core.Request(PROMPTS.get(kind, ""), settings, media=(path,), **more)
    return core.run(shared(kind), request).sequences


@pytest.mark.parametrize(("kind", "way"), every(13, [(kind, way) for kind in KINDS for way in WAYS]))
def test_every_lossless_strategy_gives_the_greedy_text_or_a_reason(kind: str, way: str, folder: Path) -> None:
    requested, path = dict(WAYS[way]), given(kind, folder)
    drafters = [tiny_media.make(kind, seed=1)] if way in ("assisted", "token tree") else []
    try:
        found = greedily(kind, path, drafters=drafters, **requested)
    except (errors.StrategyError, errors.CacheError):
        assert way not in ("beam of one", "contrastive without contrast")
        return
    assert found == greedily(kind, path, strategy="greedy")


@pytest.mark.parametrize(("kind", "cache"), every(17, [(kind, cache) for kind in KINDS for cache in CACHES]))
def test_every_cache_gives_the_same_text_or_a_reason(kind: str, cache: str, folder: Path) -> None:
    path, backend = given(kind, folder), core.caches.registry[cache]
    try:
        found = greedily(kind, path, strategy="greedy", cache=cache)
    except errors.CacheError:
        assert backend.unsupported_reason(shared(kind)) or cache == "sink"
        return
    if backend.exact:
        assert found == greedily(kind, path, strategy="greedy")


@pytest.mark.parametrize("kind", every(5, KINDS))
def test_model_loaded_from_its_folder_generates_the_same(kind: str, folder: Path, tmp_path: Path) -> None:
    made, path = shared(kind), given(kind, folder)
    made.model.save_pretrained(tmp_path)
    made.processor.save_pretrained(tmp_path)
    loaded = core.load(tmp_path, dtype="float32")
    assert isinstance(loaded, core.LoadedModel)
    request = core.Request(PROMPTS.get(kind, ""), {"max_new_tokens": NEW}, media=(path,))
    assert core.run(loaded, request).sequences == ours(kind, path).sequences


@pytest.mark.parametrize("kind", ["qwen2_5_vl", slow("qwen3_vl")])
def test_image_from_an_earlier_generate_call_has_no_effect(kind: str, folder: Path) -> None:
    """Fails if the probe of a module's memory continues after an image that `generate` received."""
    model, path = tiny_media.make(kind), given(kind, folder)
    expected = reference(model, path, max_new_tokens=NEW, do_sample=False)
    request = core.Request(PROMPTS[kind], {"max_new_tokens": NEW}, media=(path,))
    assert texts(core.run(model, request)) == expected


def test_family_without_its_library_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "mistral3"}')
    with pytest.raises(errors.UnknownArchitectureError, match="torchvision"):
        core.load(tmp_path)


def test_families_listed_with_a_library_still_require_it() -> None:
    """Fails if transformers no longer requires the library, so that the family can be tried."""
    for kind, library in _LIBRARIES.items():
        known = IMAGE_PROCESSOR_MAPPING_NAMES.get(kind, {})
        whole = getattr(transformers, PROCESSOR_MAPPING_NAMES[kind])
        assert "pil" not in known or getattr(whole, "is_dummy", False), kind
        assert library == "torchvision" or getattr(whole, "is_dummy", False), kind


def test_listed_families_equal_the_tested_ones() -> None:
    """Those of test_media_models by the model types that its makers have."""
    elsewhere = {"whisper", "git", "vision-encoder-decoder", "llava", "qwen2_vl"}
    assert {*_FAMILIES} == {*media_families.MAKERS, *elsewhere}


def _begun(model: core.LoadedModel, path: str, ids: list[int], **settings: Any) -> list[list[int]]:
    """Return what BLIP's `generate` writes after a text: the start token replaces the first, the last is dropped."""
    given_ids = torch.tensor([[9, *ids, 9]])
    out = model.model.generate(**tiny_media.inputs(model, path), input_ids=given_ids, max_new_tokens=NEW, **settings)
    return [tiny_media.without_end(row[1 + len(ids) :].tolist()) for row in out]


@pytest.mark.parametrize("name", ["greedy", *BEAMS])
def test_caption_continues_a_text_prompt(name: str, folder: Path) -> None:
    model, path, ids = shared("blip"), given("blip", folder), [20, 21, 22]
    settings = dict(BEAMS.get(name, {}))
    skip_other_draws(settings)
    torch.manual_seed(3)
    expected = _begun(model, path, ids, **settings)
    for prompt in (ids, [1, *ids]):
        request = core.Request(prompt, {"max_new_tokens": NEW, **settings}, media=(path,), seed=3)
        result = core.run(model, request)
        assert texts(result) == expected
    assert expected != texts(ours("blip", path, **settings))
    started = result.events[0]
    assert isinstance(started, RunStarted)
    assert [token.id for token in started.prompt] == [1, *ids]


def test_caption_prompt_is_encoded_without_special_tokens(folder: Path, tmp_path: Path) -> None:
    network, processor = media_families.MAKERS["blip"]()
    network.save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    media_families.words().save_pretrained(tmp_path)
    loaded = core.load(tmp_path, dtype="float32")
    assert isinstance(loaded, core.LoadedModel)
    path = given("blip", folder)
    result = core.run(loaded, core.Request("w20 w21 w22", {"max_new_tokens": NEW}, media=(path,)))
    assert texts(result) == _begun(loaded, path, [20, 21, 22])
    packed = core.load(tmp_path, weights="int8")
    assert packed.weights == "int8"
    assert core.run(packed, core.Request("w20", {"max_new_tokens": 3}, media=(path,))).sequences[0]


def test_wrapping_blip_leaves_the_network_unchanged() -> None:
    network, processor = media_families.MAKERS["blip"]()
    wrapped = core.wrap(network, processor=processor)
    assert wrapped.is_encoder_decoder
    assert not network.config.is_encoder_decoder
    assert type(network).__name__ == "BlipForConditionalGeneration"
    assert next(network.parameters()) is next(wrapped.model.parameters())


def test_blip_question_answering_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "blip", "architectures": ["BlipForQuestionAnswering"]}')
    with pytest.raises(errors.UnknownArchitectureError, match="takes images"):
        core.load(tmp_path)


def test_generated_image_token_does_not_insert_an_image(folder: Path) -> None:
    """Fails if the text after such a token is read in one pass with the image."""
    path, settings = given("llava_next", folder), {"max_new_tokens": 6, "min_new_tokens": 6}
    begun = [20, 4, 21]  # 4 is the mark
    request = core.Request(PROMPTS["llava_next"], settings, media=(path,), beginning=begun)
    given_ids = tiny_media.inputs(shared("llava_next"), path)
    cache = transformers.DynamicCache(config=shared("llava_next").config)
    with torch.inference_mode():
        network = shared("llava_next").model
        network(**given_ids, **{cache_name(network): cache})
        for token in begun:
            logits = network(input_ids=torch.tensor([[token]]), **{cache_name(network): cache}).logits
    assert core.run(shared("llava_next"), request).sequences[0][0] == int(logits[0, -1].argmax())


@pytest.mark.every(4)
@pytest.mark.parametrize("kind", media_families.SEEING)
def test_wrapped_image_model_without_processor_reads_text_as_the_loaded_folder_does(kind: str, tmp_path: Path) -> None:
    network, _processor = media_families.MAKERS[kind]()
    network.save_pretrained(tmp_path)
    request = core.Request([11, 12, 13], {"max_new_tokens": 4})
    try:
        loaded = core.load(tmp_path, device="cpu")
    except errors.ModelError:  # it does not write without an image
        with pytest.raises(errors.UnknownArchitectureError, match="without its processor"):
            core.wrap(network)
        return
    wrapped = core.wrap(network)
    assert not wrapped.modalities.media
    assert core.run(wrapped, request).sequences == core.run(loaded, request).sequences  # type: ignore[arg-type]
