"""`custom_generate` folders as strategies: equal to transformers, recorded, checked, and run only when allowed."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import torch

from decodescope import core
from decodescope.core.errors import PluginError, StrategyError
from decodescope.core.events import (
    BeamStep,
    CacheMeasured,
    Finished,
    Prefilled,
    RunStarted,
    SequenceFinished,
    TokenChosen,
)
from decodescope.core.generate_recording.generate_hooks import GenerateHooks
from decodescope.core.plugins import PluginFolder, guarded_thread, install, installed, use
from decodescope.core.plugins.generate_folder import MAX_BYTES
from decodescope.core.plugins.plugin_loading import load_folder
from decodescope.core.settings import make_config
from decodescope.core.trace import EventChecker
from tests.core import tiny

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide"
OWN_LOOP = '''
import torch

def generate(model, input_ids, generation_config=None, rank: int = 2, **kwargs):
    """Takes the token of a given rank.

    Args:
        rank: The rank of every token.
    """
    for _ in range(generation_config.max_new_tokens):
        scores = model(input_ids).logits[:, -1]
        input_ids = torch.cat([input_ids, scores.topk(rank).indices[:, -1:]], 1)
    return input_ids
'''
CACHED_LOOP = """
import torch

def generate(model, input_ids, attention_mask=None, generation_config=None, **kwargs):
    text, past, read = input_ids, {}, input_ids
    for _ in range(generation_config.max_new_tokens):
        output = model(read, use_cache=True, **past)
        name = "cache" if "cache" in output else "past_key_values"  # by version
        past = {name: output[name]}
        probabilities = output.logits[:, -1].softmax(-1)
        read = torch.multinomial(probabilities, 1) if generation_config.do_sample else probabilities.argmax(-1)[:, None]
        text = torch.cat([text, read], 1)
    return text
"""
PASSED_ON = """
from .helper import choose

def generate(model, *args, **kwargs):
    return type(model).generate(model, *args, custom_generate=choose, **kwargs)
"""
HELPER = """
import torch

def choose(model, input_ids, logits_processor, stopping_criteria, generation_config, **kwargs):
    while True:
        scores = logits_processor(input_ids, model(input_ids).logits[:, -1])
        input_ids = torch.cat([input_ids, scores.argmax(-1)[:, None]], 1)
        if stopping_criteria(input_ids, None).all():
            return input_ids
"""
BEAMS = """
def generate(model, generation_config=None, **kwargs):
    generation_config.num_beams = 3
    return model.generate(generation_config=generation_config, **kwargs)
