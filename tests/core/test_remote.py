"""Models on other machines: requests to each engine and the interpretation of its responses."""

import json
import math
from pathlib import Path

import pytest

from decodescope import core
from decodescope.core.errors import CacheError, EngineRefusedError, ParameterError, StrategyError
from decodescope.core.events import Finished, Notice, Prefilled, RunStarted, SequenceFinished
from decodescope.core.remote.client import Utf8Joiner
from decodescope.core.remote.remote_model import RemoteModel
from decodescope.resources import depth
from tests import fake_remote_engine
from tests.core.remote_requests import GREEDY, chosen_tokens, make_request, model_of
from tests.fake_remote_engine import FakeEngine

SAMPLED = " there was a fox."


@pytest.mark.parametrize("kind", ["vllm", "sglang", "llama.cpp", "llama-cpp-python", "transformers", "other"])
def test_every_engine_is_recognized_and_generates(kind: str) -> None:
    with fake_remote_engine.running(kind) as machine:
        model = core.load(machine.name())
        assert isinstance(model, RemoteModel)
        assert model.kind.name == kind
        greedy = core.run(model, make_request())
        assert greedy.texts == [GREEDY]
        assert [event.id for event in chosen_tokens(greedy.events)] == greedy.sequences[0]
        assert core.run(model, make_request(do_sample=True, top_p=1.0 if kind == "transformers" else 0.9)).texts == [
            SAMPLED
        ]
        chat = core.Request([{"role": "user", "content": "Hello"}], {"max_new_tokens": 5})
        assert core.run(model, chat).texts == [GREEDY]
        assert machine.sent["messages"] == [{"role": "user", "content": "Hello"}]
        started = greedy.events[0]
        assert isinstance(started, RunStarted)
        assert (started.engine, started.model, started.device) == (model.kind.title, "tale-7b", model.place)
        drafts = greedy.metrics.acceptance_rate
        assert drafts == (0.75 if kind in ("llama.cpp", "sglang") else None)


def test_events_contain_only_reported_probabilities(machine: FakeEngine) -> None:
    model = model_of(machine)
    written = chosen_tokens(core.run(model, make_request(do_sample=True, top_k=0)).events)
    third, fourth = written[2:4]
    assert (third.id, third.rank) == (102, 2)
    assert third.raw_probability == third.probability == pytest.approx(0.3)  # nothing acts: the two ends are one
    assert [one.text for one in third.alternatives] == [" the", " a", " an"]
    assert math.isnan(third.entropy)
    assert fourth.rank == 0  # reported in addition to the three likeliest, so its rank is unknown
    assert fourth.raw_probability == pytest.approx(0.02)
    cut = chosen_tokens(core.run(model, make_request(do_sample=True, temperature=0.5)).events)[2]
    assert cut.raw_probability == pytest.approx(0.3)
    assert math.isnan(cut.probability)
    assert all(math.isnan(one.probability) for one in cut.alternatives)


def test_sglang_probabilities_with_temperature_are_not_raw() -> None:
    with fake_remote_engine.running("sglang") as machine:
        model = model_of(machine)
        only = chosen_tokens(core.run(model, make_request(do_sample=True, top_k=0, temperature=0.5)).events)[0]
        assert math.isnan(only.raw_probability)
        assert only.probability == pytest.approx(0.7)
        both = chosen_tokens(core.run(model, make_request(do_sample=True, top_k=9, temperature=0.5)).events)[0]
        assert math.isnan(both.raw_probability)
        assert math.isnan(both.probability)


def test_engine_without_probabilities_causes_a_notice() -> None:
    with fake_remote_engine.running("transformers") as machine:
        events = core.run(model_of(machine), make_request(no_repeat_ngram_size=2)).events
        assert [event.kind for event in events if isinstance(event, Notice)] == ["not_told"]
        first = chosen_tokens(events)[0]
        assert (first.id < 0, first.rank, first.alternatives) == (True, 0, ())
        assert math.isnan(first.raw_probability)
        reported = json.loads(machine.sent["generation_config"])
        assert reported == {"max_new_tokens": 5, "no_repeat_ngram_size": 2, "do_sample": False}


