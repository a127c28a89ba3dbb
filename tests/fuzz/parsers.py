"""Every parser of files and answers that other people made: how it is called, and what it may raise.

Each has a folder `tests/fuzz/corpus/NAME` with small files. Those called `valid-…` must be read, all others must be
read or refused with a message, and so must everything that `tests/fuzz/mutation.py` makes of them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
from base64 import b64encode
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from unittest import mock

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from PySide6.QtCore import QMimeData

from decodescope import core
from decodescope.app.album.picture import AlbumError
from decodescope.app.album.picture_script import read_script
from decodescope.app.features.tours.state.tour_file import read_tour
from decodescope.app.features.updates.state import UpdateError, is_allowed_address, is_newer, verify_notice
from decodescope.app.start.cli import values
from decodescope.app.start.cli.generate import RESULTS, InputError, Output, plan_runs
from decodescope.app.start.crash_report import scrub
from decodescope.app.state import conversation, setting_values
from decodescope.app.state.recorded_run import load_run
from decodescope.app.state.request_json import request_from_json, request_to_json
from decodescope.app.state.text_formats import from_text, parse_grammar, to_text
from decodescope.app.storage import drop_offers
from decodescope.app.storage.chat_formats import ChatImportError, read_chats
from decodescope.app.storage.chat_store import ChatStore
from decodescope.app.storage.presets import load_preset
from decodescope.app.storage.settings_file import SettingsStore
from decodescope.app.theme.theme import theme_for
from decodescope.app.views.chat.formatted_answer import has_formatting, markdown_document
from decodescope.app.window.drag_and_drop import DropTarget
from decodescope.core import media, strategies
from decodescope.core.catalog import hub_requests, model_search
from decodescope.core.errors import DecodescopeError, StudyError, TraceError
from decodescope.core.grammar.compilation import GrammarVocabulary, grammar_problem, matcher_for
from decodescope.core.grammar.shortest_text import min_tokens
from decodescope.core.labs.preference.dataset_files import read_rankings
from decodescope.core.labs.preference.fine_tuning import read_examples
from decodescope.core.labs.speed.events import LINES
from decodescope.core.models.adapters.adapter_files import read_adapter
from decodescope.core.models.gguf import file_summary
from decodescope.core.models.gguf.gguf_file import hash_vocabulary, read_gguf
from decodescope.core.models.gguf.local_models import local_models
from decodescope.core.models.gguf.model_config import build_config
from decodescope.core.models.gguf.tokenizer import load_gguf_tokenizer
from decodescope.core.models.model_files import count_stored, damage_description, find_weights, read_header
from decodescope.core.models.tokenizers import load_tokenizer
from decodescope.core.plugins import PluginFolder
from decodescope.core.remote import address
from decodescope.core.remote.client import Utf8Joiner, parse_messages
from decodescope.core.studies.runner import StudyStore
from decodescope.core.studies.study_file import parse_study, plan_jobs, read_study
from decodescope.core.thinking import split_text
from decodescope.core.trace.live_address import ADDRESS_FILE, LiveAddress
from decodescope.core.trace.trace_stream import TraceStream
from tests.core import tiny

CORPUS = Path(__file__).with_name("corpus")
CHAT = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Who is there?"}]


class RefusedError(Exception):
    """The input was refused without an exception: by None, or by a reason."""


@dataclass(frozen=True)
class Parser:
    """One parser; `read(file, folder)` reads a file of the corpus, or a damaged copy, which lies alone in `folder`."""

    name: str
    read: Callable[[Path, Path], object]
    modules: tuple[str, ...]
    """Modules whose decoding of bytes or text this exercises."""
    errors: tuple[type[Exception], ...] = ()
    """What it raises with a message for the user, besides errors of the core with cause and remedy."""
    tokens: tuple[bytes, ...] = ()
    """Words of its format."""
    corpus: str = ""
    """Folder of the corpus, if it is not the name."""
    cases: int = 25
    """Damaged files in the suite's short form."""

    @property
    def files(self) -> list[Path]:
        """The files of its corpus."""
        return sorted(path for path in (CORPUS / (self.corpus or self.name)).iterdir() if path.is_file())


