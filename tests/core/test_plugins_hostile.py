"""Hostile plug-ins: each is named with file and line, the text so far is kept, and the program goes on."""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from decodescope import core
from decodescope.core.decoding import token_loop
from decodescope.core.errors import PluginError
from decodescope.core.plugins import guarded_thread, install, use
from decodescope.core.plugins.plugin import Plugin
from decodescope.core.plugins.plugin_folder import PluginFolder
from decodescope.core.plugins.plugin_loading import MAX_BYTES, load_file
from tests.core import tiny
from tests.core.caller_settings import readable_state

PROCESSOR = """
import math, sys, time, torch
from transformers import LogitsProcessor

class Hostile(LogitsProcessor):
    def __call__(self, input_ids, scores):
        if input_ids.shape[1] < {start}:
            return scores
{body}
"""
STRATEGY = """
import torch
from decodescope.core.strategies.base import Strategy
from decodescope.core.strategies.parameters import NEW_TOKENS
METHOD = "greedy"
{top}

class Picker:
    method = METHOD
    steps = 0

    def pick(self, scores, generator):
        self.steps += 1
        if self.steps <= 3:
            return scores.argmax(-1)
        {pick}

def decode(run):
    {before}
    from decodescope.core.decoding.token_loop import decode_single
    yield from decode_single(run, Picker())
    {after}

STRATEGY = Strategy(name="hostile", title="Hostile", summary="…", parameters=(NEW_TOKENS,), decode=decode)
"""


@pytest.fixture(autouse=True)
def short_limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, seconds in (("CALL_SECONDS", 0.3), ("IMPORT_SECONDS", 0.3), ("STOP_SECONDS", 0.2)):
        monkeypatch.setattr(guarded_thread, name, seconds)
    yield
    install([])