def test_request_is_repeated_without_refused_probabilities(machine: FakeEngine) -> None:
    machine.refusals = [(400, {}, '{"error": {"message": "logprobs are not enabled here"}}')]
    model = model_of(machine)
    first = core.run(model, make_request())
    assert first.texts == [GREEDY]
    assert "logprobs" not in machine.sent
    core.run(model, make_request())
    assert len(machine.asked) == 3  # they are not requested again


SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}
OPENAI = {"type": "json_schema", "json_schema": {"name": "text", "schema": SCHEMA, "strict": True}}


@pytest.mark.parametrize(
    ("kind", "grammar", "sent"),
    [
        ("vllm", {"json_schema": json.dumps(SCHEMA)}, {"structured_outputs": {"json": SCHEMA}}),
        ("vllm", {"regex": "[a-z]+"}, {"structured_outputs": {"regex": "[a-z]+"}}),
        ("vllm", {"choice": ["a", "b"]}, {"structured_outputs": {"choice": ["a", "b"]}}),
        ("sglang", {"json_schema": SCHEMA}, {"json_schema": json.dumps(SCHEMA)}),
        ("sglang", {"regex": "[a-z]+"}, {"regex": "[a-z]+"}),
        ("sglang", {"choice": ["a.", "b|"]}, {"regex": r"(a\.|b\|)"}),
        ("llama.cpp", {"json_schema": SCHEMA}, {"json_schema": SCHEMA}),
        ("llama.cpp", {"choice": ['say "a"', "b"]}, {"grammar": 'root ::= "say \\"a\\"" | "b"'}),
    ],
)
def test_grammar_is_sent_in_the_format_of_each_engine(
    kind: str, grammar: dict[str, object], sent: dict[str, object]
) -> None:
    with fake_remote_engine.running(kind) as machine:
        events = core.run(model_of(machine), make_request(grammar=grammar)).events
        assert machine.sent.get("sampling_params", machine.sent).items() >= sent.items()
        notices = [event.message for event in events if isinstance(event, Notice)]
        assert any("applies the grammar itself" in reported for reported in notices)
        first = chosen_tokens(events)[0]
        assert math.isnan(first.probability)  # the engine does not report its probability after the grammar


def test_unknown_engine_supports_json_schema_in_chats_only() -> None:
    with fake_remote_engine.running("other") as machine:
        model = model_of(machine)
        chat = core.Request(
            [{"role": "user", "content": "Hi"}], {"max_new_tokens": 5, "grammar": {"json_schema": SCHEMA}}
        )
        core.run(model, chat)
        assert machine.sent["response_format"] == OPENAI
        with pytest.raises(ParameterError, match="does not support this kind of grammar: JSON schema"):
            core.run(model, make_request(grammar={"json_schema": SCHEMA}))


@pytest.mark.parametrize(("kind", "grammar"), [("vllm", {"lark": 'start: "a"'}), ("llama.cpp", {"regex": "a"})])
def test_unsupported_grammar_is_refused(kind: str, grammar: dict[str, object]) -> None:
    with fake_remote_engine.running(kind) as machine:
        with pytest.raises(ParameterError, match="does not support this kind of grammar"):
            core.run(model_of(machine), make_request(grammar=grammar))
        assert not machine.asked


def test_grammar_with_a_beginning_is_refused(machine: FakeEngine) -> None:
    request = core.Request("Once", {"max_new_tokens": 5, "grammar": {"choice": ["a"]}}, beginning=[" there"])
    with pytest.raises(ParameterError, match="starts the grammar with its answer"):
        core.run(model_of(machine), request)