def _text(file: Path) -> str:
    """Return the content as text of any kind, as a clipboard or a command line might have it."""
    return file.read_bytes().decode("utf-8", "surrogateescape")


def _lines(file: Path) -> list[str]:
    return _text(file).split("\n")[:200]


# Recordings and runs of scripts


def _read_recording(file: Path, _folder: Path) -> None:
    trace = core.trace.read(file)
    load_run(trace)
    core.trace.read_header_of(file)


def _read_live_run(file: Path, _folder: Path) -> None:
    """Feed the bytes as a socket delivers them; the same bytes in one piece are the same run."""
    data, dice = file.read_bytes(), random.Random(file.stat().st_size)
    stream, events, start = TraceStream("run"), [], 0
    while start < len(data):
        end = start + dice.choice((1, 7, 100, 4096))
        events += stream.feed(data[start:end])
        start = end
    assert events == TraceStream("run").feed(data)


def _read_live_address(file: Path, folder: Path) -> None:
    data = folder / "data"
    data.mkdir(exist_ok=True)
    place = data / ADDRESS_FILE
    shutil.copyfile(file, place)
    place.chmod(0o600)
    with mock.patch("core.trace.live_address.user_folder", return_value=data):
        found = LiveAddress.find()
    if found is None:
        raise RefusedError("no address")
    assert found.address
    assert found.token


# Models


def _read_gguf(file: Path, _folder: Path) -> None:
    summary = file_summary.summarize_gguf(file)
    file_summary.vocabulary_stamp(file)
    file_summary.transformers_problem(file)
    found = read_gguf(file)
    hash_vocabulary(file)
    for tensor in found.tensors.values():
        assert len(found.data(tensor)) == tensor.nbytes
    build_config(found)
    load_gguf_tokenizer(found)
    assert summary.problem is None or file.name


def _read_tokenizer(file: Path, folder: Path) -> None:
    """The model runs with the loaded file, or raises an error with a reason."""
    model = folder / "model"
    model.mkdir(exist_ok=True)
    shutil.copyfile(file, model / ("spiece.model" if file.suffix == ".model" else "tokenizer.json"))
    (model / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}', encoding="utf-8")
    loaded = replace(tiny.shared("llama"), tokenizer=load_tokenizer(model, allow_remote_code=False))
    core.run(loaded, core.Request("A token of 你 <keep me>\n", {"max_new_tokens": 2}))
    assert len(loaded.token_bytes or ()) == loaded.model.config.vocab_size


def _read_safetensors(file: Path, folder: Path) -> None:
    """Check that safetensors reads or refuses what the header check accepts."""
    from safetensors import SafetensorError, safe_open

    place = folder / "model.safetensors"
    shutil.copyfile(file, place)
    count_stored(find_weights(folder))
    header = read_header(place)
    try:
        with safe_open(place, framework="np") as opened:
            shapes = {name: list(opened.get_slice(name).get_shape()) for name in opened.keys()}
    except (SafetensorError, OSError, ValueError):
        assert damage_description(place)
        raise RefusedError("damaged") from None
    assert header is not None
    assert {name: list(entry.shape) for name, entry in header.items()} == shapes


def _read_weights_index(file: Path, folder: Path) -> None:
    shutil.copyfile(file, folder / "model.safetensors.index.json")
    for path in find_weights(folder).files:
        assert path.parent == folder, "a shard lies in the folder"


def _read_adapter_config(file: Path, folder: Path) -> None:
    shutil.copyfile(file, folder / "adapter_config.json")
    shutil.copyfile(CORPUS / "adapter_weights" / "valid-lora.safetensors", folder / "adapter_model.safetensors")
    core.adapters.adapter_problem(str(folder))
    read_adapter(folder, "llama", (2, 2))


def _read_adapter_weights(file: Path, folder: Path) -> None:
    shutil.copyfile(CORPUS / "adapters" / "valid-lora.json", folder / "adapter_config.json")
    shutil.copyfile(file, folder / "adapter_model.safetensors")
    read_adapter(folder, "llama", (2, 2))


def _read_gguf_adapter(file: Path, _folder: Path) -> None:
    core.adapters.adapter_problem(str(file))
    read_adapter(file, "llama", (2, 2))


