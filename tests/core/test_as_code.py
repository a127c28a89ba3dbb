"""Copy as code: the scripts run and generate the text of the run."""

from __future__ import annotations

import contextlib
import io
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig, WatermarkingConfig

from decodescope import core, resources
from decodescope.core.code.python_literals import literal, multiline_literal
from decodescope.core.models.loaded_model import load
from tests.core import gguf_models, tiny

WORDS = "Once upon a time, in a small house"
TALK = [{"role": "user", "content": 'Tell me of the "old" wolf.\nPlease!'}]


@cache
def bundled(name: str) -> core.LoadedModel:
    return load(name)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tiny models as folders: without a tokenizer, which prompts of ids do not need."""
    root = tmp_path_factory.mktemp("models")
    for kind in ("llama", "mistral", "t5", "mamba"):
        tiny.shared(kind).model.save_pretrained(root / kind)
    return root


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts find their models loaded already: many of them load the same ones."""
    monkeypatch.setattr(core, "load", bundled)
    for loader in (AutoModelForCausalLM, AutoTokenizer):
        monkeypatch.setattr(loader, "from_pretrained", partial(_kept, loader.from_pretrained))


_LOADED: dict[tuple[str, str], Any] = {}


def _kept(load: Any, place: str, **how: Any) -> Any:
    key = (place, repr((load, how)))
    if key not in _LOADED:
        _LOADED[key] = load(place, **how)
    return _LOADED[key]


def execute(script: str) -> tuple[dict[str, Any], str]:
    """The names that a script leaves, and what it prints."""
    names: dict[str, Any] = {}
    received = io.StringIO()
    with contextlib.redirect_stdout(received):
        exec(compile(script, "script.py", "exec"), names)
    return names, received.getvalue()


def written(names: dict[str, Any]) -> list[list[int]]:
    """New tokens of `outputs`, without the padding after the end."""
    start = 1 if names["model"].config.is_encoder_decoder else names["inputs"]["input_ids"].shape[1]
    return [row[start:].tolist() for row in names["outputs"]]


CASES: dict[str, dict[str, Any]] = {
    "greedy": {"strategy": "greedy"},
    "penalties": {"strategy": "greedy", "config": {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2}},
    "sampling": {"strategy": "sampling", "seed": 7, "config": {"temperature": 0.8, "top_k": 0, "top_p": 0.9}},
    "texts": {"strategy": "sampling", "seed": 3, "config": {"num_return_sequences": 2}},
    "beam_search": {"strategy": "beam_search", "config": {"num_beams": 3, "length_penalty": 0.5}},
    "beam_sampling": {"strategy": "beam_sampling", "seed": 5, "config": {"num_beams": 3}},
    "beams by flags": {"config": GenerationConfig(num_beams=3, num_return_sequences=2)},
    "prompt_lookup": {"strategy": "prompt_lookup"},
    "early_exit": {"strategy": "early_exit", "config": {"num_assistant_tokens": 3}},
    "assisted": {"strategy": "assisted", "drafters": ("storyteller-draft",), "config": {"num_assistant_tokens": 4},
                 "options": {"schedule": "heuristic_transient"}},
    "static": {"strategy": "greedy", "cache": "static", "cache_options": {"max_cache_len": 128}},
    "stop": {"strategy": "greedy", "config": {"stop_strings": ["\n", "the"]}},
    "ids": {"strategy": "greedy", "prompt": [5, 9, 77, 300]},
    "empty": {"strategy": "greedy", "prompt": ""},
    "steered": {"strategy": "greedy", "config": {"guidance_scale": 1.5}, "negative_prompt": "A dark wood"},
    "watermark": {"strategy": "greedy", "config": {"watermarking_config": WatermarkingConfig(bias=2.0)}},
}  # fmt: skip


def request_of(case: dict[str, Any]) -> tuple[core.Request, tuple[str, ...]]:
    fields = {"prompt": WORDS, **case}
    drafters = fields.pop("drafters", ())
    config = fields.get("config", {})
    if isinstance(config, dict):
        fields["config"] = {"max_new_tokens": 10, **config}
    else:
        config.max_new_tokens = 10
    return core.Request(**fields), drafters


def run(request: core.Request, model: core.LoadedModel, drafters: tuple[str, ...] = ()) -> core.Result:
    return core.run(model, request, drafters=[bundled(name) for name in drafters] or None)


@pytest.mark.every(2)
@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("name", CASES)
def test_transformers_writes_the_same_tokens(name: str) -> None:
    request, drafters = request_of(CASES[name])
    script = core.as_code(request, model="storyteller", drafters=drafters)
    assert "core" not in script.replace("max_new_tokens", "")
    names, printed = execute(script)
    result = run(request, bundled("storyteller"), drafters)
    if name == "empty":
        assert names["outputs"][0].tolist()[1:] == result.sequences[0]
    else:
        assert [new[: len(ids)] for new, ids in zip(written(names), result.sequences, strict=True)] == result.sequences
    if name != "ids":
        assert printed == "".join(f"{text}\n" for text in result.texts)


