"""Documents for developers: the worked examples run, and every file, function, test and link they name exists."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

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
    from decodescope.core import strategies

    (tmp_path / "runner_up.py").write_text(examples(root)[0], encoding="utf-8")
    monkeypatch.setattr(strategies, "__path__", [*strategies.__path__, str(tmp_path)])
    monkeypatch.setattr(strategies.registry, "_entries", None)
    yield "runner_up"
    sys.modules.pop("decodescope.core.strategies.runner_up", None)


def test_added_strategy_is_found_and_decodes(example):
    from decodescope import core
    from tests.core import tiny

    assert example in core.strategies.registry
    model = tiny.shared("llama")
    config = transformers.GenerationConfig(max_new_tokens=4)
    second = core.run(model, core.Request([5, 6], config, strategy=example))
    first = core.run(model, core.Request([5, 6], config, strategy=example, options={"rank": 1}))
    greedy = core.run(model, core.Request([5, 6], config, strategy="greedy"))
    assert first.sequences == greedy.sequences
    assert second.sequences[0][0] != greedy.sequences[0][0]
    chosen = next(event for event in second.events if isinstance(event, core.events.TokenChosen))
    assert chosen.rank == 2


def test_step_of_an_added_strategy_is_replayed_by_its_own_picker(example):
    from decodescope import core
    from tests.core import tiny

    model, request = tiny.shared("llama"), core.Request([5, 6], {"max_new_tokens": 4}, strategy=example)
    ids = core.run(model, request).sequences[0]
    replayed = core.replay_step(model, request, ids, 2, {"rank": 1})
    assert (replayed.before.id, replayed.before.rank, replayed.before.method) == (ids[2], 2, "runner_up")
    assert replayed.after is not None
    assert replayed.after.rank == 1


def test_parameter_of_an_added_strategy_is_checked(example):
    from decodescope import core
    from tests.core import tiny

    request = core.Request([5, 6], strategy=example, options={"rank": 0})
    with pytest.raises(core.errors.ParameterError, match="rank"):
        core.run(tiny.shared("llama"), request)


def test_added_measure_is_found_and_computes(root, tmp_path, monkeypatch):
    from decodescope.core import measures

    (code,) = [code for code in examples(root) if "MEASURE = " in code]
    (tmp_path / "distinct_words.py").write_text(code, encoding="utf-8")
    monkeypatch.setattr(measures, "__path__", [*measures.__path__, str(tmp_path)])
    monkeypatch.setattr(measures.registry, "_entries", None)
    values, errors = measures.measure(measures.MeasuredText("A cat and a dog."))
    sys.modules.pop("decodescope.core.measures.distinct_words", None)
    assert values["distinct_words"] == 0.8
    assert errors == ()
    assert "distinct_words" not in measures.measure(measures.MeasuredText(""))[0]


USE_OF_THE_PROCESSOR = """
import sys

import torch
from decodescope import core
from decodescope.core import processors

processors.__path__.append(sys.argv[1])
from decodescope.core.explain.tokens import explain_token
from tests.core import tiny

for name in ("sampling", "beam_sampling", "assisted", "dola"):
    assert "top_a" in core.strategies.registry[name].parameter_names, name
assert "top_a" not in core.strategies.registry["greedy"].parameter_names
term = core.glossary.term_for("param.top_a")
assert len({term.title, term.plain, term.usual, term.exact}) == 4
assert processors.registry["top_a"].plain_phrase
assert "top_a" in {one.name for one in core.strategies.own_settings(core.strategies.registry["sampling"])}
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


@pytest.mark.slow
def test_added_processor_is_one_file(root, tmp_path):
    """In its own process, because strategies collect the settings of processors at their first use."""
    (tmp_path / "top_a.py").write_text(examples(root)[1], encoding="utf-8")
    command = [sys.executable, "-c", USE_OF_THE_PROCESSOR, str(tmp_path)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob(".github/**/*.md"),
        *ROOT.glob("packaging/*/README.md"),
    )
)
MAX_ROWS = 30
"""Limit of the table "Where is …?": folder and module names answer other questions."""
_PATH = re.compile(
    r"`((?:app|core|docs|packaging|resources|tests|\.ci|\.github)/[\w./-]*)(?:::([\w.]+))?`"
    r"|(tests/[\w./]+\.py)(?:::(\w+))?"
)
"""A path in backticks, or a test; `file::name` names a class, function or constant of the file."""


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def named_paths(text: str) -> Iterator[tuple[str, str]]:
    """Yield path and name of everything that a document names; the name is empty for a whole file or folder."""
    for path, name, test, function in _PATH.findall(text):
        yield (path, name) if path else (test, function)