def _read_template(file: Path, _folder: Path) -> None:
    model = _storyteller()
    model.tokenizer.chat_template = _text(file)
    core.encode(model, CHAT)


@cache
def _storyteller() -> core.LoadedModel:
    return core.load("storyteller")


def _read_other_programs(file: Path, folder: Path) -> None:
    """Find the models of LM Studio and Ollama by their own files."""
    home = folder / "home"
    shutil.rmtree(home, ignore_errors=True)
    for place in (".lmstudio/settings.json", ".ollama/models/manifests/registry.ollama.ai/library/tale/latest"):
        (home / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, home / place)
    outside = {name: str(home) for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "HF_HOME", "LOCALAPPDATA", "APPDATA")}
    with mock.patch.dict(os.environ, outside), mock.patch.object(Path, "home", return_value=home):
        for found in local_models():
            assert found.path.is_file()


# Settings and texts


def _read_settings(file: Path, folder: Path) -> None:
    shutil.copyfile(file, folder / "settings.json")
    store = SettingsStore(folder)
    store.load()
    store.drop_invalid_values()
    if store.notices:
        raise RefusedError(" ".join(store.notices))


def _read_chat(file: Path, folder: Path) -> None:
    (folder / "chats").mkdir(exist_ok=True)
    shutil.copyfile(file, folder / "chats" / "odd.json")
    store = ChatStore(folder)
    list(store.summaries())
    talk = store.restore_last()
    store.release()
    assert len(talk.turns) <= len(list(talk.all_turns))
    with suppress(ChatImportError):
        read_chats(file)
    if store.notices:
        raise RefusedError(" ".join(store.notices))


def _read_preset(file: Path, _folder: Path) -> None:
    preset = load_preset(file)
    assert isinstance(preset.notice, str)
    assert set(preset.values) <= set(strategies.registry[preset.strategy].parameter_names)


def _read_saved_request(file: Path, _folder: Path) -> None:
    with file.open("rb") as opened:
        try:
            data = json.load(opened)
        except (ValueError, RecursionError):
            raise RefusedError("not JSON") from None
    request = request_from_json(data)
    assert request_from_json(request_to_json(request)) == request or _has_nan(data)


def _has_nan(value: object) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return value != value or any(map(_has_nan, inner))


def _read_values(file: Path, _folder: Path) -> None:
    """Type each line into the editor of every kind of setting, and into every option of the command line."""
    parameters = {p.kind: p for strategy in strategies.registry.values() for p in strategy.parameters}
    for line in _lines(file)[:20]:
        for parameter in parameters.values():
            with suppress(setting_values.InvalidValueError):
                value = setting_values.parse(parameter, line)
                assert isinstance(setting_values.format_text(value), str)
                setting_values.invalid_reason(parameter, value)
        for parse in (
            values.parse_pair, values.parse_adapter, values.parse_memory, values.parse_size, values.parse_ratio,
            values.parse_seed, values.parse_scale, values.parse_demo_speed, values.export_path,
        ):  # fmt: skip
            with suppress(argparse.ArgumentTypeError):
                parse(line)


def _read_chat_text(file: Path, _folder: Path) -> None:
    """Roles at the beginning of lines: what was read is written so that it is read alike."""
    turns = conversation.parse(_text(file))
    assert conversation.parse(conversation.format_turns(turns)) == turns


def _read_answer(file: Path, _folder: Path) -> None:
    """Markdown of a model's answer."""
    text = file.read_bytes().decode("utf-8", "replace")
    answer = split_text(text)
    if has_formatting(answer):
        markdown_document(text, theme_for("light", 1.0), 600.0)


def _read_grammar(file: Path, _folder: Path) -> None:
    value = parse_grammar(_text(file))
    if reason := grammar_problem(value):
        raise RefusedError(reason)
    ((kind, content),) = value.items()
    from_text(kind, to_text(kind, content))
    matcher = matcher_for(_vocabulary(), value, spaced=False)
    fewest = min_tokens(value, _vocabulary().bytes, limit=50)
    assert fewest is None or fewest >= 0
    assert not matcher.is_error()


@cache
def _vocabulary() -> GrammarVocabulary:
    """Return a vocabulary of single bytes and a few words."""
    return GrammarVocabulary([*(bytes([byte]) for byte in range(256)), b" the", b"ing", None], lambda _: "<s>", (258,))