"""


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(guarded_thread, "CALL_SECONDS", 0.5)
    monkeypatch.setattr(guarded_thread, "STOP_SECONDS", 0.5)
    yield
    install([])


def write(folder: Path, code: str, name: str = "mine", **others: str) -> Path:
    inside = folder / name / "custom_generate"
    inside.mkdir(parents=True, exist_ok=True)
    for file, content in {"generate": code, **others}.items():
        (inside / f"{file}.py").write_text(content, encoding="utf-8")
    return folder / name


def request(settings: dict[str, Any] | None = None, strategy: str = "mine", **more: Any) -> core.Request:
    return core.Request(tiny.prompt(), {"max_new_tokens": 6, **(settings or {})}, strategy=strategy, **more)


def collect(
    model: core.LoadedModel, wanted: core.Request, cancel: threading.Event | None = None
) -> tuple[list[core.Event], PluginError | None]:
    events: list[core.Event] = []
    try:
        for event in core.stream(model, wanted, cancel):
            events.append(event)  # the events before an error are kept
    except PluginError as error:
        return events, error
    return events, None


def tokens(events: list[core.Event]) -> list[int]:
    return [event.id for event in events if isinstance(event, TokenChosen)]


CASES = {
    "own loop": ({"generate": OWN_LOOP}, {}),
    "own loop with a cache": ({"generate": CACHED_LOOP}, {}),
    "own loop that samples": ({"generate": CACHED_LOOP}, {"do_sample": True}),
    "processors": ({"generate": PASSED_ON, "helper": HELPER}, {"repetition_penalty": 1.5, "no_repeat_ngram_size": 2}),
    "beams": ({"generate": BEAMS}, {}),
}


@pytest.mark.parametrize("title", CASES)
def test_custom_generate_text_equals_that_of_transformers(title: str, tmp_path: Path) -> None:
    """The ids are those of `generate(custom_generate=…)`, and the events are complete and in order."""
    files, settings = CASES[title]
    folder = write(tmp_path, files["generate"], **{name: code for name, code in files.items() if name != "generate"})
    model = tiny.make("llama")
    ids = torch.tensor([tiny.prompt()])
    torch.manual_seed(7)
    expected = model.model.generate(
        input_ids=ids, attention_mask=torch.ones_like(ids), custom_generate=str(folder), trust_remote_code=True,
        generation_config=make_config(
            {"max_new_tokens": 6, "do_sample": False, "num_beams": 1, "pad_token_id": 0, **settings}
        ),
    )  # fmt: skip
    assert [plugin.title for plugin in use(folder)] == ["mine"]
    result = core.run(model, request(settings, seed=7))
    assert result.sequences[0] == expected[0, ids.shape[1] :].tolist()
    assert result.reason == "completed"
    checker = EventChecker()
    checker.allow(1_000_000)
    for event in result.events:
        checker.check(event)
    kinds = [type(event) for event in result.events]
    assert kinds.count(RunStarted) == kinds.count(Prefilled) == kinds.count(Finished) == 1
    assert isinstance(result.events[0], RunStarted)
    assert result.events[0].strategy == "mine"
    assert SequenceFinished in kinds
    assert CacheMeasured in kinds or title == "own loop"
    if title == "beams":
        assert BeamStep in kinds
    else:
        assert tokens(result.events) == result.sequences[0]
        assert all(event.alternatives for event in result.events if isinstance(event, TokenChosen))
    if title == "processors":
        stages = next(event for event in result.events if isinstance(event, TokenChosen)).funnel
        assert [stage.name for stage in stages][-2:] == ["repetition_penalty", "no_repeat_ngram_size"]
    assert result.metrics.new_tokens == 6
    assert result.metrics.target_passes >= 6
    assert not vars(model.model).keys() & {"generate", "_get_logits_processor"}
    assert model.model not in GenerateHooks._installed
    assert core.run(model, core.Request(tiny.prompt(), {"max_new_tokens": 4})).events  # the model works as before


def test_custom_generate_of_an_encoder_decoder_equals_transformers(tmp_path: Path) -> None:
    code = OWN_LOOP.replace("model(input_ids)", "model(input_ids=source, decoder_input_ids=input_ids)")
    use(
        write(
            tmp_path,
            code.replace("    for _", "    source, input_ids = input_ids, kwargs['decoder_input_ids']\n    for _"),
        )
    )
    result = core.run(tiny.make("t5"), request())
    assert len(result.sequences[0]) == 6
    assert tokens(result.events) == result.sequences[0]
    assert all(event.rank == 2 for event in result.events if isinstance(event, TokenChosen))


def test_signature_defines_the_parameters(tmp_path: Path) -> None:
    code = (
        "from typing import Annotated, Literal\n"
        "def generate(model, input_ids, generation_config, logits_processor, top_k=None,\n"
        "    amount: Annotated[float, (0, 2)] = 0.5, kind: Literal['a', 'b'] = 'b', left_padding=None, **kwargs):\n"
        "    '''Mixes two things. And more.\n\n    Args:\n        amount: How much.\n    '''\n"
        "    assert (amount, kind, top_k, logits_processor) == (1.5, 'b', 7, None)\n"
        "    return input_ids\n"
    )
    [plugin] = use(write(tmp_path, code, "my-mixed Thing"))
    strategy = core.strategies.registry["my_mixed_thing"]
    assert strategy.title == "My mixed thing"
    assert strategy.summary == "Mixes two things. And more."
    amount, kind = strategy.parameters[:2]
    assert (amount.name, amount.help, amount.minimum, amount.maximum, amount.default) == (
        "my_mixed_thing_amount", "How much.", 0, 2, 0.5
    )  # fmt: skip
    assert (kind.name, kind.choices, kind.default) == ("my_mixed_thing_kind", ("a", "b"), "b")
    names = strategy.parameter_names
    assert {"max_new_tokens", "do_sample", "temperature", "repetition_penalty", "stop_strings"} <= set(names)
    assert not any(name.endswith(("left_padding", "_top_k", "_kwargs")) for name in names)
    wanted = request({"top_k": 7}, "my_mixed_thing", options={"my_mixed_thing_amount": 1.5})
    assert core.run(tiny.make("llama"), wanted).sequences == [[]]
    assert plugin.contents == "Strategy “My mixed thing”"


BROKEN = {
    "a syntax error": ("import torch\ndef generate(:\n", 2, "SyntaxError"),
    "an import error": ("\nimport nowhere_to_be_found\n", 2, "nowhere_to_be_found"),
    "no function": ("generate = 3\n", 0, "no function called generate"),
    "an unknown argument": ("\ndef generate(model, sigma):\n    pass\n", 2, "the parameter sigma of generate has no"),
    "a bad annotation": ("\ndef generate(model, x: 'Nowhere' = 1):\n    pass\n", 2, "annotations of generate"),
    "an endless import": ("\nwhile True: pass\n", 2, "did not return"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_unusable_folder_fails_with_cause_and_line(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded_thread, "IMPORT_SECONDS", 0.5)
    code, line, words = BROKEN[kind]
    plugin = load_folder(write(tmp_path, code))
    assert plugin.state == "failed"
    assert plugin.error is not None
    assert words in plugin.error.cause
    assert plugin.error.line == line
    assert "(generate.py" in plugin.error.cause


def test_missing_requirements_are_named(tmp_path: Path) -> None:
    folder = write(tmp_path, OWN_LOOP)
    (folder / "custom_generate" / "requirements.txt").write_text("# comment\ntorch\nnot-a-package>=2\n")
    plugin = load_folder(folder)
    assert plugin.error is not None
    assert "not-a-package>=2" in plugin.error.cause
    assert "torch (" not in plugin.error.cause


STEPS = {
    "an exception": ("raise LookupError('where')", "where"),
    "an endless loop": ("while True: pass", "did not return"),
    "an exit": ("import sys; sys.exit(3)", "SystemExit"),
    "too many tokens": ("generation_config.max_new_tokens = 100", "more than the 6 tokens"),
    "no ids": ("return None", "returned None instead of token ids"),
    "a second text": ("model.generate(input_ids, max_new_tokens=2); "
                      "model.generate(input_ids, max_new_tokens=2)", "more than once"),
    "several tokens per pass": ("input_ids = torch.cat([input_ids, input_ids[:, :2]], 1)", "one token per pass"),
}  # fmt: skip


@pytest.mark.parametrize("kind", STEPS)
def test_failing_function_ends_the_run_and_keeps_its_text(kind: str, tmp_path: Path) -> None:
    body, words = STEPS[kind]
    code = OWN_LOOP.replace("range(generation_config.max_new_tokens)", "range(100)").replace(
        "        scores =", f"        if input_ids.shape[1] == {len(tiny.prompt()) + 3}:\n            {body}\n"
        f"        if input_ids.shape[1] >= {len(tiny.prompt())} + generation_config.max_new_tokens:\n"
        "            return input_ids\n"
        "        scores =",
    )  # fmt: skip
    model = tiny.make("llama")
    use(write(tmp_path, code))
    events, error = collect(model, request())
    assert error is not None
    assert words in error.cause
    assert "generate.py, line" in error.cause
    assert len(tokens(events)) >= (0 if kind == "a second text" else 2)
    assert core.run(model, core.Request(tiny.prompt(), {"max_new_tokens": 3})).sequences[0]
    assert not vars(model.model).keys() & {"generate"}


def test_stop_ends_the_function_at_its_next_pass(tmp_path: Path) -> None:
    use(write(tmp_path, OWN_LOOP))
    cancel = threading.Event()
    events: list[core.Event] = []
    for event in core.stream(tiny.make("llama"), request({"max_new_tokens": 200}), cancel):
        events.append(event)
        if len(tokens(events)) == 4:
            cancel.set()
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.reason == "stopped"
    assert list(last.sequences[0]) == tokens(events)
    assert 4 <= len(tokens(events)) < 200


def test_closing_the_stream_ends_the_function(tmp_path: Path) -> None:
    use(write(tmp_path, OWN_LOOP))
    model = tiny.make("llama")
    stream = core.stream(model, request({"max_new_tokens": 200}))
    assert any(isinstance(event, TokenChosen) for event in stream)
    stream.close()  # type: ignore[attr-defined]
    assert not any(thread.name == "plugin" and thread.is_alive() for thread in threading.enumerate())
    assert "generate" not in vars(model.model)


def test_function_leaves_the_global_generator_unchanged(tmp_path: Path) -> None:
    use(write(tmp_path, CACHED_LOOP))
    model = tiny.make("llama")
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = core.run(model, request({"do_sample": True}, seed=3)).sequences
    assert torch.equal(torch.get_rng_state(), before)
    assert core.run(model, request({"do_sample": True}, seed=3)).sequences == first
    assert core.run(model, request({"do_sample": True}, seed=4)).sequences != first


def test_unsupported_cache_is_refused_before_the_run(tmp_path: Path) -> None:
    use(write(tmp_path, OWN_LOOP))
    with pytest.raises(StrategyError, match="creates its own cache"):
        core.run(tiny.make("llama"), request(cache="static"))


def test_folder_does_not_run_before_it_is_added(tmp_path: Path) -> None:
    """A folder is off until it is added; changed content is not run, and what runs is what was read."""
    spy = tmp_path / "ran"
    folder = write(tmp_path, f"from pathlib import Path\nPath({str(spy)!r}).touch()\n{OWN_LOOP}")
    trusted = PluginFolder(tmp_path / "data")
    assert trusted.load() == []
    added = trusted.add_folder(folder / "custom_generate")
    assert (added.title, added.state, added.key) == ("mine", "on", str(folder))
    assert not spy.exists()
    [plugin] = trusted.load()
    assert plugin.state == "on"
    assert spy.exists()
    spy.unlink()
    write(tmp_path, f"from pathlib import Path\nPath({str(spy)!r}).touch()\n{OWN_LOOP}\nx = 1\n")
    assert [one.state for one in trusted.scan()] == ["changed"]
    assert [one.state for one in trusted.load()] == ["changed"]
    assert load_folder(folder, plugin.digest).state == "changed"
    assert not spy.exists()
    trusted.switch_on(plugin)
    assert [one.state for one in trusted.load()] == ["on"]
    trusted.switch_off(plugin)
    assert [one.state for one in trusted.scan()] == ["off"]
    (folder / "custom_generate" / "generate.py").unlink()
    assert [one.state for one in trusted.scan()] == ["failed"]
    trusted.remove_folder(plugin)
    assert trusted.scan() == []


def test_changed_helper_file_marks_the_folder_as_changed(tmp_path: Path) -> None:
    folder = write(tmp_path, PASSED_ON, helper=HELPER)
    trusted = PluginFolder(tmp_path / "data")
    trusted.add_folder(folder)
    write(tmp_path, PASSED_ON, helper=HELPER + "\n")
    assert [one.state for one in trusted.scan()] == ["changed"]


def test_late_import_uses_the_approved_content(tmp_path: Path) -> None:
    late = OWN_LOOP.replace("    for _", "    from . import late\n    rank = late.RANK\n    for _", 1)
    use(write(tmp_path, late, late="RANK = 3\n"))
    write(tmp_path, late, late="RANK = 5\n")
    events = core.run(tiny.make("llama"), request()).events
    assert {event.rank for event in events if isinstance(event, TokenChosen)} == {3}


@pytest.mark.parametrize("kind", ["empty", "large", "not there"])
def test_a_folder_without_a_function_is_refused(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    if kind == "empty":
        folder.mkdir()
    elif kind == "large":
        write(tmp_path, "#" * (MAX_BYTES + 1))
    with pytest.raises(PluginError, match=r"more than|contains no custom_generate"):
        PluginFolder(tmp_path / "data").add_folder(folder)
    with pytest.raises(PluginError):
        use(str(folder))
    assert not installed()


def test_downloaded_repository_is_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "hub"
    snapshot = cache / "models--someone--odd-steps" / "snapshots" / ("a" * 40)
    (cache / "models--someone--odd-steps" / "refs").mkdir(parents=True)
    (cache / "models--someone--odd-steps" / "refs" / "main").write_text("a" * 40)
    write(snapshot.parent, OWN_LOOP, snapshot.name)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    monkeypatch.setattr("huggingface_hub.file_download.HF_HUB_CACHE", str(cache), raising=False)
    [plugin] = use("someone/odd-steps")
    assert plugin.title == "odd-steps"
    assert "odd_steps" in core.strategies.registry
    with pytest.raises(PluginError, match="contains no"):
        use("someone/nowhere")


@pytest.mark.slow
def test_the_script_of_a_run_uses_the_folder(tmp_path: Path) -> None:
    folder = write(tmp_path, OWN_LOOP)
    use(folder)
    wanted = core.Request("Once upon", {"max_new_tokens": 5}, strategy="mine", options={"mine_rank": 3})
    model = core.load("storyteller")
    expected = core.run(model, wanted).texts[0]
    for flavour in ("transformers", "core"):
        code = core.as_code(wanted, model="storyteller", flavour=flavour)
        assert ("trust_remote_code=True" in code) == (flavour == "transformers")
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(code, {"__name__": "script"})
        assert printed.getvalue().rstrip("\n") == expected


def test_slow_model_is_not_treated_as_a_hanging_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that takes longer than the limit for code of plug-ins is the model's own time."""
    monkeypatch.setattr(guarded_thread, "CALL_SECONDS", 0.2)
    use(write(tmp_path, OWN_LOOP))
    model = tiny.make("llama")
    ready = threading.Event()

    def wait(*_given: object) -> None:
        ready.wait(0.6)  # longer than the limit

    handle = model.model.model.register_forward_hook(wait)
    try:
        _events, error = collect(model, request({"max_new_tokens": 2}))
    finally:
        handle.remove()
    assert error is None
