"""The worked examples in docs/architecture.md run as they stand."""

import re
import subprocess
import sys

import pytest

transformers = pytest.importorskip("transformers")


def examples(root):
    """The document's whole files, in its order."""
    return re.findall(
        r"```python\n(.*?)```", (root / "docs" / "architecture.md").read_text(encoding="utf-8"), re.DOTALL
    )


@pytest.fixture
def example(root, tmp_path, monkeypatch):
    """The document's strategy, found by the registry as if its file lay in core/strategies."""
    from core import strategies

    (tmp_path / "runner_up.py").write_text(examples(root)[0], encoding="utf-8")
    monkeypatch.setattr(strategies, "__path__", [*strategies.__path__, str(tmp_path)])
    monkeypatch.setattr(strategies.registry, "_entries", None)
    yield "runner_up"
    sys.modules.pop("core.strategies.runner_up", None)


def test_added_strategy_is_found_and_decodes(example):
    import core
    from tests.core import tiny

    assert example in core.strategies.registry
    model = tiny.shared("llama")
    config = transformers.GenerationConfig(max_new_tokens=4)
    second = core.run(model, core.Request([5, 6], config, strategy=example))
    first = core.run(model, core.Request([5, 6], config, strategy=example, options={"place": 1}))
    greedy = core.run(model, core.Request([5, 6], config, strategy="greedy"))
    assert first.sequences == greedy.sequences
    assert second.sequences[0][0] != greedy.sequences[0][0]
    chosen = next(event for event in second.events if isinstance(event, core.events.TokenChosen))
    assert chosen.rank == 2


def test_added_strategy_has_its_parameter_checked(example):
    import core
    from tests.core import tiny

    request = core.Request([5, 6], strategy=example, options={"place": 0})
    with pytest.raises(core.errors.ParameterError, match="place"):
        core.run(tiny.shared("llama"), request)


USE_OF_THE_PROCESSOR = """
import sys

import torch
import core
from core import processors

processors.__path__.append(sys.argv[1])
from core.explain.tokens import explain_token
from tests.core import tiny

for name in ("sampling", "beam_sampling", "assisted", "dola"):
    assert "top_a" in core.strategies.registry[name].parameter_names, name
assert "top_a" not in core.strategies.registry["greedy"].parameter_names
model = tiny.make("llama", scale=3.0)

def events(kind, strategy, **more):
    settings = core.make_config({"max_new_tokens": 6, "top_k": 0, "do_sample": True})
    request = core.Request([5, 6], settings, strategy, {"top_a": 0.9}, **more)
    return [event for event in core.run(model, request).events if isinstance(event, kind)]

for event in events(core.events.TokenChosen, "sampling"):
    (_, stage) = event.funnel
    assert (stage.name, stage.label, stage.value, stage.kind) == ("top_a", "top-a 0.9", 0.9, "cut")
    highest = max(item.raw_probability for item in event.alternatives)
    left = [item for item in event.alternatives if item.raw_probability >= 0.9 * highest**2]
    assert {item.id for item in event.alternatives if item.probability > 0} == {item.id for item in left}
    assert 0 < stage.survivors < 96
    assert event.raw_probability >= 0.9 * highest**2
    assert explain_token(event)
assert events(core.events.BeamStep, "beam_sampling")
assert len(events(core.events.TokenChosen, "assisted", drafters=(model,))) == 6
try:
    core.run(model, core.Request([5], strategy="sampling", options={"top_a": 7}))
except core.errors.ParameterError as error:
    assert error.parameter == "top_a"
else:
    raise AssertionError("out of range, and taken")
"""


def test_added_processor_is_one_file(root, tmp_path):
    """In a process of its own: strategies gather the settings of processors when they are first asked for."""
    (tmp_path / "top_a.py").write_text(examples(root)[1], encoding="utf-8")
    command = [sys.executable, "-c", USE_OF_THE_PROCESSOR, str(tmp_path)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_place_the_architecture_names_is_there(root):
    text = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text[text.index("| folder") : text.index("## Adding a strategy")]
    places = re.findall(r"`((?:core|app|resources|packaging)/[\w./]*)`", table)
    assert len(places) > 30
    assert [place for place in places if not (root / place).exists()] == []