def _read_crash_text(file: Path, _folder: Path) -> None:
    text = scrub(_text(file))
    assert str(Path.home()) not in text or str(Path.home()) == "/"


# Scripts and lists of requests


def _read_tour(file: Path, _folder: Path) -> None:
    read_tour(file)


def _read_album(file: Path, _folder: Path) -> None:
    read_script(file)


def _read_batch(file: Path, _folder: Path) -> None:
    data = file.read_bytes()
    try:
        lines = data.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise RefusedError("not text") from None
    for planned in plan_runs(lines, "storyteller")[:100]:
        assert len(planned.key) == 16
        assert Path(planned.file_name).name == planned.file_name


def _read_batch_results(file: Path, folder: Path) -> None:
    out = folder / "out"
    out.mkdir(exist_ok=True)
    shutil.copyfile(file, out / RESULTS)
    output = Output(out)
    for planned in plan_runs(['{"prompt": "Once"}'], "storyteller"):
        output.is_done(planned)
        output.write_table([planned])


def _read_study(file: Path, _folder: Path) -> None:
    plan_jobs(read_study(file))


def _read_study_prompts(file: Path, _folder: Path) -> None:
    """The prompts of a study: a text file, CSV or JSON Lines."""
    plan_jobs(parse_study(f"[prompts]\nfile = {json.dumps(file.name)}\n", file.parent))


def _read_study_results(file: Path, folder: Path) -> None:
    shutil.copyfile(file, folder / RESULTS)
    StudyStore(folder).close()


def _read_preferences(file: Path, _folder: Path) -> None:
    """A file of rankings or of examples: one of the two readers takes it."""
    try:
        read_rankings(file)
    except core.errors.PreferenceError:
        read_examples(file)


def _read_plugin_list(file: Path, folder: Path) -> None:
    """No content of the list switches on a file whose content is another."""
    (folder / "plugins").mkdir(exist_ok=True)
    (folder / "plugins" / "mine.py").write_text("raise SystemExit('it must not run')\n", encoding="utf-8")
    shutil.copyfile(file, folder / "plugins.json")
    with mock.patch("core.plugins.plugin_folder.entry_points", return_value=[]):  # searching the packages takes long
        assert [plugin.state for plugin in PluginFolder(folder).scan()] != ["on"]


def _read_lab_line(file: Path, _folder: Path) -> None:
    found = [LINES.decode(line) for line in file.read_bytes().split(b"\n")]
    if not any(found):
        raise RefusedError("no message")


# Answers and addresses


def _read_hub_answer(file: Path, _folder: Path) -> None:
    """Search results, or the details of a model: everything that becomes a name of a file is one."""
    data = file.read_bytes()
    try:
        infos = hub_requests.read_models(data)
    except hub_requests.InvalidResponseError:
        infos = [hub_requests.read_model(data)]
    for info in infos:
        with mock.patch.object(hub_requests, "get_model", lambda _name, info=info: info):
            found = model_search.look(info.id, allow_pickle=True, allow_code=True)
        for part in found.files:
            place = os.path.normpath(os.path.join("/models", part.path))
            assert place.startswith("/models/"), part.path


def _read_engine_stream(file: Path, _folder: Path) -> None:
    data, dice, joiner = file.read_bytes(), random.Random(file.stat().st_size), Utf8Joiner()
    pieces, start = [], 0
    while start < len(data):
        size = dice.choice((1, 9, 200, 4096))
        pieces.append(data[start : start + size])
        start += size
    for message in parse_messages(pieces, "here", has_json_lines=file.suffix == ".jsonl"):
        joiner.push(str(message.get("content", "")))
    joiner.flush()


def _read_addresses(file: Path, _folder: Path) -> None:
    """An address that was read is written so that it is read alike."""
    for line in _lines(file):
        with suppress(DecodescopeError):
            found = address.parse(line, allow_plain=True)
            assert address.parse(str(found), allow_plain=True) == found, line
        drop_offers.offer_for_address(line)
        hub_requests.is_valid_model_name(line)


