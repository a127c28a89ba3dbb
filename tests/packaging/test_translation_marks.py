"""Every sentence and label of the program is marked for translation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.packaging.unmarked_texts import Found, looks_read, unmarked, unmarked_in_script

ROOT = Path(__file__).parents[2]
HELD = ("core", "app")
"""Folders in which every sentence is marked."""
NOT_YET: tuple[str, ...] = ()
"""Folders of these that are still worked on."""


class Allowed(NamedTuple):
    """Texts that are the same in every language."""

    path: str
    """A file or a folder, from the root."""
    texts: str
    """A regular expression for the whole text."""
    why: str


CODE = r"(# )?(import|from|for|model|request|result|draft|prompt|ids|inputs|outputs|messages|negative|tokenizer)\b.*"
PAPER = r"[^\n]+ (19|20)\d\d, [^\n]+"
ALLOWED = (
    Allowed("core/code", CODE, "a line of the script that is written"),
    Allowed("core/code", r"\{…\}: \{…\}|\{…\}\.generation_config.*|True", "a piece of it"),
    Allowed("core/code/transformers_script.py", r" {4,}(if|for|layer).*", "a script"),
    Allowed("core/code/transformers_script.py", r"state = zlib\..*|\{…\}\.set_rng_state.*", "a script"),
    Allowed("core/models/adapters/adapter_files.py", r"LoRA \(GGUF\)", "a name"),
    Allowed("core/grammar/grammar_setting.py", r'\{"type": .*', "a schema, as an example"),
    Allowed("core/grammar/compilation.py", r"%llguidance .*|Un[a-z]+ [a-z]+: ", "a grammar; what llguidance says"),
    Allowed("core/plugins/plugin_folder.py", r"My (processor|strategy)( \{number\})?", "names in the templates"),
    Allowed("core/plugins/plugin_loading.py", r"Parameter", "a class"),
    Allowed("app/start/cli", r"decodescope( [a-z-]+:| \{…\}:)? \{…\}", "the name of the command"),
    Allowed("app/start/cli/study.py", r"\{l_bar\}.*", "a format of tqdm"),
    Allowed("app/start/cli/atlas.py", r"\{l_bar\}.*", "a format of tqdm"),
    Allowed("app/features/likelihood/session.py", r"without start token", "a name of the core"),
    Allowed("core/claims/prompt_sets.py", r"[\s\S]*", "prompts for models that read English"),
    Allowed("core/strategies", PAPER, "authors, year and title of a paper"),
    Allowed("core/processors", PAPER, "authors, year and title of a paper"),
    Allowed("core/caches", PAPER, "authors, year and title of a paper"),
    Allowed("app/features/tours/store.py", r"<[\s\S]*", "HTML"),
    Allowed("app/panels/choice_row.py", r"Backspace", "the name of a key"),
    Allowed("core/studies/study_report.py", r"<[\s\S]*|Python", "HTML; a name"),
    Allowed("core/studies/study_file.py", r"\\\(at line .*", "what tomllib says"),
    Allowed("core/studies/runner.py", r"study \{…\} \{…\}", "the name of a thread"),
    Allowed("app/storage/chat_formats.py", r"decodescope chat", "the kind of file, which it states"),
    Allowed("app/storage/presets.py", r"[A-Z][a-z]+( choice)?", "names of presets, marked in app/panels/preset_bar.py"),
    Allowed("core/decoding/keyed_noise.py", r"the scores exclude the token", "a ValueError"),
    Allowed("app/start/cli/show.py", r"bright_red underline", "a style of rich"),
    Allowed("core/system/optional_deps.py", r"pip install .*", "a command"),
    Allowed("app/features/live/controller.py", r"No temporary folder .*", "a line of the log"),
    Allowed("app/start/qt_libraries.py", r".*", "shared with bootstrap.py, which runs before there are translations"),
    Allowed("app/start/display.py", r"This plugin does not support ", "what Qt writes"),
    Allowed("app/state/text_formats.py", r'\{"choice": .*', "a grammar, as an example"),
    Allowed("app/panels/grammar_editor.py", r"\{\n.*|start: .*|root ::= [\s\S]*", "grammars to begin with"),
    Allowed("core/processors/thinking_extensions.py", r"Wait", "what a model writes"),
    Allowed("core/common/lazy_imports.py", r" Did you mean .*", "an AttributeError"),
    Allowed("app/storage/programs/read_only_formats.py", r"[A-Z][\w ()-]+", "names of programs"),
    Allowed("app/control/dialogs.py", r"[\s\S]*", "a report for those who mend the program, which is English"),
    Allowed("app/start/crash_report.py", r"[\s\S]*", "a report for those who mend the program, which is English"),
    Allowed("app/state/licences.py", r"[\s\S]*", "fields of metadata, and the head of THIRD_PARTY.txt"),
    Allowed("app/state/bundled_libraries.py", r"[\s\S]*", "THIRD_PARTY.txt, which is English as the licences are"),
    Allowed("app/state/versions.py", r"[\s\S]*", "a report for those who mend the program, which is English"),
    Allowed("app/start/cli/parser.py", r"Decodescope \{…\}", "the name of the program and its version"),
    Allowed("app/widgets/banner.py", r"Action", "the class of a button"),
    Allowed("app/start/qt_variables.py", r"[A-Z][A-Za-z, ]+", "values of Qt's variables"),
    Allowed("core/models/token_scheme.py", r"[A-Z][A-Za-z]+", "names of decoders in tokenizer.json"),
    Allowed("core/models/config_validation.py", r"NVIDIA ModelOpt|[A-Z][\w -]+", "names of programs"),
    Allowed("core/common/setting_values.py", r"Tensor", "the name of a class"),
    Allowed("core/trace/validation.py", r"[A-Z][A-Za-z]+", "names of events"),
    Allowed(
        "core/decoding/forward/rotary.py", r"The model knows .*", "an IndexError, which the check of lengths prevents"
    ),
    Allowed("core/generation/thread_choice.py", r"threads .*", "a key of a file"),
    Allowed("core/models/gguf/architectures.py", r"by group|log negated|joined by head", "names of operations"),
    Allowed("core/trace/schema.py", r"[A-Z][a-z]+", "names of records in files"),
    Allowed("core/caches/tensors/quantized.py", r"pip install .*", "a command"),
    Allowed(
        "core/labs/preference/model_saving.py", r"[\s\S]*", "a model's card, which is English as the bundled ones are"
    ),
    Allowed("core/decoding/forward/fused_decoder.py", r"(The quick|In 1969).*", "texts for a model that reads English"),
    Allowed("core/models/gguf/architectures.py", r"by head|minus one|rows of \w+", "names of operations"),
    Allowed("core/models/gguf/tokenizer_samples.py", r"[\s\S]*", "texts that vocabularies are compared on"),
    Allowed("core/models/gguf/pre_tokenizer_rules.py", r"[\s\S]*", "names of rules, and ranges of letters"),
    Allowed("core/native/library_choice.py", r"AVX-512 VNNI", "a name"),
    Allowed("core/models/gguf/block_matrix.py", r"Blocks .*|A row index .*", "errors for programmers"),
    Allowed(
        "core/models/gguf/local_models.py",
        r"Hugging Face|Jan|LM Studio|Ollama|Local|Roaming|Application Support|Library|Caches",
        "names of programs and folders",
    ),
    Allowed("app/features/updates", r"pip install .*|User-Agent|Accept|Decodescope", "a command, and headers of HTTP"),
    Allowed("app/control/help.py", r"View", "a part of object names"),
    Allowed("app/state/cache_history.py", r"\{…\} layers", "a name of a size"),
    Allowed("core/labs/speed/events.py", r"Once upon a time.*", "a prompt for a model that reads English"),
    Allowed(
        "core/labs/scale/ranks/tensor_parallel_rank.py",
        r"Once upon a time.*",
        "a prompt for a model that reads English",
    ),
    Allowed(
        "app/features/labs/view/preference/training_pages.py",
        r"(Once upon|They played)[\s\S]*",
        "what storyteller writes",
    ),
    Allowed("app/features/labs/view/preference", r"<b style.*|\{…\} &nbsp; <b>.*", "HTML"),
    Allowed("app/control/engine_connection.py", r"pip install .*", "a command"),
    Allowed("app/features/media/session/sound_device.py", r"pip install .*", "a command"),
    Allowed("app/panels/engine_dialog.py", r"http://localhost.*", "an address, as an example"),
    Allowed("core/remote/client.py", r"Accept|Connection|text/event-.*|Bearer \{…\}", "what is said to a server"),
    Allowed(
        "core/remote/http_stream.py", r"nothing for .*", "told to nobody: the error that is shown has words of its own"
    ),
    Allowed("core/server/http_server.py", r"pip install .*|served run|data: .*|Bearer", "a command, and parts of HTTP"),
    Allowed("core/server/serve_command.py", r"decodescope serve", "the name of the command"),
    Allowed("app/features/studies/state.py", r"# \{comment\}\nseeds[\s\S]*", "a study for a model that reads English"),
    Allowed("app/features/studies/view/setup_page.py", r"\.txt, .*|http://.*|Once upon a time", "names and a prompt"),
    Allowed("app/features/serving/panel.py", r"from openai import[\s\S]*", "code"),
    Allowed("core/remote/engines/transformers_serve.py", r"transformers serve", "a program's name"),
    Allowed("core/remote/engines/lm_studio.py", r"LM Studio", "a program's name"),
    Allowed("core/remote/engines/ollama.py", r"Ollama", "a program's name"),
    Allowed("core/catalog", r"Range|bytes \{…\}-", "what is said to a server"),
    Allowed(
        "core/decoding/forward/module_map.py",
        r"[a-z ]+|\{…\} has none of \{…\}",
        "why a lean pass steps aside: for the log",
    ),
    Allowed(
        "core/decoding/forward/native_weights.py",
        r"[a-z -]+",
        "why the native step is not used: for the log",
    ),
    Allowed("core/native/native_library.py", r"\{…\} is of another version", "for the log"),
    Allowed("core/native/library_choice.py", r"CPU part|Features|model name", "what Linux calls it"),
    Allowed(
        "core/decoding/speculation/drafters/retokenizing_drafter.py",
        r"The Fox said.*",
        "a text that two tokenizers are tried on",
    ),
    Allowed(
        "core/models/quantized/tensor_files.py", r"\{…\} ended early", "for the log; the error has words of its own"
    ),
    Allowed("core/system/device_memory.py", r"[a-z_. ]+", "what libraries write when memory ends"),
    Allowed("core/caches/tensors/cache_sizes.py", r".*(layers|heads|width)(\{…\})?", "a figure's name in an event"),
    Allowed("core/caches/tensors/quantized.py", r"kv heads|\{…\} (group|width)", "a figure's name in an event"),
    Allowed(
        "core/decoding/processor_pipeline.py", r"the model", "in an event; core.processors.pipeline_stages says it"
    ),
    Allowed("core/explain/sizes.py", r"(full|windowed|head|key|value|kv) \w+", "a figure's name in an event"),
    Allowed("core/explain/words.py", r"\{…\} (ms|tok/s)", "a unit"),
    Allowed(
        "app",
        r"Decodescope|Aa|Inter( Variable)?|decodescope: .*|there is no theme .*",
        "the program's name, a sign, a font",
    ),
    Allowed("app/theme/fonts.py", r"Decodescope (Sans|Sans SC|Sans SC More|Mono)|\{…\}(, [\w -]+)+", "fonts"),
    Allowed("app", r"[^{]*#?\w*[^{]*\{.*;.*\}\s*|font-size: .*", "a style sheet"),
    Allowed("app", r"(Ctrl\+1 … )?Ctrl\+9|Ctrl\+1 … .*|Return|Enter|Esc|Space|Left|Right|Home|End", "a key"),
    Allowed("app", r" MiB", "a unit"),
    Allowed("app/state/empty_view.py", r"as it is set", "the name of a way"),
    Allowed("app/album/picture_script.py", r"instead = .*", "a line of a script"),
    Allowed("app/album/picture_drawing.py", r"Segment", "the class of a button"),
    Allowed("app/control/messages.py", r"Setup", "a kind of message"),
    Allowed("app/state/comparison/candidates.py", r"\{title\} \{label\}", "two that are translated, side by side"),
    Allowed("app/features/history/store", r"[A-Z]{4,}.*|\(?instr.*|texts\.number IN.*|\{…\} is no run's id", "SQL"),
    Allowed("app/features/history/store/history_tables.py", r"(runs|deleted|pinned) .*", "SQL"),
    Allowed("app/storage/settings.py", r"Once upon a time.*", "a prompt for a model that reads English"),
    Allowed(
        "app/features/palette", r"\{…\} theme|text size .*|tour \{…\}|Seed", "other words that an entry is found by"
    ),
    Allowed("app/panels/toolbar.py", r"Decode<span.*", "the program's name in two colours"),
    Allowed("core/trace/page/html_page.py", r".*-src '.*", "a content security policy"),
    Allowed("core/notebook", r".*(<iframe|<t[hd] |<table |background:|padding:).*", "HTML and its styles"),
    Allowed("core/generation/loading.py", r"IProgress not found", "what tqdm writes"),
    Allowed(
        "core/generate_capture", r"<\{…\}: .*|live run|decodescope watch(: \{…\})?", "a repr, a thread and a command"
    ),
    Allowed("app", r"(\w+(#\w+)? \{ )?[a-z-]+: [^;]+;.*", "a style sheet"),
    Allowed("app", r".*<(span|table|tr)\b.*", "rich text around words"),
    Allowed("app/views/inspector", r"(row\.\w+|[a-z]+)( (row\.\w+|[a-z]+))*", "names of the glossary"),
    Allowed("app/widgets/tree_canvas", r"(The tree has a|Node|Pruned nodes are) .*", "a programmer's mistake"),
)


def folders() -> list[str]:
    """Every folder that is held, one by one, so that a fault says where it is."""
    return sorted({path.parent.relative_to(ROOT).as_posix() for path in files()})


def files() -> Iterator[Path]:
    for top in HELD:
        for path in sorted((ROOT / top).rglob("*.py")):
            if not any(_is_in(path, folder) for folder in NOT_YET):
                yield path


FOUND = cache(unmarked)


def _is_in(path: Path, place: str) -> bool:
    return path == ROOT / place or (ROOT / place) in path.parents


def _allowed(path: Path, found: Found) -> Allowed | None:
    fitting = (one for one in ALLOWED if _is_in(path, one.path) and re.fullmatch(one.texts, found.text, re.DOTALL))
    return next(fitting, None)


def unmarked_texts(folder: str = "") -> list[str]:
    """Return the unmarked texts of a folder, or of all; `packaging/translations.py check` lists them."""
    return [
        f"{path.relative_to(ROOT).as_posix()}:{found.line}: not marked: {found.text!r}"
        for path in (sorted((ROOT / folder).glob("*.py")) if folder else files())
        for found in FOUND(path)
        if _allowed(path, found) is None
    ]


@pytest.mark.parametrize("folder", folders())
def test_every_sentence_is_marked(folder: str) -> None:
    faults = unmarked_texts(folder)
    assert not faults, "\n".join(["Mark these with tr, trn, trc or mark of resources.language:", *faults])


DRAWN = r"[MLC][\d. hvzHVMLCZ{}…]*|(\{…\}|[MLC ])+|color-mix.*|translate\(.*"
"""Paths of drawings, colours and places."""
KEYS = r"Enter|Escape|Home|End|button, select, input"
"""Of the keyboard, and what has a use of its own for them."""
UNITS = r"min\(1, p ÷ q\) = .*|\{…\} ms"
CLASSES = r"(\{…\}|area|edge|edge-of|bars|dashed|node|part-|pruned|refused|swatch|token|unreached| )*"


@pytest.mark.parametrize("script", sorted((ROOT / "core/trace/page/parts").glob("*.js")), ids=lambda path: path.stem)
def test_every_sentence_of_the_pages_scripts_is_marked(script: Path) -> None:
    found = unmarked_in_script(script)
    faults = [one for one in found if not re.fullmatch(f"{DRAWN}|{CLASSES}|{KEYS}|{UNITS}", one.text)]
    assert faults == [], script.name


def test_every_allowed_exception_exists() -> None:
    used = {_allowed(path, found) for path in files() for found in FOUND(path)}
    assert [one for one in ALLOWED if one not in used] == []


@pytest.mark.parametrize(
    ("code", "texts"),
    [
        ('raise ModelError(f"{name} cannot be read.", "Copy it again.")', ["Copy it again.", "{…} cannot be read."]),
        ('raise ModelError(tr("{name} cannot be read.").format(name=name), tr("Copy it again."))', []),
        ('TITLE = "Temperature"', ["Temperature"]),
        ('TITLE = mark("Temperature")', []),
        ("said = f\"{n} {'token' if n == 1 else 'a few tokens'}\"", ["a few tokens"]),
        ('said = f"{n:,} tokens"', ["{…} tokens"]),
        ('said = trn("{n} token", "{n} tokens", n).format(n=n)', []),
        ('def say(word: "Word of mine") -> "Word of mine":\n    """A docstring of words."""\n    return word', []),
        ('log.warning("the lean pass disagrees with %s", name)', []),
        ('assert name, "no name was given"', []),
        ('raise TypeError("both have to be caches")', []),
        ('label.setText("none" if not found else f"{found} more")', ["none", "{…} more"]),
        ('set_up(QWidget(), name="list", tooltip="none")', ["none"]),
        ('label.setToolTip(tr("none")); bar.setFormat("%p")', []),
        ('if kind == "full attention": rows["kv heads"] = 1', []),
        ('STRATEGY = Strategy(paper="Holtzman et al. 2020", title="Sampling")', ["Sampling"]),
        ('KEY = "num_beams"\nPATH = "core/models"', []),
    ],
)
def test_unmarked_texts_are_found(tmp_path: Path, code: str, texts: list[str]) -> None:
    file = tmp_path / "code.py"
    file.write_text(code, encoding="utf-8")
    assert sorted(found.text for found in unmarked(file)) == texts


@pytest.mark.parametrize(
    "text", ["", "top_p", "text/plain", "·", "{…}", "kv", "LlamaForCausalLM", "a-z", "str | tuple[Kind, ...]"]
)
def test_names_and_symbols_are_ignored(text: str) -> None:
    assert not looks_read(text)