def write(folder: Path, text: str, name: str = "hostile.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def collect(request: core.Request, cancel: threading.Event | None = None) -> tuple[list[int], PluginError | None]:
    """Return the tokens before the run ended, and the plug-in's error."""
    ids: list[int] = []
    try:
        for event in core.stream(tiny.shared("llama"), request, cancel):
            if isinstance(event, core.events.TokenChosen):
                ids.append(event.id)
    except PluginError as error:
        return ids, error
    return ids, None


IMPORTS = {
    "a syntax error": ("x = 1\ndef broken(:\n", 2, "SyntaxError"),
    "a missing package": ("import math\nimport no_such_package\n", 2, "no_such_package"),
    "an exception": ("\n\nraise RuntimeError('no')\n", 3, "no"),
    "exit": ("import sys\nsys.exit(3)\n", 2, "SystemExit"),
    "an interrupt": ("raise KeyboardInterrupt\n", 1, "KeyboardInterrupt"),
    "endless import": ("while True:\n    pass\n", None, "did not return"),
    "a sleeping import": ("import time\ntime.sleep(4)\n", 2, "did not return"),
    "endless recursion": ("def f():\n    f()\nf()\n", 2, "RecursionError"),
    "nothing": ("x = 1\n", 0, "defines nothing"),
    "a wrong entry": ("STRATEGY = 'greedy'\n", 0, "str is not an instance of Strategy"),
    "a message that fails": (
        "class Bad(Exception):\n    def __str__(self): raise ValueError\nraise Bad\n", 3, "Bad"
    ),
    "a required argument": (
        "from transformers import LogitsProcessor\nclass Own(LogitsProcessor):\n    def __init__(self, table: dict):\n"
        "        pass\n    def __call__(self, input_ids, scores):\n        return scores\n", 3, "table",
    ),
    "annotations that fail": (
        "from __future__ import annotations\nfrom transformers import LogitsProcessor\nclass Own(LogitsProcessor):\n"
        "    def __init__(self, a: unknown = 1):\n        pass\n    def __call__(self, input_ids, scores):\n"
        "        return scores\n", 4, "annotations",
    ),
    "a default out of range": (
        "from decodescope.core.measures import Measure\n"
        "from decodescope.core.strategies.base import Strategy\nfrom decodescope.core.parameter import "
        "Parameter\nP = Parameter('x', 'X', 'int', 5, '', minimum=0, maximum=1)\n"
        "STRATEGY = Strategy('own', 'Own', '', (P,), print)\n", 0, "default",
    ),
    "a name that is no identifier": (
        "from decodescope.core.measures import Measure\nMEASURE = Measure('a b', 'A', '', len)\n", 0, "identifier"
    ),
    "titles that are no text": (
        "from decodescope.core.measures import Measure\nMEASURE = Measure('ab', 7, '', len)\n", 0, "title is not text"
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", IMPORTS)
def test_unusable_file_fails_with_cause_and_line(kind: str, tmp_path: Path) -> None:
    text, line, words = IMPORTS[kind]
    plugin = load_file(write(tmp_path, text))
    assert plugin.state == "failed"
    assert plugin.error is not None
    assert words in plugin.error.cause
    assert "hostile.py" in plugin.error.cause
    if line is not None:
        assert plugin.error.line == line
    assert plugin.error.path == str(tmp_path / "hostile.py")


def test_invalid_plugin_files_are_named_in_the_error(tmp_path: Path) -> None:
    write(tmp_path, "x = 1", "good.py").write_bytes(b"\xff\xfe\x00x = 1")
    (tmp_path / "folder.py").mkdir()
    write(tmp_path, "#" * (MAX_BYTES + 1), "large.py")
    (tmp_path / "nul.py").write_bytes(b"x = 1\0")
    names = ["good.py", "folder.py", "large.py", "nul.py", "missing.py"]
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.py")
        names.append("pipe.py")
    for name in names:
        plugin = load_file(tmp_path / name)
        assert plugin.error is not None, name
        assert name in plugin.error.cause


def test_an_import_does_not_change_the_process(tmp_path: Path) -> None:
    text = (
        "import os, sys, torch\nos.chdir('/')\nsys.path.insert(0, 'x')\nsys.stdout = None\n"
        "sys.setrecursionlimit(9999)\ntorch.set_default_dtype(torch.float64)\nraise SystemExit\n"
    )
    before = os.getcwd(), sys.path[:], sys.stdout, sys.getrecursionlimit(), torch.get_default_dtype()
    load_file(write(tmp_path, text))
    assert before == (os.getcwd(), sys.path, sys.stdout, sys.getrecursionlimit(), torch.get_default_dtype())


STEPS = {
    "raises": ("        raise ZeroDivisionError('oh')", 9, "ZeroDivisionError: oh"),
    "raises an exit": ("        sys.exit('bye')", 9, "SystemExit"),
    "interrupts": ("        raise KeyboardInterrupt", 9, "KeyboardInterrupt"),
    "returns NaN": ("        return scores * math.nan", 6, "NaN"),
    "returns infinity": ("        return scores + math.inf", 6, "infinite"),
    "returns a wrong shape": ("        return scores[:, :-1]", 6, "shape"),
    "returns integers": ("        return scores.long()", 6, "int64"),
    "returns nothing": ("        pass", 6, "None"),
    "returns a list": ("        return scores.tolist()", 6, "list"),
    "removes everything": ("        return scores - math.inf", 6, "every token"),
    "never ends": ("        while True:\n            pass", None, "did not return"),
    "sleeps": ("        time.sleep(4)", 9, "did not return"),
    "swallows the interruption": (
        "        import time\n        end = time.monotonic() + 4\n        while time.monotonic() < end:\n"
        "            try:\n                time.sleep(0.01)\n            except BaseException:\n"
        "                pass", None, "did not return",
    ),
    "returns a sparse tensor": ("        return scores.to_sparse()", 6, "layout is sparse_coo"),
    "returns a tensor of oneDNN": ("        return scores.to_mkldnn()", 6, "layout is _mkldnn"),
    "returns freed memory": (
        "        scores.untyped_storage().resize_(0)\n        return scores", 6, "memory has been freed"
    ),
    "returns memory that is too small": (
        "        scores.untyped_storage().resize_(8)\n        return scores", 6, "memory has been freed"
    ),
    "returns a tensor on another device": ("        return scores.to('meta')", 6, "on the device meta"),
    "returns a nested tensor": (
        "        import warnings\n        warnings.simplefilter('ignore')\n"
        "        return torch.nested.nested_tensor([scores[0]], layout=torch.strided)", 6, "layout is nested",
    ),
    "returns complex numbers": ("        return scores + 1j", 6, "complex64"),
    "recurses": ("        return self(input_ids, scores)", 9, "RecursionError"),
}  # fmt: skip


@pytest.mark.parametrize("kind", STEPS)
def test_failing_processor_ends_the_run_and_keeps_its_text(kind: str, tmp_path: Path) -> None:
    body, line, words = STEPS[kind]
    prompt = tiny.prompt()
    use(write(tmp_path, PROCESSOR.format(start=len(prompt) + 3, body=body)))
    settings = {"max_new_tokens": 8}
    whole = core.run(tiny.shared("llama"), core.Request(prompt, settings)).sequences[0]
    ids, error = collect(core.Request(prompt, settings, options={"hostile": True}))
    assert error is not None
    assert words in error.cause
    assert "hostile.py" in error.cause
    assert line is None or error.line == line
    assert ids == whole[:3] or "swallows" in kind or "sleeps" in kind  # a stuck thread cannot hand over the last step
    assert ids == whole[: len(ids)]
    assert core.run(tiny.shared("llama"), core.Request(prompt, settings)).sequences[0] == whole


@pytest.mark.parametrize("strategy", ["greedy", "prompt_lookup"])
def test_system_exit_is_reported_after_the_generated_text(
    strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_loop, "_MAX_WAIT_SECONDS", 3600.0)
    prompt = tiny.prompt()
    use(write(tmp_path, PROCESSOR.format(start=len(prompt) + 2, body="        sys.exit('bye')")))
    config = {"max_new_tokens": 8, **({"prompt_lookup_num_tokens": 2} if strategy == "prompt_lookup" else {})}
    whole = core.run(tiny.shared("llama"), core.Request(prompt, {"max_new_tokens": 8})).sequences[0]
    ids, error = collect(core.Request(prompt, config, strategy, options={"hostile": True}))
    assert error is not None
    assert ids == whole[:2], "the second step waited for a third"


def test_a_processor_cannot_change_text_or_scores_in_place(tmp_path: Path) -> None:
    body = "        input_ids.zero_()\n        kept = scores.clone()\n        scores.fill_(0)\n        return kept"
    use(write(tmp_path, PROCESSOR.format(start=0, body=body)))
    prompt, settings = tiny.prompt(), {"max_new_tokens": 6}
    plain = core.run(tiny.shared("llama"), core.Request(prompt, settings))
    ids, error = collect(core.Request(prompt, settings, options={"hostile": True}))
    assert error is None
    assert ids == plain.sequences[0]


SETTINGS_CHANGED = """        torch.set_default_dtype(torch.float64)
        torch.set_default_device("meta")
        torch.set_grad_enabled(True)
        torch.set_num_threads(torch.get_num_threads() + 1)
        torch.use_deterministic_algorithms(True)
        torch.autocast("cpu").__enter__()
        sys.setrecursionlimit(100_000)
        return scores"""


def test_settings_of_torch_and_python_that_a_processor_changes_are_undone(tmp_path: Path) -> None:
    prompt, settings = tiny.prompt(), {"max_new_tokens": 6}
    plain = core.run(tiny.shared("llama"), core.Request(prompt, settings)).sequences[0]
    use(write(tmp_path, PROCESSOR.format(start=0, body=SETTINGS_CHANGED)))
    before = readable_state()
    ids, error = collect(core.Request(prompt, settings, options={"hostile": True}))
    assert error is None
    assert ids == plain
    assert readable_state() == before


VIEWS = {
    "negated": "return torch._neg_view(-scores)",
    "transposed": "return scores.t().contiguous().t()",
    "in float64": "return scores.double()",
    "a parameter": "return torch.nn.Parameter(scores.clone())",
}


@pytest.mark.parametrize("kind", VIEWS)
def test_scores_that_a_processor_returns_in_another_form_give_the_same_text(kind: str, tmp_path: Path) -> None:
    prompt, settings = tiny.prompt(), {"max_new_tokens": 6}
    plain = core.run(tiny.shared("llama"), core.Request(prompt, settings)).sequences[0]
    use(write(tmp_path, PROCESSOR.format(start=0, body=f"        {VIEWS[kind]}")))
    ids, error = collect(core.Request(prompt, settings, options={"hostile": True}))
    assert error is None
    assert ids == plain


KEPT = """        self.kept = getattr(self, "kept", [])
        for one in self.kept:
            one.zero_()
            one.untyped_storage().resize_(0)
        found = scores.clone()
        self.kept = [found, scores, input_ids]
        return found"""


def test_a_processor_that_frees_what_it_returned_changes_nothing(tmp_path: Path) -> None:
    prompt, settings = tiny.prompt(), {"max_new_tokens": 6}
    plain = core.run(tiny.shared("llama"), core.Request(prompt, settings)).sequences[0]
    use(write(tmp_path, PROCESSOR.format(start=0, body=KEPT)))
    run = core.run(tiny.shared("llama"), core.Request(prompt, settings, options={"hostile": True}))
    assert run.sequences[0] == plain
    chosen = [event for event in run.events if isinstance(event, core.events.TokenChosen)]
    assert all(math.isfinite(event.log_probability) for event in chosen)


CACHE = """
import torch
from transformers.cache_utils import DynamicCache
from decodescope.core.caches.base import CacheBackend
from decodescope.core.caches.measurement import CacheEstimate

class Own(DynamicCache):
    def update(self, keys, values, layer_idx, *args, **kwargs):
        keys, values = super().update(keys, values, layer_idx, *args, **kwargs)
        {body}
        return keys, values

def build(model, length, options):
    return Own()

BACKEND = CacheBackend(
    name="hostile_cache", title="Hostile", summary="…", build=build, order=1,
    describe=lambda model, run: CacheEstimate(0),
)
"""
CACHES = {
    "frees its memory": ("keys = keys.clone(); keys.untyped_storage().resize_(0)", "memory has been freed"),
    "returns another type": ("values = values.double()", "type float64"),
    "loses heads": ("keys = keys[0]", "states of shape"),
    "returns a list": ("values = values.tolist()", "list instead of a tensor"),
}


@pytest.mark.parametrize("kind", CACHES)
def test_a_cache_that_returns_unusable_states_is_named(kind: str, tmp_path: Path) -> None:
    body, words = CACHES[kind]
    use(write(tmp_path, CACHE.format(body=body)))
    _ids, error = collect(core.Request(tiny.prompt(), {"max_new_tokens": 4}, cache="hostile_cache"))
    assert error is not None
    assert words in error.cause
    assert "hostile.py, line" in error.cause


STRATEGIES = {
    "an unknown token": ({"pick": "return torch.tensor([99999])"}, "99999"),
    "a negative token": ({"pick": "return torch.tensor([-1])"}, "-1"),
    "too many tokens": ({"pick": "return torch.tensor([1, 2, 3])"}, "shape [3]"),
    "no tensor": ({"pick": "return None"}, "NoneType instead of a tensor"),
    "a fraction": ({"pick": "return torch.tensor([1.5])"}, "type torch.float32"),
    "a sparse tensor": ({"pick": "return torch.tensor([1]).to_sparse()"}, "layout is sparse_coo"),
    "a token on another device": ({"pick": "return torch.tensor([1], device='meta')"}, "on the device meta"),
    "freed memory": (
        {"pick": "\n        t = torch.tensor([1])\n        t.untyped_storage().resize_(0)\n        return t"},
        "memory has been freed",
    ),
    "an exception": ({"pick": "raise LookupError('where')"}, "where"),
    "an endless loop": ({"pick": "\n        while True: pass"}, "did not return"),
    "endless events": (
        {"before": "from decodescope.core.events import Notice\n"
        "    while 1: yield Notice('setting_ignored', '')"}, "does not end"
    ),
    "a method that is not text": ({"top": "METHOD = 5"}, "the picker's method is 5"),
    "a method with a line break": ({"top": "METHOD = 'a\\nb'"}, "not a name of at most 60 characters"),
    "a method of a thousand characters": ({"top": "METHOD = 'a' * 1000"}, "not a name of at most 60 characters"),
    "no events": ({"before": "yield 7"}, "int instead of an event"),
    "no generator": ({"top": "import types", "before": "raise StopIteration"}, "StopIteration"),
    "more tokens than allowed": ({"after": "yield from decode_single(run, Picker())"}, "more than the 5 tokens"),
}  # fmt: skip


@pytest.mark.parametrize("kind", STRATEGIES)
def test_failing_strategy_is_named_with_file_and_line(kind: str, tmp_path: Path) -> None:
    parts, words = STRATEGIES[kind]
    fields = {"top": "", "pick": "return scores.argmax(-1)", "before": "pass", "after": "pass", **parts}
    use(write(tmp_path, STRATEGY.format(**fields)))
    ids, error = collect(core.Request(tiny.prompt(), {"max_new_tokens": 5}, strategy="hostile"))
    assert error is not None
    assert words in error.cause
    assert "hostile.py, line" in error.cause
    whole = core.run(tiny.shared("llama"), core.Request(tiny.prompt(), {"max_new_tokens": 5})).sequences[0]
    assert ids[:3] == whole[: len(ids[:3])]
    assert len(ids) >= 3 or "before" in parts or "METHOD" in fields["top"]


def test_a_strategy_that_ignores_stop_is_interrupted(tmp_path: Path) -> None:
    loop = "output, done = run.prefill()\n    while True: run.forward(torch.tensor([[1]]))"
    fields = {"top": "", "pick": "pass", "before": loop, "after": "pass"}
    use(write(tmp_path, STRATEGY.format(**fields)))
    cancel = threading.Event()
    stopper = threading.Timer(0.5, cancel.set)
    stopper.start()
    _ids, error = collect(core.Request(tiny.prompt(), {"max_new_tokens": 200}, strategy="hostile"), cancel)
    stopper.join()
    assert error is not None
    assert "did not stop" in error.cause


@pytest.mark.parametrize("field", ["strategy", "cache", "cache_options"])
def test_requests_with_values_that_have_no_hash_are_refused(field: str, tmp_path: Path) -> None:
    """As they are without plug-ins, which are found by the names in a request."""
    use(write(tmp_path, STRATEGY.format(top="", pick="pass", before="pass", after="pass")))
    values = {"strategy": ["greedy"], "cache": ["dynamic"], "cache_options": {"window": [1]}}
    request = core.Request(tiny.prompt(), {"max_new_tokens": 2}, **{field: values[field]})  # type: ignore[arg-type]
    with pytest.raises(core.errors.DecodescopeError):
        core.run(tiny.shared("llama"), request)


def test_object_that_is_not_a_plugin_is_refused() -> None:
    with pytest.raises(PluginError, match=r"“5” .* neither a path nor an entry"):
        use(5)  # type: ignore[arg-type]


def test_names_already_in_use_are_refused(tmp_path: Path) -> None:
    text = PROCESSOR.format(start=0, body="        return scores").replace("Hostile", "{name}")
    for name in ("Temperature", "NumBeams", "MaxNewTokens"):
        with pytest.raises(PluginError, match="already in use"):
            use(write(tmp_path, text.replace("{name}", name)))
    first, second = (load_file(write(tmp_path, text.replace("{name}", "Own"), f"{n}.py")) for n in "ab")
    assert [plugin.state for plugin in install([first, second])] == ["on", "failed"]
    assert "own" in core.strategies.registry["greedy"].parameter_names


def test_a_changed_file_is_not_run(tmp_path: Path) -> None:
    folder = PluginFolder(tmp_path)
    path = folder.create("processor").path
    assert path is not None
    path.write_text("raise SystemExit('it ran')", encoding="utf-8")
    assert [(plugin.state, plugin.error) for plugin in folder.load()] == [("changed", None)]
    folder.switch_on(folder.scan()[0])
    (ran,) = folder.load()
    assert ran.error is not None
    assert "it ran" in ran.error.cause
    assert load_file(path, "another digest").state == "changed"
    folder.switch_off(ran)
    assert [plugin.state for plugin in folder.load()] == ["off"]


@pytest.mark.parametrize("content", ["", "[]", "{", '{"files": 3}', '{"files": {"my_strategy.py": 1}}', "[" * 9999])
def test_damaged_plugin_list_switches_all_plugins_off(content: str, tmp_path: Path) -> None:
    folder = PluginFolder(tmp_path)
    folder.create("strategy")
    (tmp_path / "plugins.json").write_text(content, encoding="utf-8")
    assert [plugin.state for plugin in folder.scan()] == ["off"]


def test_damaged_entry_point_is_named_in_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "hostile_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hostile-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[decodescope.processors]\nown = hostile_package:Missing\n")
    (tmp_path / "hostile_package.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    folder = PluginFolder(tmp_path)
    (plugin,) = folder.load()
    assert isinstance(plugin, Plugin)
    assert (plugin.state, plugin.source) == ("failed", "hostile-package 1.0")
    assert plugin.error is not None
    assert "Missing" in plugin.error.cause
    folder.switch_off(plugin)
    assert [one.state for one in folder.load()] == ["off"]


RANKED = STRATEGY.format(
    top="RANK = {rank}", pick="return scores.topk(RANK).indices[:, -1]", before="pass", after="pass"
).replace("<= 3", "<= 0")


def test_a_file_that_changes_during_a_run_does_not_change_that_run(tmp_path: Path) -> None:
    """The run keeps the code that it began with; the next one uses the new file."""

    def ranks(events: Iterator[core.Event]) -> set[int]:
        return {event.rank for event in events if isinstance(event, core.events.TokenChosen)}

    path = write(tmp_path, RANKED.format(rank=2))
    use(path)
    request = core.Request(tiny.prompt(), {"max_new_tokens": 6}, strategy="hostile")
    running = core.stream(tiny.shared("llama"), request)
    for event in running:
        if isinstance(event, core.events.TokenChosen):
            break
    write(tmp_path, RANKED.format(rank=3))
    use(path)
    assert ranks(running) == {2}
    assert ranks(core.stream(tiny.shared("llama"), request)) == {3}
    path.unlink()
    assert ranks(core.stream(tiny.shared("llama"), request)) == {3}


def test_the_line_of_an_error_is_that_of_the_code_that_ran(tmp_path: Path) -> None:
    """Also if the file was changed after it was loaded."""
    path = write(tmp_path, PROCESSOR.format(start=0, body="        raise LookupError('first')"))
    use(path)
    path.write_text("# line\n" * 30)
    _ids, error = collect(core.Request(tiny.prompt(), {"max_new_tokens": 3}, options={"hostile": True}))
    assert error is not None
    assert (error.line, error.path) == (9, str(path))


def test_symbolic_link_runs_only_the_approved_content(tmp_path: Path) -> None:
    """A link out of the folder names its target, and requires approval again when the target or the link changes."""
    folder, elsewhere = PluginFolder(tmp_path / "data"), tmp_path / "elsewhere.py"
    folder.path.mkdir(parents=True)
    elsewhere.write_text(PROCESSOR.format(start=0, body="        return scores"))
    link = folder.path / "linked.py"
    link.symlink_to(elsewhere)
    [plugin] = folder.scan()
    assert (plugin.state, plugin.title) == ("off", "linked")
    assert plugin.source == f"{link} → {elsewhere}"
    folder.switch_on(plugin)
    [loaded] = folder.load()
    assert (loaded.state, loaded.source) == ("on", plugin.source)
    elsewhere.write_text(PROCESSOR.format(start=0, body="        return scores + 1"))
    assert [one.state for one in folder.load()] == ["changed"]
    for target, words in ((tmp_path / "nowhere.py", "not a file"), (link, "not a file"), (tmp_path, "not a file"),
                          (Path("/dev/zero"), "not a file")):  # fmt: skip
        link.unlink()
        link.symlink_to(target)
        [found] = folder.load()
        assert found.error is not None, target
        assert words in found.error.cause or "symbolic links" in found.error.cause
    link.unlink()  # Hypothesis reads the file of every module, and this one would never end