def _read_notice(file: Path, _folder: Path) -> None:
    """A notice of a new version: refused as it is, and read only with a signature."""
    data, key = file.read_bytes(), Ed25519PrivateKey.from_private_bytes(bytes(32))
    public = key.public_key().public_bytes_raw()
    with suppress(UpdateError):
        verify_notice(data, public)
        raise AssertionError("it has no signature")
    signed = {"notice": b64encode(data).decode(), "signature": b64encode(key.sign(data)).decode()}
    found = verify_notice(json.dumps(signed).encode(), public)
    assert is_allowed_address(found.page)
    is_newer(found.version, "1.0")


def _read_dropped_file(file: Path, _folder: Path) -> None:
    offer = drop_offers.offer_for_files([str(file)])
    if not offer.action:
        assert offer.title
        assert offer.detail
        raise RefusedError(offer.detail)


class _DropReceiver:
    """As much of a drop target as decides what a drop does."""

    _with_reason = DropTarget._with_reason

    def _media_unsupported_reason(self, _path: str) -> str:
        return ""


def _read_dropped_data(file: Path, _folder: Path) -> None:
    """The data of a drag: one `format: content` after the other."""
    dragged = QMimeData()
    for line in file.read_bytes().split(b"\n"):
        kind, _, content = line.partition(b": ")
        dragged.setData(kind.decode("ascii", "replace"), content.replace(b"\\n", b"\r\n"))
    offer = DropTarget.offer(_DropReceiver(), dragged)  # type: ignore[arg-type]
    assert offer is None or offer.action or offer.detail


def _read_media(file: Path, _folder: Path) -> None:
    found = media.inspect(file)
    if found.kind == media.SOUND:
        assert media.samples(file, 16_000).ndim == 1
    else:
        assert media.picture(file).mode == "RGB"


_JSON_TOKENS = (b'"temperature"', b'"top_p"', b'"decodescope"', b'"version"')
_TEMPLATE_TOKENS = (
    b"{{", b"}}", b"{%", b"%}", b"{% for m in messages %}", b"{% endfor %}", b"{{ messages }}", b" * 10**9",
    b"range(10**9)", b"|join", b"|tojson", b"''.__class__", b"{% macro f() %}{{ f() }}{% endmacro %}",
    b"{% set x = x ~ x %}",
)  # fmt: skip
_GRAMMAR_TOKENS = (
    b"(?:", b"{1000000}", b"*", b"|", b"[^", b"start: ", b"$ref", b'"#"', b'"allOf"', b'"pattern"', b'"maxLength"',
    b"&", b"~", b"%json", b'{"regex": "', b'{"lark": "start: ', b"\\\\p{L}",
)  # fmt: skip
_TEXT_SETTINGS_TOKENS = (
    b"&a [*a]", b"*a", b"&b ", b"!!binary ", b"!!python/object:os.system", b"<<: *a", b"PARAMETER stop ",
    b"[section]", b"- ", b": ", b"2001-12-14", b"PARAMETER num_ctx ", b"%include",
)  # fmt: skip

