"""The page of architectures: the stored results still hold, and the page shows them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
)

from tests.core import zoo
from tests.core.native_shapes import SHAPES
from tests.long import slow
from tests.models.__main__ import in_process, raw_in
from tests.models.architecture_page import PAGE, page
from tests.models.media_trial import media_kinds, try_media
from tests.models.native_trial import WEIGHTS
from tests.models.results_file import MEDIA, read, read_folder, read_native, write
from tests.models.trial import RunResult, _compared, try_kind

RESULTS, OF_MEDIA = read(), read(MEDIA)
SOME = ("cohere2", "t5")
"""Windows; an encoder."""


def states(result: dict[str, Any], like: dict[str, Any]) -> dict[str, str]:
    """Return the outcome of every run in `like`; sentences may have changed, and there may be more caches."""
    reported = {name: result["strategies"][name][0] for name in like["strategies"]}
    for strategy, cells in like["caches"].items():
        reported |= {f"{strategy} on {cache}": result["caches"][strategy][cache][0] for cache in cells}
    return reported


def test_page_equals_the_stored_results() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(RESULTS, OF_MEDIA, read_native()), (
        "run python -m tests.models --write"
    )


def test_page_contains_every_native_shape() -> None:
    assert [one["kind"] for one in read_native()] == list(SHAPES)
    assert all({*WEIGHTS} == {*one["weights"]} for one in read_native())


def test_page_contains_every_class_of_transformers() -> None:
    assert {one["kind"] for one in RESULTS} == set(zoo.names())
    assert {one["kind"] for one in OF_MEDIA} == set(media_kinds())
    assert set(zoo.names()) == {*MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, *MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES}


def test_stored_results_contain_no_raw_errors_or_other_texts() -> None:
    assert {one["kind"]: trouble for one in [*RESULTS, *OF_MEDIA] if (trouble := list(raw_in(one)))} == {}


@pytest.mark.every(2)
@pytest.mark.parametrize("kind", SOME)
def test_stored_results_equal_new_ones(kind: str) -> None:
    stored = next(one for one in RESULTS if one["kind"] == kind)
    assert states(try_kind(kind), stored) == states(stored, stored)


@pytest.mark.parametrize("kind", ["speech-encoder-decoder", "voxtral", slow("blip"), slow("llava")])
def test_stored_media_results_equal_new_ones(kind: str) -> None:
    stored, found = next(one for one in OF_MEDIA if one["kind"] == kind), try_media(kind)
    if "skipped" in stored:
        assert found == stored
        return
    assert states(found, stored) == states(stored, stored)


def test_compared_texts_report_the_matching_tokens() -> None:
    assert _compared([1, 2, 3], [1, 2, 3]) == RunResult("equal")
    assert _compared([1, 9, 3], [1, 2, 3]) == RunResult("differs", "1 of 3 tokens are the same")


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", zoo.names())
def test_every_architecture_runs_in_its_own_process(kind: str) -> None:
    """Each in its own process with limits, so that none affects the others."""
    assert not list(raw_in(in_process(kind, try_kind)))


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", media_kinds())
def test_every_media_architecture_runs_in_its_own_process(kind: str) -> None:
    assert not list(raw_in(in_process(kind, try_media)))


def test_stored_results_can_be_read_back(tmp_path: Path) -> None:
    found = {"kind": "b", "strategies": {"greedy": ["refused", "Why."]}, "caches": {"greedy": {"sink": ["equal", ""]}}}
    (tmp_path / "b.json").write_text(json.dumps(found))
    (tmp_path / "a.json").write_text(json.dumps({"kind": "a", "skipped": "Not small."}))
    write(reversed(read_folder(tmp_path)), tmp_path / "kept")
    assert read(tmp_path / "kept") == read_folder(tmp_path)
