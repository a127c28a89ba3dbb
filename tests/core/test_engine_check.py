"""The sequential test of an engine: the program's own server, without and with a planted fault."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from decodescope import core
from decodescope.core.differences import engine_check
from decodescope.core.errors import ComparisonError, EngineError
from decodescope.core.events import Event
from decodescope.core.remote.remote_model import RemoteModel
from decodescope.core.remote.responses import TokenTable
from decodescope.core.server import HttpServer, ServedModel, new_key
from tests import fake_remote_engine

REQUEST = core.Request("Once upon a time", seed=5)


@contextmanager
def _served(model: core.LoadedModel, **planted: object) -> Iterator[RemoteModel]:
    """The model behind HTTP; `planted` settings are applied in secret, and reported probabilities are the model's."""

    def run(request: core.Request, cancel: threading.Event) -> Iterator[Event]:
        changed = request.with_settings(planted) if request.settings.get("max_new_tokens") != 1 else request
        return core.stream(model, changed, cancel)

    server = HttpServer(ServedModel(model.name, model.context), run, key=new_key())
    server.start()
    try:
        engine = core.load(server.address, key=server.key)
        assert isinstance(engine, RemoteModel)
        yield engine
    finally:
        server.stop()


def test_honest_engine_is_not_rejected_and_its_ranks_are_as_expected(storyteller: core.LoadedModel) -> None:
    states = list[core.EngineCheck]()
    with _served(storyteller) as engine:
        found = core.check_engine(engine, REQUEST, answers=12, tokens=6, progress=states.append)
    assert not found.is_rejected
    assert [state.answers for state in states] == list(range(1, 13))
    assert found.tokens == len(found.evidence) == sum(group.drawn for group in found.ranks) >= 60
    assert sum(group.expected for group in found.ranks) == pytest.approx(found.tokens)
    assert found.sentence.startswith("No sign of a difference after 12 answers")


def test_engine_with_a_wrong_temperature_is_rejected_and_the_temperature_named(storyteller: core.LoadedModel) -> None:
    with _served(storyteller, temperature=0.5) as engine:
        found = core.check_engine(engine, REQUEST, answers=60, tokens=8)
    assert found.is_rejected
    assert found.p_value <= 0.05
    assert found.answers < 60
    assert found.temperature in (0.5, 0.7)
    assert "differ" in found.sentence


def test_stopped_test_keeps_the_whole_answers(storyteller: core.LoadedModel) -> None:
    cancel = threading.Event()

    def stop(state: core.EngineCheck) -> None:
        if state.answers == 2:
            cancel.set()

    with _served(storyteller) as engine:
        found = core.check_engine(engine, REQUEST, answers=50, tokens=4, cancel=cancel, progress=stop)
    assert (found.answers, found.is_rejected) == (2, False)


def test_engine_without_probabilities_is_refused_by_name() -> None:
    with fake_remote_engine.running("transformers") as machine:
        engine = core.load(machine.name())
        with pytest.raises(EngineError, match="does not report the probabilities"):
            core.check_engine(engine, core.Request("Once"), answers=3)


def test_reference_with_other_tokens_is_refused(storyteller: core.LoadedModel) -> None:
    from tests.core import tiny as models

    with _served(storyteller) as engine, pytest.raises(ComparisonError, match="not those of"):
        core.check_engine(engine, REQUEST, models.make("llama"), answers=2)


@pytest.mark.parametrize("shown", ["", "</s>"])
def test_end_token_without_its_own_text_is_no_other_token(
    storyteller: core.LoadedModel, monkeypatch: pytest.MonkeyPatch, shown: str
) -> None:
    run = core.stream(storyteller, REQUEST.with_settings({"max_new_tokens": 4}))
    tokens = [event for event in run if isinstance(event, core.events.TokenChosen)]
    end = min(storyteller.pieces.special & set(storyteller.generation_config.eos_token_id))
    tokens.append(replace(tokens[-1], id=end, text=shown))
    monkeypatch.setattr(engine_check, "_draw", lambda *_args: engine_check._DrawnAnswer(tokens, True, 5, True))
    with _served(storyteller) as engine:
        assert core.check_engine(engine, REQUEST, storyteller, answers=1, stops_early=False).tokens == 5


def test_end_tokens_that_are_never_reported_are_no_false_alarm() -> None:
    """Answers that end are shorter, not sharper: the outcome that is not seen has no bets."""
    p, random, alarms = np.array([0.3, 0.25, 0.1, 0.35]), np.random.default_rng(2), 0
    for _ in range(60):
        test = core.SequentialTest(0.05)
        for token in random.choice(4, 300, p=p):
            if token != 3:
                test.add(int(token), p, unseen=[3])
        alarms += test.is_rejected
    assert alarms <= 9
    careless = core.SequentialTest(0.05)
    for token in random.choice(4, 600, p=p):
        if token != 3:
            careless.add(int(token), p)
    assert careless.is_rejected