PARSERS: Sequence[Parser] = (
    Parser("recordings", _read_recording, ("core.trace.packing", "core.trace.block_file", "core.trace.block_reader",
                                           "core.trace.file_metadata")),
    Parser("live_runs", _read_live_run, ("core.trace.block_file",), corpus="recordings", errors=(TraceError,)),
    Parser("live_addresses", _read_live_address, ("core.trace.live_address",)),
    Parser(
        "gguf", _read_gguf,
        (
            "core.models.gguf.gguf_file", "core.models.gguf.tokenizer", "core.models.gguf.vocabulary",
            "core.models.gguf.file_summary",
        ),
        tokens=(b"general.architecture", b"tokenizer.ggml.tokens", b"llama", b"GGUF"),
    ),
    Parser(
        "tokenizers", _read_tokenizer, ("core.models.tokenizers", "core.models.token_scheme"),
        tokens=(b'"Unigram"', b'"WordPiece"', b'"BPE"', b'"ByteFallback"', b'"vocab"', b'"<unk>"', b"null", b"-1"),
    ),
    Parser(
        "safetensors", _read_safetensors,
        ("core.models.model_files", "core.models.quantized.tensor_files", "core.models.loaded_model"),
        tokens=(b'"dtype"', b'"F32"', b'"I64"', b'"data_offsets"', b'"shape"', b"[0,0]"),
    ),
    Parser("weight_indexes", _read_weights_index, ("core.models.model_files",), tokens=(b'"weight_map"', b'"../x"')),
    Parser("adapters", _read_adapter_config, ("core.models.model_files",), tokens=(b'"r"', b'"(a+)+$"', b'"LORA"')),
    Parser("adapter_weights", _read_adapter_weights, ("core.models.adapters.adapter_files",)),
    Parser("gguf_adapters", _read_gguf_adapter, ("core.models.gguf.gguf_file",), tokens=(b"adapter.lora.alpha",)),
    Parser("templates", _read_template, ("core.models.chat_templates",), tokens=_TEMPLATE_TOKENS),
    Parser("models_of_programs", _read_other_programs, ("core.models.gguf.local_models",),
           tokens=(b'"sha256:', b'"layers"')),
    Parser("settings", _read_settings, ("app.storage.json_files", "app.storage.settings"), tokens=_JSON_TOKENS),
    Parser("chats", _read_chat, ("app.storage.json_files",), tokens=(b'"turns"', b'"role"')),
    Parser(
        "presets", _read_preset, ("app.storage.json_files", "app.storage.programs.read_only_formats"),
        tokens=(*_JSON_TOKENS, *_TEXT_SETTINGS_TOKENS), cases=60,
    ),
    Parser("requests", _read_saved_request, ("app.state.request_json",)),
    Parser("values", _read_values, ("app.state.setting_values", "app.state.worker_messages"), cases=12),
    Parser("chat_texts", _read_chat_text, ("app.state.conversation",), tokens=(b"user: ", b"\nassistant: ")),
    Parser("answers", _read_answer, ("app.views.chat.formatted_answer",),
           tokens=(b"```", b"| a |", b"<think>", b"> ", b"![](/x)")),
    Parser(
        "grammars", _read_grammar, ("app.state.text_formats", "core.grammar.compilation", "core.grammar.shortest_text",
                                    "core.grammar.grammar_setting"),
        errors=(ValueError,), tokens=_GRAMMAR_TOKENS,
    ),
    Parser("crash_texts", _read_crash_text, ("app.start.crash_report",), cases=8),
    Parser("tours", _read_tour, ("app.features.tours.state.tour_file",),
           tokens=(b"[[steps]]", b"figures", b"{", b"}", b"when = ", b'[["x", ">=", 1]]')),
    Parser("albums", _read_album, ("app.album.picture_script", "app.album.picture"), errors=(AlbumError,),
           tokens=(b"[[picture]]", b"out = ", b"size = ", b"instead = ", b'"/etc/x.png"')),
    Parser("batches", _read_batch, ("app.start.cli.generate",), errors=(InputError,), tokens=(b'"seeds"', b'"prompt"')),
    Parser("batch_results", _read_batch_results, ("app.start.cli.generate",), tokens=(b'"key"', b'"metrics"')),
    Parser("studies", _read_study, ("core.studies.study_file",), errors=(StudyError,),
           tokens=(b"[grid]", b"[[cells]]", b"[prompts]", b"seeds = ", b'["exact_match"]', b"{name}", b"1e999")),
    Parser("study_prompts", _read_study_prompts, ("core.studies.study_file",), errors=(StudyError,),
           tokens=(b'{"prompt": ', b'"answer"', b"prompt,answer", b'"', b"\r\n")),
    Parser("study_results", _read_study_results, ("core.studies.runner",), errors=(StudyError,),
           tokens=(b'"key"', b'"text"', b'"value"', b"null")),
    Parser("preferences", _read_preferences, ("core.labs.preference.dataset_files",),
           tokens=(b'"chosen"', b'"completions"', b'"ranks"', b'"conversations"', b'"score"')),
    Parser("plugin_lists", _read_plugin_list, ("core.plugins.plugin_folder",), tokens=(b'"files"', b'"mine.py"')),
    Parser("lab_lines", _read_lab_line, ("core.labs.processes.lab_processes",)),
    Parser("hub_answers", _read_hub_answer, ("core.catalog.hub_requests",), errors=(hub_requests.InvalidResponseError,),
           tokens=(b'"../../x"', b'"siblings"', b'"lfs"', b'"config"', b'"/etc/passwd"')),
    Parser("engine_streams", _read_engine_stream, ("core.remote.client",),
           tokens=(b"data: ", b"\n\n", b"[DONE]", b"error: ", b'{"error": 5}', b"event: x")),
    Parser("addresses", _read_addresses, ("core.remote.address",),
           tokens=(b"http://", b"[::1]", b":99999", b"#", b"%00", b"@", b"?", b"localhost")),
    Parser("notices", _read_notice, ("app.features.updates.state",), errors=(UpdateError,),
           tokens=(b'"page"', b'"version"', b"http://[", b"1" * 5000, b"9.9.dev1")),
    Parser("dropped_files", _read_dropped_file, ("app.storage.drop_offers",), tokens=(b'"chosen"', b'"messages"')),
    Parser("dropped_data", _read_dropped_data, ("app.window.drag_and_drop",),
           tokens=(b"text/uri-list: ", b"file:///", b"text/plain: ", b"https://hf.co/", b"\\n")),
    Parser("media", _read_media, ("core.media.pictures", "core.media.sounds", "core.media.media_files"), cases=60),
)  # fmt: skip
"""All parsers with a corpus."""