@pytest.mark.every(2)
@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("name", [*core.strategies.registry, "texts", "stop", "ids", "empty", "steered", "watermark"])
def test_the_core_form_is_the_same_run(name: str) -> None:
    more: dict[str, dict[str, Any]] = {
        "constrained_beam_search": {"options": {"must_contain": "dragon | wolf, tea"}},
        "assisted": {"drafters": ("storyteller-draft",)},
        "prediction_heads": {"options": {"draft_head": str(resources.path("heads", "storyteller-eagle"))}},
        "token_tree": {"drafters": ("storyteller-draft", "storyteller-draft-b"), "options": {"widths": "2 1"}},
    }
    case = CASES.get(name) or {"strategy": name, "seed": 9, **more.get(name, {})}
    request, drafters = request_of(case)
    names, printed = execute(core.as_code(request, "core", model="storyteller", drafters=drafters))
    result = run(request, bundled("storyteller"), drafters)
    assert names["result"].sequences == result.sequences
    started, expected = names["result"].events[0], result.events[0]
    assert (started.strategy, started.cache, started.settings) == (expected.strategy, expected.cache, expected.settings)
    assert printed == "".join(f"{text}\n" for text in result.texts)


@pytest.mark.parametrize("kind", ["llama", "mistral", "t5", "mamba"])
def test_script_of_other_architectures_generates_the_same(kind: str, folders: Path) -> None:
    model, ids = core.load(folders / kind), tiny.prompt()
    for fields in ({"strategy": "greedy"}, {"strategy": "sampling", "seed": 4}):
        request = core.Request(ids, {"max_new_tokens": 20}, **fields)
        names, printed = execute(core.as_code(request, model=folders / kind))
        expected = core.run(model, request).sequences
        assert written(names) == expected
        assert printed == f"{expected[0] if kind != 't5' else [3, *expected[0]]}\n"


def test_script_of_an_encoder_decoder_generates_the_same() -> None:
    request = core.Request("The fox ran over the hill. It was late.", {"max_new_tokens": 12}, "beam_search")
    _, printed = execute(core.as_code(request, model=bundled("summarizer")))
    assert printed == f"{core.run(bundled('summarizer'), request).texts[0]}\n"


def test_script_of_a_chat_applies_the_chat_template() -> None:
    request = core.Request(TALK, {"max_new_tokens": 12}, "greedy")
    for flavour in ("transformers", "core"):
        _, printed = execute(core.as_code(request, flavour, model="storyteller"))
        assert printed == f"{core.run(bundled('storyteller'), request).texts[0]}\n"


def test_script_contains_only_settings_that_differ_from_defaults() -> None:
    config = {"max_new_tokens": 16, "temperature": 1.0, "top_k": 50, "top_p": 0.9, "repetition_penalty": 1.0}
    script = core.as_code(core.Request("Once", config, "sampling"), model="storyteller")
    assert "model.generate(**inputs, max_new_tokens=16, top_p=0.9, do_sample=True)" in script
    greedy = core.as_code(core.Request("Once", config, "greedy"), model="storyteller")
    assert "model.generate(**inputs, max_new_tokens=16)" in greedy, "dice are not thrown: their settings say nothing"
    assert "manual_seed" not in greedy
    short = core.as_code(core.Request("Once"), "core", model="storyteller")
    assert 'request = decodescope.Request("Once")\n' in short


def test_script_contains_a_default_that_the_model_overrides(folders: Path) -> None:
    model = tiny.make("llama")
    model.model.generation_config.do_sample = True
    model.model.generation_config.temperature = 0.4
    model.model.save_pretrained(folders / "warm")
    request = core.Request(tiny.prompt(), {"max_new_tokens": 20, "temperature": 1.0, "do_sample": True}, seed=2)
    script = core.as_code(request, model=folders / "warm")
    assert "temperature=1.0" in script
    assert "do_sample" not in script
    assert written(execute(script)[0]) == core.run(core.load(folders / "warm"), request).sequences
    greedy = core.as_code(core.Request(tiny.prompt(), None, "greedy"), model=folders / "warm")
    assert "do_sample=False" in greedy


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"strategy": "contrastive"}, "no longer contains contrastive search"),
        ({"strategy": "dola"}, "no longer contains DoLa"),
        ({"strategy": "diverse_beam_search"}, "no longer contains beam groups"),
        ({"strategy": "constrained_beam_search", "options": {"must_contain": "tea"}}, "constrained beam search"),
        ({"strategy": "token_tree", "drafters": ("storyteller-draft",)}, "not as trees"),
        ({"strategy": "assisted", "drafters": ("storyteller-draft", "storyteller-draft-b")}, "one draft model"),
        ({"strategy": "prompt_lookup", "cache": "static"}, "dynamic cache only"),
        ({"strategy": "prompt_lookup", "options": {"verifier": "sampling"}}, "cannot choose the verifier"),
        (
            {"strategy": "sampling", "options": {"seed_each": True}, "config": {"num_return_sequences": 3}},
            "one generator for all",
        ),
        (
            {"strategy": "sampling", "config": {"num_return_sequences": 2}, "options": {"seed_each": True}},
            "one generator",
        ),
        ({"strategy": "greedy", "beginning": "It was"}, "as part of the prompt"),
        ({"strategy": "greedy", "cache": "sink"}, "no longer contains the sink cache"),
        ({"strategy": "greedy", "cache": "quantized"}, "quantized cache"),
        ({"strategy": "greedy", "cache": "offloaded"}, "not to disk"),
    ],
)
def test_script_explains_what_generate_cannot_do(fields: dict[str, Any], reason: str) -> None:
    request, drafters = request_of(fields)
    script = core.as_code(request, model="storyteller", drafters=drafters)
    head = [line.removeprefix("# ") for line in script.splitlines() if line.startswith("#")]
    assert head[0].startswith("transformers' generate cannot do this: ")
    assert reason in " ".join(head)
    assert core.why_not_generate(request, model="storyteller", drafters=drafters) in " ".join(head)
    rest = script.split("import decodescope", 1)[1]
    assert (
        rest == core.as_code(request, "core", model="storyteller", drafters=drafters).split("import decodescope", 1)[1]
    )


