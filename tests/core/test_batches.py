"""`run_many` and `score_many` give the results of single calls."""

from __future__ import annotations

import threading

import pytest

from decodescope import core
from decodescope.core.errors import ParameterError, TextTooLongError
from decodescope.core.generation import batches
from tests.core import tiny


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma3", "mamba", "t5"])
def test_scores_of_a_batch_equal_single_ones(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.shared(kind)
    monkeypatch.setattr(batches, "MAX_BATCH_TOKENS", 60)  # several batches, one of a single text
    texts = [tiny.prompt(length, length) for length in (3, 9, 4, 30, 9, 2)]
    given = [None, tiny.prompt(5), None, None, tiny.prompt(2, 1), None]
    many = core.score_many(model, texts, 3, given=given)
    for found, text, before in zip(many, texts, given, strict=True):
        single = core.score(model, text, 3, given=before)
        assert [(one.id, one.rank, one.text) for one in found] == [(one.id, one.rank, one.text) for one in single]
        assert [one.raw_log_probability for one in found] == pytest.approx(
            [one.raw_log_probability for one in single], abs=2e-3 if kind == "mamba" else 1e-4
        )
        assert [type(event) for event in found.events] == [type(event) for event in single.events]
        assert [one.alternatives[0].id for one in found] == [one.alternatives[0].id for one in single]


def test_short_texts_are_read_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    read, seen = batches._read_batch, list[int]()

    def counted(model: core.LoadedModel, batch: list[object]) -> object:
        seen.append(len(batch))
        return read(model, batch)  # type: ignore[arg-type]

    monkeypatch.setattr(batches, "_read_batch", counted)
    core.score_many(tiny.shared("llama"), [tiny.prompt(4, seed) for seed in range(5)])
    assert seen == [5]


def test_results_of_many_requests_equal_single_ones() -> None:
    model = tiny.shared("llama")
    settings = {"max_new_tokens": 5, "do_sample": True}
    requests = [core.Request(tiny.prompt(6, seed), settings, seed=seed) for seed in range(4)]
    assert [one.sequences for one in core.run_many(model, requests)] == [
        core.run(model, request).sequences for request in requests
    ]


def test_cancelled_batches_end_early() -> None:
    model, cancel = tiny.shared("llama"), threading.Event()
    cancel.set()
    assert core.run_many(model, [core.Request([5, 6])], cancel=cancel) == []
    assert core.score_many(model, [[5, 6], [6, 5]], cancel=cancel) == []


@pytest.mark.parametrize(
    ("arguments", "more"),
    [
        (("text",), {}), ((5,), {}), (([[5, 6]],), {"given": []}), (([[5, 6]],), {"in_flight": 0}),
        (([[5, 6]],), {"in_flight": True}), (([[5, 6]],), {"given": "x"}),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(arguments: tuple[object], more: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        core.score_many(tiny.shared("llama"), *arguments, **more)  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        core.run_many(tiny.shared("llama"), "text")  # type: ignore[arg-type]


def test_text_beyond_the_context_is_refused() -> None:
    with pytest.raises(TextTooLongError):
        core.score_many(tiny.shared("llama"), [[5, 6], [5] * 300])