OTHER_TESTS: dict[str, tuple[str, ...]] = {
    "tests/fuzz/test_history_files.py": ("app.features.history.store.database",),
    "tests/fuzz/test_prefix_files.py": ("core.caches.prefixes.prefix_files",),
    "tests/fuzz/test_remote_answers.py": ("core.remote.http_stream", "core.remote.client", "core.remote.responses"),
    "tests/fuzz/test_folders.py": ("core.models.model_loading", "core.models.token_scheme", "core.models.catalog"),
    "tests/packaging/test_qt_libraries.py": ("app.start.qt_libraries",),
}
"""Fuzz tests without a corpus, which build their inputs, and the modules that they exercise."""

OWN_DATA: dict[str, str] = {
    "app.features.studies.controller": "text that parse_study has read: the parser `studies`",
    "app.features.studies.session": "text that parse_study has read: the parser `studies`",
    "app.features.studies.state": "text that parse_study has read: the parser `studies`",
    "core.studies.study_text": "text that parse_study has read: the parser `studies`",
    "app.start.cli.probability": "a setting on the command line: tests/app/test_likelihood_commands.py",
    "core.claims.stored_outcomes": "outcomes that it wrote; others are skipped: tests/core/claims/test_claims.py",
    "app.state.bundled_libraries": "the list of libraries that the program is shipped with",
    "app.state.versions": "the program's own pyproject.toml",
    "core.common.generator_state": "a limited size, and errors for other text: tests/core/test_capture_identity.py",
    "core.native.library_choice": "the manifest beside the shipped libraries, whose bytes it checks",
    "app.features.palette.controller.search": "synonyms that the program is shipped with",
    "app.features.presentation.store": "frames that Pillow has just compressed",
    "app.panels.prompt_panel": "passes the paths of pasted files on to the list of media, which reads them",
    "app.state.licences": "metadata of the installed packages",
    "app.storage.examples": "examples that the program is shipped with",
    "app.widgets.clipboard": "writes HTML, reads none",
    "core.glossary": "the glossary that the program is shipped with",
    "core.labs.preference.training_loop": "its own checkpoint, with a checksum: tests/core/labs/test_training.py",
    "core.decoding.keyed_noise": "digests that it has just computed",
    "core.server.call_fields": "texts in bodies of calls, refused by name: tests/core/test_server_api.py",
    "core.server.http_server": "bodies of calls, refused by name: tests/core/test_http_server.py, test_server_api.py",
    "core.studies.text_measures": "asks whether a text is JSON, whatever it is",
    "core.labs.scale.ranks.residual": "what torch's profiler has just written",
    "core.models.gguf.tokenizer_export": "the state of a tokenizer in memory",
    "core.models.prediction_heads": "pickles, after permission, by torch's restricted loader",
    "core.trace.page.html_page": "the program's own JavaScript",
}
"""Modules that decode only what the program itself wrote or is shipped with, or nothing, with the reason."""