def test_settings_are_sent_in_the_format_of_each_engine() -> None:
    with fake_remote_engine.running("llama.cpp") as machine:
        core.run(model_of(machine), make_request(do_sample=True, temperature=0.7, min_p=0.1, repetition_penalty=1.2))
        sent = machine.sent
        assert (sent["temperature"], sent["min_p"], sent["repeat_penalty"], sent["top_k"]) == (0.7, 0.1, 1.2, 50)
        assert (sent["typical_p"], sent["n_probs"]) == (1.0, 3)
        length = core.load(machine.name()).context or 2**17
        assert (sent["repeat_last_n"], sent["dry_penalty_last_n"]) == (length, length)  # it refuses -1
    with fake_remote_engine.running("llama-cpp-python") as machine:
        core.run(model_of(machine), make_request())  # disabled settings are sent: the engine's defaults differ
        assert (machine.sent["repeat_penalty"], machine.sent["temperature"], machine.sent["logprobs"]) == (1.0, 0.0, 3)
        core.run(model_of(machine), make_request(do_sample=True))
        sent = machine.sent
        assert (sent["top_k"], sent["top_p"], sent["min_p"], sent["temperature"]) == (50, 1.0, 0.0, 1.0)
    with fake_remote_engine.running("vllm") as machine:
        request = core.Request(
            "Once", {"do_sample": True, "top_k": 0, "stop_strings": ["."], "min_new_tokens": 2}, seed=7
        )
        events = core.run(model_of(machine), request).events
        sent = machine.sent
        assert (sent["top_k"], sent["stop"], sent["min_tokens"], sent["seed"]) == (-1, ["."], 2, 7)
        assert [event.stop_string for event in events if isinstance(event, SequenceFinished)] == ["."]
        assert [event.tokens for event in events if isinstance(event, Prefilled)] == [4]


def test_unsupported_features_are_refused_by_name() -> None:
    with fake_remote_engine.running("other") as machine:
        model = model_of(machine)
        for request, error, words in (
            (core.Request("Once", strategy="beam_search"), StrategyError, "not the steps of its beams"),
            (core.Request("Once", {"num_beams": 3}), StrategyError, "not the steps of its beams"),
            (core.Request("Once", strategy="prompt_lookup"), StrategyError, "cannot verify our drafts"),
            (core.Request("Once", strategy="contrastive"), StrategyError, "reports only tokens"),
            (core.Request("Once", cache="static"), CacheError, "its own cache"),
            (make_request(no_repeat_ngram_size=2), ParameterError, "no_repeat_ngram_size"),
            (make_request(wonder=2), ParameterError, "wonder"),
            (make_request(do_sample=True, top_k=50), ParameterError, "top_k"),
            (make_request(temperature=-1.0), ParameterError, "temperature"),
        ):
            with pytest.raises(error, match=words):
                core.run(model, request)
        assert machine.asked == []
        assert set(model.refused_strategies()) == set(core.strategies.registry) - {"greedy", "sampling"}
        assert set(model.refused_caches()) == set(core.caches.registry) - {"dynamic"}
        assert "top_k" in model.refused_settings()
        assert "temperature" not in model.refused_settings()


def test_several_sequences_are_requested_at_once(machine: FakeEngine) -> None:
    result = core.run(model_of(machine), make_request(do_sample=True, num_return_sequences=2))
    assert result.texts == [SAMPLED, SAMPLED]
    assert machine.sent["n"] == 2


def test_branch_continues_from_reported_tokens(machine: FakeEngine) -> None:
    model = model_of(machine)
    first = core.run(model, make_request())
    again = core.Request("Once upon a time", {"max_new_tokens": 5}, beginning=[*first.sequences[0][:2], " very"])
    core.run(model, again)
    assert machine.sent["prompt"] == "Once upon a time there was very"
    for beginning in ([4711], 5, [None]):
        with pytest.raises(ParameterError, match="has not reported"):
            core.run(model, core.Request("Once", beginning=beginning))