def test_wealth_with_contexts_and_unseen_outcomes_is_a_fair_game() -> None:
    """Over all outcomes of a step, an unseen one included, the expected factor is 1."""
    shares = {"a": np.array([0.5, 0.2, 0.3]), "b": np.array([0.05, 0.9, 0.05])}

    def wealth(tokens: tuple[tuple[str, int], ...]) -> float:
        test = core.SequentialTest()
        for context, token in tokens:
            if token != 2:
                test.add(token, shares[context], context=context, unseen=[2])
        return float(np.exp(test.log_wealth))

    for past in itertools.product((("a", 0), ("b", 1)), repeat=3):
        for context, p in shares.items():
            expected = sum(chance * wealth((*past, (context, token))) for token, chance in enumerate(p))
            assert expected == pytest.approx(wealth(past))


@pytest.mark.parametrize("hidden", [0.0, 0.1, 0.35])
@pytest.mark.parametrize("past", [(0, 0, 0, 1), (2, 2, 2, 0), (0, 1, None, 0)])
def test_wealth_does_not_grow_when_part_of_an_outcome_is_not_reported(
    hidden: float, past: tuple[int | None, ...]
) -> None:
    """The rest (outcome 2) includes end tokens with the probability `hidden`, which the engine leaves out."""
    p = np.array([0.4, 0.25, 0.35])

    def wealth(tokens: tuple[int | None, ...]) -> float:
        test = core.SequentialTest()
        for token in tokens:
            if token is None:
                test.add_unreported()
            else:
                test.add(token, p, doubtful=[2], sizes=np.array([1, 1, 30]))
        return float(np.exp(test.log_wealth))

    chances = [(0, 0.4), (1, 0.25), (2, 0.35 - hidden), (None, hidden)]
    assert sum(chance * wealth((*past, token)) for token, chance in chances) <= wealth(past) * (1 + 1e-9)


def test_engine_that_never_draws_outside_its_list_is_rejected_until_it_may_have_left_out_tokens() -> None:
    p, test = np.array([0.5, 0.2, 0.3]), core.SequentialTest()
    while not test.is_rejected and test.count < 100:
        test.add(test.count % 3 // 2, p, doubtful=[2])
    assert test.is_rejected
    careful = core.SequentialTest()
    careful.add_unreported()
    for number in range(100):
        careful.add(number % 7 // 5, p, doubtful=[2])
    assert not careful.is_rejected


def test_reported_probabilities_with_a_sum_above_one_are_refused(storyteller: core.LoadedModel) -> None:
    request = REQUEST.with_settings({"max_new_tokens": 2})
    events = [event for event in core.stream(storyteller, request) if isinstance(event, core.events.TokenChosen)]
    engine = RemoteModel.__new__(RemoteModel)
    engine.kind, engine.words = core.remote.engines.registry["vllm"], TokenTable()
    answer = engine_check._DrawnAnswer(events, True, 2)
    for one in events[0].alternatives:
        engine.words.id_of(one.text, one.id)
    assert engine_check._reported_steps(engine, replace(answer, tokens=events[:1]))
    wrong = tuple(replace(one, raw_probability=0.9) for one in events[0].alternatives)
    with pytest.raises(EngineError, match="does not report the probabilities"):
        engine_check._reported_steps(engine, replace(answer, tokens=[replace(events[0], alternatives=wrong)]))


def test_character_of_several_tokens_without_ids_ends_the_steps_with_a_reference(storyteller: core.LoadedModel) -> None:
    events = [event for event in core.stream(storyteller, REQUEST.with_settings({"max_new_tokens": 4}))
              if isinstance(event, core.events.TokenChosen)]  # fmt: skip
    events[2] = replace(events[2], id=-3210, text=" 🌪", piece=" 🌪")
    hidden, cancel = engine_check._hidden_tokens(storyteller), threading.Event()
    assert set(storyteller.generation_config.eos_token_id) <= set(hidden)
    engine = RemoteModel.__new__(RemoteModel)
    engine.kind = core.remote.engines.registry["llama.cpp"]
    found = engine_check._computed_steps(engine, storyteller, REQUEST, events, hidden, cancel)
    assert [step.place for step in found] == [0, 1]
    assert [step.index for step in found] == [event.id for event in events[:2]]
    engine.kind = core.remote.engines.registry["vllm"]
    with pytest.raises(ComparisonError, match="not those of"):
        engine_check._computed_steps(engine, storyteller, REQUEST, events, hidden, cancel)


@pytest.mark.slow
def test_false_alarms_are_rare_when_the_test_is_watched_all_the_time() -> None:
    """Distributions that change at each token; at most 5 % of 400 tests ever reject."""
    random, alarms = np.random.default_rng(7), 0
    for _ in range(400):
        test = core.SequentialTest(0.05)
        for step in range(200):
            p = random.dirichlet(np.full(12, 0.3))
            if test.add(int(random.choice(12, p=p)), p, context=step % 5):
                alarms += 1
                break
    assert alarms <= 400 * 0.05 + 3 * np.sqrt(400 * 0.05 * 0.95)


def test_flatter_answers_are_found_without_a_repeated_context() -> None:
    random, test = np.random.default_rng(1), core.SequentialTest(0.05)
    for step in range(400):
        p = random.dirichlet(np.full(12, 0.5))
        flat = p ** (1 / 1.5) / np.sum(p ** (1 / 1.5))
        if test.add(int(random.choice(12, p=flat)), p, context=step):
            break
    assert test.is_rejected
    assert test.likeliest_temperature in (1.2, 1.5, 2.0)
    assert replace(core.EngineCheck(0.05), is_rejected=True, temperature=1.5, p_value=1e-7).sentence.count("10^-6") == 1
