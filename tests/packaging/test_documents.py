"""The worked example in docs/architecture.md runs as it stands."""

import re
import sys

import pytest

transformers = pytest.importorskip("transformers")


@pytest.fixture
def example(root, tmp_path, monkeypatch):
    """The document's strategy, found by the registry as if its file lay in core/strategies."""
    from core import strategies

    text = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    (tmp_path / "runner_up.py").write_text(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0], encoding="utf-8")
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
