"""Plug-ins that work: the guide's examples, the templates, controls from a class, equality with `generate`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import torch
from transformers import LogitsProcessor, LogitsProcessorList

from decodescope import core
from decodescope.core import processors
from decodescope.core.decoding.speculation import drafters
from decodescope.core.measures import MeasuredText
from decodescope.core.plugins import PluginFolder, install, installed, use
from decodescope.core.plugins.logits_processor import processor_of_class
from decodescope.core.strategies import Parameter
from tests.core import tiny

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide"
EXAMPLES = re.findall(r"```python\n(.*?)```", (GUIDE / "plugins.md").read_text(encoding="utf-8"), re.DOTALL)
PROCESSOR, STRATEGY, CACHE, DRAFTER, MEASURE, FUNCTION = EXAMPLES


@pytest.fixture(autouse=True)
def _nothing_installed() -> Iterator[None]:
    yield
    install([])


def add(folder: Path, code: str) -> None:
    path = folder / "example.py"
    path.write_text(code, encoding="utf-8")
    use(path)


def test_the_examples_are_short_and_the_same_in_chinese() -> None:
    assert max(code.count("\n") for code in EXAMPLES) <= 40
    chinese = (GUIDE / "zh_CN" / "plugins.md").read_text(encoding="utf-8")
    assert re.findall(r"```python\n(.*?)```", chinese, re.DOTALL) == EXAMPLES


def test_processor_of_the_guide_is_recorded_as_a_stage(tmp_path: Path, storyteller: core.LoadedModel) -> None:
    add(tmp_path, PROCESSOR)
    options = {"ban_letters": True, "ban_letters_letters": "eo"}
    result = core.run(storyteller, core.Request("Once upon a time", {"max_new_tokens": 12}, options=options))
    assert not {"e", "o"} & set(result.texts[0].lower())
    tokens = [event for event in result.events if isinstance(event, core.events.TokenChosen)]
    for token in tokens:
        before, stage = token.funnel
        assert (stage.name, stage.label, stage.kind) == ("ban_letters", "ban letters", "ban")
        assert stage.survivors < before.survivors
    assert any("Ban letters forbade" in str(core.explain_token(token)) for token in tokens)
    beams = core.run(storyteller, core.Request("Once", {"max_new_tokens": 8, "num_beams": 3}, options=options))
    assert not {"e", "o"} & set(beams.texts[0].lower())


def test_the_strategy_of_the_guide_repeats_with_its_seed(tmp_path: Path, storyteller: core.LoadedModel) -> None:
    add(tmp_path, STRATEGY)
    request = core.Request("Once upon a time", {"max_new_tokens": 20}, strategy="coin_flip", seed=3)
    first, again = (core.run(storyteller, request).texts[0] for _ in range(2))
    greedy = core.run(storyteller, core.Request("Once upon a time", {"max_new_tokens": 20})).texts[0]
    assert first == again != greedy
    certain = core.Request(
        "Once upon a time", {"max_new_tokens": 20}, strategy="coin_flip", options={"coin_limit": 0.0}
    )
    assert core.run(storyteller, certain).texts[0] == greedy
    with pytest.raises(core.errors.ParameterError):
        core.run(storyteller, core.Request("x", {}, strategy="coin_flip", options={"coin_limit": 2.0}))
    assert "plug-in" in core.why_not_generate(request)


def test_the_cache_of_the_guide_changes_the_text_by_its_rounding(tmp_path: Path, storyteller: core.LoadedModel) -> None:
    add(tmp_path, CACHE)

    def text(**more: Any) -> str:
        return core.run(storyteller, core.Request("Once upon a time", {"max_new_tokens": 24}, **more)).texts[0]

    assert text(cache="rounded", cache_options={"rounding": 0.001}) == text()
    assert text(cache="rounded", cache_options={"rounding": 4.0}) != text()


@pytest.mark.parametrize("samples", [False, True])
def test_the_drafter_of_the_guide_is_verified(samples: bool, tmp_path: Path) -> None:
    add(tmp_path, DRAFTER)
    assert "bigram" in drafters.registry
    config, options = {"max_new_tokens": 16, "do_sample": samples}, {"extra_drafters": "bigram", "schedule": "constant"}
    result = core.run(
        tiny.shared("llama"), core.Request(tiny.prompt(), config, strategy="assisted", options=options, seed=3)
    )
    assert any(isinstance(event, core.events.DraftRound) for event in result.events)
    if not samples:
        plain = core.run(tiny.shared("llama"), core.Request(tiny.prompt(), {"max_new_tokens": 16}))
        assert result.sequences == plain.sequences


def test_the_measure_of_the_guide_is_computed(tmp_path: Path) -> None:
    add(tmp_path, MEASURE)
    assert core.measures.measure(MeasuredText("One two three. Four! "))[0] == {"sentence_length": 2.0}
    assert core.measures.measure(MeasuredText(""))[0] == {}


def test_the_decoding_function_of_the_guide_keeps_the_likelier_token(
    tmp_path: Path, storyteller: core.LoadedModel
) -> None:
    inside = tmp_path / "second_thoughts" / "custom_generate"
    inside.mkdir(parents=True)
    (inside / "generate.py").write_text(FUNCTION, encoding="utf-8")
    use(inside.parent)
    assert core.strategies.registry["second_thoughts"].parameters[0].help == (
        "Keep the likelier one of the two. Off: keep the less likely one."
    )

    def mean_rank(keep: bool) -> float:
        request = core.Request(
            "Once upon a time", {"max_new_tokens": 12}, strategy="second_thoughts", seed=1,
            options={"second_thoughts_keep": keep},
        )  # fmt: skip
        events = core.run(storyteller, request).events
        ranks = [event.rank for event in events if isinstance(event, core.events.TokenChosen)]
        assert len(ranks) == 12
        return sum(ranks) / len(ranks)

    assert mean_rank(True) < mean_rank(False)


@pytest.mark.parametrize("compute", ["lambda text: 1 / 0", "lambda text: 'x'", "lambda text: float('nan')"])
def test_failing_measure_is_reported_and_others_still_run(compute: str, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(
        f"from decodescope.core.measures import Measure\nMEASURE = Measure('bad', 'B', '', {compute})\n"
    )
    add(tmp_path, MEASURE)
    use(tmp_path / "bad.py")
    values, errors = core.measures.measure(MeasuredText("One two."))
    assert values == {"sentence_length": 2.0}
    assert "bad.py, line 2" in errors[0].cause


@pytest.mark.parametrize("kind", ["processor", "strategy"])
def test_templates_work_and_can_be_created_several_times(
    kind: Literal["processor", "strategy"], tmp_path: Path, storyteller: core.LoadedModel
) -> None:
    folder = PluginFolder(tmp_path)
    made = [folder.create(kind) for _ in range(3)]
    assert [one.key for one in made] == [f"my_{kind}.py", f"my_{kind}_2.py", f"my_{kind}_3.py"]
    assert [one.state for one in install(folder.load())] == ["on", "on", "on"]
    names = [entry.name for one in installed() for entry in one.entries]
    assert len(set(names)) == 3
    for name in names:
        how: dict[str, Any] = {"strategy": name} if kind == "strategy" else {"options": {name: True}}
        assert core.run(storyteller, core.Request("Once", {"max_new_tokens": 8}, **how)).texts[0]
    install([])
    assert not set(names) & {*core.strategies.registry, *core.strategies.registry["greedy"].parameter_names}


class Shifted(LogitsProcessor):
    """Adds a number to some tokens.

    More about it.

    Args:
        amount (`float`, *optional*):
            Added to the score.
        every: Which tokens,
            counted from 0.
    """

    def __init__(
        self, amount: Annotated[float, (0, 8)] = 3.0, every: Annotated[int, range(1, 6)] = 2, *, word: str = "a",
        way: Literal["up", "down"] = "up", extra: dict[str, int] | None = None, names: list[str] | None = None,
    ) -> None:  # fmt: skip
        self.amount, self.every, self.sign = amount, every, 1 if way == "up" else -1

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        scores[:, :: self.every] += self.sign * self.amount
        return scores


def test_constructor_signature_defines_the_parameters() -> None:
    processor = processor_of_class(Shifted)
    assert processor.name == "shifted"
    assert processor.parameter is not None
    assert (processor.parameter.kind, processor.parameter.help) == (
        "bool",
        "Adds a number to some tokens. More about it.",
    )
    own = {parameter.name: parameter for parameter in processor.extra_parameters}
    assert list(own) == [f"shifted_{name}" for name in ("amount", "every", "word", "way", "names")]
    amount, every = own["shifted_amount"], own["shifted_every"]
    assert (amount.kind, amount.default, amount.minimum, amount.maximum) == ("float", 3.0, 0, 8)
    assert (every.kind, every.default, every.minimum, every.maximum) == ("int", 2, 1, 5)
    assert (amount.help, every.help) == ("Added to the score.", "Which tokens, counted from 0.")
    assert own["shifted_way"].choices == ("up", "down")
    assert own["shifted_names"].kind == "lines"
    assert processor.kind == "shift"


@pytest.mark.parametrize(
    ("hint", "default", "expected"),
    [
        ("float", "0.5", ("float", 0.5, 0.0, 1.0)), ("float", "20.0", ("float", 20.0, 0.0, 40.0)),
        ("float", "-2.0", ("float", -2.0, -4.0, 10.0)), ("int", "3", ("int", 3, 0.0, 10.0)),
        ("int", "None", ("int", 0, 0.0, 10.0)), ("Annotated[float, Ge(0.25)]", "...", ("float", 0.25, None, 10.0)),
    ],
)  # fmt: skip
def test_parameter_ranges_are_derived_from_the_default(hint: str, default: str, expected: tuple[object, ...]) -> None:
    given = "" if default == "..." else f" = {default}"
    code = (
        "class Ge:\n    def __init__(self, ge): self.ge = ge\n"
        f"class Own(LogitsProcessor):\n    def __init__(self, x: {hint}{given}): ...\n"
        "    def __call__(self, input_ids, scores): return scores"
    )
    scope: dict[str, Any] = {"LogitsProcessor": LogitsProcessor, "Annotated": Annotated}
    exec(code, scope)
    found: Parameter = processor_of_class(scope["Own"]).extra_parameters[0]
    assert (found.kind, found.default, found.soft_minimum, found.soft_maximum)[:2] == expected[:2]
    if expected[2] is not None:
        assert (found.soft_minimum, found.soft_maximum) == expected[2:]


def test_processor_class_gives_the_text_of_generate() -> None:
    model, prompt = tiny.shared("llama"), tiny.prompt()
    use(Shifted)
    for samples in (False, True):
        config = {"max_new_tokens": 12, "do_sample": samples, "top_k": 20, "temperature": 0.7}
        own = core.run(model, core.Request(prompt, config, options={"shifted": True, "shifted_amount": 4.0}))
        if samples:
            continue
        theirs = model.model.generate(
            torch.tensor([prompt]),
            max_new_tokens=12,
            do_sample=False,
            logits_processor=LogitsProcessorList([Shifted(4.0)]),
        )
        assert own.sequences[0] == theirs[0, len(prompt) :].tolist()


def test_using_a_name_again_replaces_the_plugin(tmp_path: Path) -> None:
    use(Shifted)
    add(tmp_path, STRATEGY)
    use(Shifted)
    assert [one.key for one in installed()] == ["example.py", "<shifted>"]


def test_a_recording_opens_without_the_plugin(tmp_path: Path) -> None:
    add(tmp_path, STRATEGY)
    use(Shifted)
    request = core.Request(tiny.prompt(), {"max_new_tokens": 5}, strategy="coin_flip", options={"shifted": True})
    path = tmp_path / "run.decodescope"
    made = list(core.record(path, core.stream(tiny.shared("llama"), request), request))
    install([])
    again = list(core.replay(path))
    assert [event.id for event in again if isinstance(event, core.events.TokenChosen)] == [
        event.id for event in made if isinstance(event, core.events.TokenChosen)
    ]
    token = next(event for event in again if isinstance(event, core.events.TokenChosen))
    assert core.stage_label(token.funnel[1]) == "shifted"
    started = again[0]
    assert isinstance(started, core.events.RunStarted)
    assert core.strategy_title(started) == "coin_flip"
    assert "Coin flip" not in core.page_text(again)


def test_picker_with_a_method_of_its_own_is_explained_and_recorded(tmp_path: Path) -> None:
    add(tmp_path, STRATEGY.replace('method = "sampled"', 'method = "coin"'))
    request = core.Request(tiny.prompt(), {"max_new_tokens": 4}, strategy="coin_flip")
    path = tmp_path / "run.decodescope"
    made = list(core.record(path, core.stream(tiny.shared("llama"), request), request))
    install([])
    tokens = [event for event in made if isinstance(event, core.events.TokenChosen)]
    assert [event for event in core.replay(path) if isinstance(event, core.events.TokenChosen)] == tokens
    assert [token.method for token in tokens] == ["coin"] * 4
    assert "chosen by the method “coin”" in core.explain_token(tokens[0])
    assert "“coin”" in core.page_text(made)


def test_scripts_and_replay_step_support_plugins(tmp_path: Path) -> None:
    add(tmp_path, PROCESSOR.replace("tokenizer.decode([token]).lower()", "str(token)").replace('"e"', '"7"'))
    model, prompt = tiny.shared("llama"), tiny.prompt()
    request = core.Request(prompt, {"max_new_tokens": 4}, options={"ban_letters": True})
    ids = core.run(model, request).sequences[0]
    assert not any("7" in str(token) for token in ids)
    code = core.as_code(request, "core", model="tiny")
    assert 'decodescope.plugins.use("' in code
    assert "example.py" in code
    found = core.replay_step(model, request, ids, 1, {"ban_letters": False})
    assert found.before.id == ids[1]


FORMER = '''"""Shift scores by a constant."""
import core, core.errors
import core.parameter as parameters
from core.processors.base import Processor
from resources.language import tr

def make(value, context):
    return lambda ids, scores: scores + value

PROCESSOR = Processor(
    name="own_shift", make=make, order=300, label="shift {v}", kind="shift", panel="sampling",
    parameter=parameters.Parameter("own_shift", "Shift", "float", 0.0, "Added.", minimum=0.0, maximum=9.0, option=True),
)
assert core.errors.DecodescopeError and tr("x") and core.Request
'''


def test_file_that_imports_folders_by_their_former_names_works_with_a_notice(tmp_path: Path) -> None:
    path = tmp_path / "former.py"
    path.write_text(FORMER, encoding="utf-8")
    with pytest.warns(FutureWarning, match=r"imports core, which is now called decodescope\.core"):
        (plugin,) = use(path)
    assert plugin.state == "on"
    assert "own_shift" in processors.registry
    path.write_text(FORMER.replace("import core, core.errors", "import json, core.errors as e\nimport core"), "utf-8")
    with pytest.warns(FutureWarning, match="now called decodescope"):
        assert use(path)[0].state == "on"
    path.write_text(FORMER + "\nraise ValueError(1)\n", "utf-8")
    with pytest.raises(core.errors.PluginError) as error:
        use(path)
    assert "line 16" in error.value.cause


BANS = '''
import torch
from transformers import LogitsProcessor

class Masks(LogitsProcessor):
    """Bans a token."""
    def __call__(self, ids, scores):
        if ids.shape[1] % 2:
            scores = scores.clone()
            scores[:, 5] = torch.finfo(scores.dtype).min
        return scores

class Weighs(LogitsProcessor):
    """Weighs scores."""
    information_weight = 0.5
    def __call__(self, ids, scores):
        return scores * self.information_weight
'''


@pytest.mark.parametrize("strategy", ["greedy", "prompt_lookup", "beam_search"])
def test_kind_of_a_processor_is_decided_by_its_scores(strategy: str, tmp_path: Path) -> None:
    """By the rule of captured processors, and for the whole run."""
    add(tmp_path, BANS)
    options = {"masks": True, "weighs": True}
    request = core.Request(tiny.prompt(), {"max_new_tokens": 6}, strategy, options=options)
    events = core.run(tiny.make("llama"), request).events
    tokens = [event for event in events if isinstance(event, core.events.TokenChosen)]
    assert {tuple(stage.kind for stage in token.funnel) for token in tokens} <= {("model", "ban", "shift")}
    assert tokens or strategy == "beam_search"