def defined_names(path: Path) -> set[str]:
    """Return the classes, functions, methods and constants of a module: `f`, `Class`, `Class.method`."""

    def names_in(body: list[ast.stmt], prefix: str) -> Iterator[str]:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield prefix + node.name
                if isinstance(node, ast.ClassDef):
                    yield from names_in(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                yield from (prefix + target.id for target in targets if isinstance(target, ast.Name))

    return set(names_in(ast.parse(path.read_text(encoding="utf-8")).body, ""))


def missing(text: str) -> list[str]:
    """Return what a document names and does not exist."""
    return [
        f"{path}::{name}" if name else path
        for path, name in named_paths(text)
        if not (ROOT / path).exists() or (name and name not in defined_names(ROOT / path))
    ]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_path_and_function_that_a_document_names_exists(document):
    assert missing(text_of(document)) == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_document_links_resolve(document):
    folder, text = (ROOT / document).parent, re.sub(r"```.*?```", "", text_of(document), flags=re.DOTALL)
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"[a-z]+:", link)]
    assert [link for link in links if not (folder / link.partition("#")[0]).exists()] == []


def test_missing_paths_and_functions_are_found():
    text = "`core/errors.py::DecodescopeError`, `core/errors.py::Nothing`, `app/nowhere.py`, tests/conftest.py::nothing"
    assert missing(text) == ["core/errors.py::Nothing", "app/nowhere.py", "tests/conftest.py::nothing"]


def test_architecture_page_names_every_top_level_folder():
    text = text_of("docs/architecture.md")
    places = {path.rstrip("/") for path, _ in named_paths(text)}
    assert {f"app/{path.name}" for path in (ROOT / "app").iterdir() if (path / "__init__.py").exists()} <= places
    rooms = {f"core/{path.name}" for path in (ROOT / "core").iterdir() if (path / "__init__.py").exists()}
    assert rooms - places == {"core/checks", "core/common", "core/system"} - places
    table = text[text.index("## Where is") : text.index("## Adding a strategy")]
    assert 15 < len(re.findall(r"^\| …", table, re.MULTILINE)) <= MAX_ROWS


def imported_folders(folder: Path) -> set[str]:
    """Return the folders of the core that a folder of it imports from, types included."""
    found = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                found |= {f"{node.module}.{item.name}" for item in node.names}
            elif isinstance(node, ast.Import):
                found |= {item.name for item in node.names}
    parts = (name.split(".") for name in found if name.startswith("decodescope.core."))
    return {name for _, _, name, *_ in parts if (ROOT / "core" / name).is_dir() and name != folder.name}


def test_folders_that_a_folder_may_use_are_those_that_it_imports() -> None:
    shared = {"common", "checks", "system"}
    rows = re.findall(r"^\| `core/(\w+)/`[^|]*\|[^|]*\| ([^|]*) \|$", text_of("docs/architecture.md"), re.MULTILINE)
    listed = {
        folder: {word for word in re.findall(r"\w+", words) if (ROOT / "core" / word).is_dir()}
        for folder, words in rows
    }
    listed = {folder: names for folder, names in listed.items() if names}
    assert len(listed) > 8
    assert listed == {folder: imported_folders(ROOT / "core" / folder) - shared for folder in listed}


def test_the_tour_has_ten_steps_each_with_a_file_and_a_function():
    _, *steps = re.split(r"^## \d+\. ", text_of("docs/tour-of-the-code.md"), flags=re.MULTILINE)
    assert len(steps) == 10
    assert all(any(name for _, name in named_paths(step)) for step in steps)


_DOTTED = re.compile(r"`((?:core|app|resources)(?:\.\w+)+)`")
"""A module, class or function in the prose of the code."""


def is_defined(name: str) -> bool:
    """Return whether a dotted name is a package or module of the program, or something that one of them mentions."""
    parts = name.removeprefix("decodescope.").split(".")
    for count in range(len(parts), 0, -1):
        base = ROOT.joinpath(*parts[:count])
        file = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
        if file.exists():
            rest = parts[count:]
            return not rest or re.search(rf"\b{rest[0]}\b", file.read_text(encoding="utf-8")) is not None
    return False


def test_every_module_that_the_code_or_a_document_names_exists():
    files = [path for folder in ("app", "core", "resources", "packaging") for path in (ROOT / folder).rglob("*.py")]
    documents = [ROOT / name for name in DOCUMENTS if name != "CHANGELOG.md"]
    found = [
        f"{path.relative_to(ROOT).as_posix()}: {name}"
        for path in (*files, *documents)
        for name in _DOTTED.findall(path.read_text(encoding="utf-8"))
        if not is_defined(name)
    ]
    assert found == []
    assert is_defined("core.errors.DecodescopeError")
    assert not is_defined("core.errors.nothing_of_this_name")
    assert not is_defined("core.nowhere.Nothing")