def test_script_uses_the_caches_of_graphics_cards() -> None:
    for name in ("offloaded", "offloaded_static"):
        request = core.Request("Once", None, "greedy", cache=name)
        script = core.as_code(request, model="storyteller", device="cuda", dtype="bfloat16")
        assert f'cache_implementation="{name}"' in script
        assert "dtype=torch.bfloat16" in script
        assert ').to("cuda")' in script
        compile(script, "script.py", "exec")


@pytest.mark.parametrize("kind", ["int8", "int4", "fp8"])
def test_script_loads_quantized_weights(kind: str) -> None:
    for flavour in ("transformers", "core"):
        script = core.as_code(core.Request("Once"), flavour, model="storyteller", dtype=kind)
        assert f'load("storyteller", weights="{kind}")' in script


def test_script_names_a_model_that_is_not_installed() -> None:
    assert 'from_pretrained("someone/model",' in core.as_code(core.Request("Once"), model="someone/model")
    assert "Insert yours here" in core.as_code(core.Request("Once"))


def test_script_of_an_invalid_request_is_refused() -> None:
    for request, error in (
        (core.Request("a", strategy="greed"), core.errors.StrategyError),
        (core.Request("a", cache="dynamo"), core.errors.CacheError),
        (core.Request("a", {"bad_words_ids": [[object()]]}, "greedy"), core.errors.ParameterError),
    ):
        with pytest.raises(error):
            core.as_code(request, model="storyteller")


ANYTHING = st.text(st.characters(codec=None)) | st.text("a\"'\\\n\r\t{}\u2028 \0\ud800é字", max_size=300)


@settings(max_examples=40)
@given(ANYTHING)
def test_any_prompt_survives_as_a_literal(prompt: str) -> None:
    for request in (core.Request(prompt), core.Request([{"role": "user", "content": prompt}])):
        for flavour in ("transformers", "core"):
            compile(core.as_code(request, flavour), "script.py", "exec")
    assert eval(multiline_literal(prompt)) == prompt
    assert eval(literal(prompt)) == prompt


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | ANYTHING,
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner) | st.dictionaries(ANYTHING, inner, max_size=3),
    max_leaves=8,
)


@given(PLAIN)
def test_any_plain_value_survives_as_a_literal(value: object) -> None:
    assert eval(literal(value)) == value


@pytest.mark.parametrize("kind", ["llama", "qwen2", "phi3", "bloom", "mamba"])
def test_transformers_reads_a_gguf_file(kind: str, tmp_path: Path) -> None:
    path = gguf_models.save(kind, gguf_models.make(kind), tmp_path / "tiny.gguf", "F32")
    model = core.load(path)
    request = core.Request(gguf_models.PROMPT, {"max_new_tokens": 12, "do_sample": False})
    for source in (model, str(path)):
        code = core.as_code(request, model=source)
        assert 'gguf_file="tiny.gguf"' in code
        assert "converts the blocks" in code
    namespace: dict[str, Any] = {}
    exec(compile(core.as_code(request, model=model), "script", "exec"), namespace)
    new = namespace["outputs"][0, len(gguf_models.PROMPT) :].tolist()
    assert new == core.run(model, request).sequences[0]


@pytest.mark.parametrize(
    ("kind", "reason"), [("gemma2", "“gemma2”"), ("mixtral", "experts"), ("llama-linear", "scaling")]
)
def test_script_loads_gguf_that_transformers_misreads_with_core(
    kind: str, reason: str, tmp_path: Path
) -> None:  # fmt: skip
    path = gguf_models.save(kind, gguf_models.make(kind), tmp_path / "tiny.gguf", "F32")
    code = core.as_code(core.Request([5, 6]), model=path)
    assert reason in code
    assert "decodescope.load" in code