def test_characters_split_over_tokens_are_joined() -> None:
    wolf = "🐺".encode()
    halves = (wolf[:2].decode("utf-8", "surrogateescape"), wolf[2:].decode("utf-8", "surrogateescape"))
    story = tuple((piece, 0.5, {piece: 0.5}) for piece in ("Der", *halves, "ü"))
    for kind in ("llama.cpp", "vllm"):
        with fake_remote_engine.running(kind, story=story, cut_bytes=True) as machine:
            result = core.run(model_of(machine), make_request())
            assert result.texts == ["Der🐺ü"]
            reported = chosen_tokens(result.events)
            assert [event.text for event in reported] == ["Der", "", "🐺", "ü"]
            if kind == "llama.cpp":
                assert [event.piece for event in reported] == ["Der", "⟨F0⟩⟨9F⟩", "⟨90⟩⟨BA⟩", "ü"]
    joiner = Utf8Joiner()
    assert [joiner.push(half) for half in ("a\ud83d", "\udc3a", "\ud83d")] == ["a", "🐺", ""]
    assert joiner.flush() == "\ufffd"


def test_recorded_remote_run_is_identical(machine: FakeEngine, tmp_path: Path) -> None:
    model = model_of(machine)
    seen = list(
        core.record(
            tmp_path / "run.trace", core.stream(model, make_request(do_sample=True, temperature=0.5)), make_request()
        )
    )
    stored = list(core.replay(tmp_path / "run.trace"))
    assert repr(stored) == repr(seen)  # NaN is not equal to itself
    page = core.page_text(stored)
    assert "NaN" not in page.split("</script>")[0]


def test_given_text_is_scored_by_engines_that_support_it(machine: FakeEngine) -> None:
    model = model_of(machine)
    events = list(core.score_stream(model, "Once upon a time", 3))
    scored = chosen_tokens(events)
    assert [(event.piece, event.method) for event in scored] == [(p, "scored") for p in (" upon", " a", " time")]
    assert scored[0].raw_probability == pytest.approx(0.5)
    assert [one.text for one in scored[0].alternatives] == [" upon", " other"]
    assert isinstance(events[-1], Finished)
    assert events[-1].texts == (" upon a time",)
    after_it = core.score(model, " a time", 3, given="Once upon")
    assert [event.piece for event in after_it] == [" a", " time"]
    with (
        fake_remote_engine.running("llama.cpp") as other,
        pytest.raises(EngineRefusedError, match="does not report probabilities"),
    ):
        core.score(model_of(other), "Once upon a time")


def test_explanations_use_only_reported_probabilities(machine: FakeEngine) -> None:
    model = model_of(machine)
    plain = chosen_tokens(core.run(model, make_request(do_sample=True, top_k=0)).events)
    assert core.explain_token(plain[0]) == "“there” had 70 % in the raw distribution, the highest of all."
    assert "the second most likely" in core.explain_token(plain[2])
    assert "is not among the 3 most likely that the engine reported" in core.explain_token(plain[3])
    warm = chosen_tokens(core.run(model, make_request(do_sample=True, temperature=0.5)).events)[0]
    assert core.explain_token(warm).endswith("The engine does not report its probability after the settings.")
    given = core.score(model, "Once upon", 3)[0]
    assert core.explain_token(given).endswith("It is part of the given text.")
    with fake_remote_engine.running("transformers") as silent:
        untold = core.run(model_of(silent), make_request()).events
    assert "without reporting its probability" in core.explain_token(chosen_tokens(untold)[0])
    for name in depth.DEPTHS:
        with depth.depth_context(name):
            assert "nan" not in "".join(map(core.explain_token, [*plain, warm, given, *chosen_tokens(untold)]))
    page = core.page_text(untold)
    assert "NaN" not in page
    assert "transformers serve" in page
