"""Decide what a dragged file, address or text can be used for, from names and, for JSON, the first bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from decodescope.app.state.media import kind_by_name
from decodescope.core import adapters, catalog
from decodescope.core.common.program_name import RUN_SUFFIX
from decodescope.core.system.system_errors import system_error_reason
from decodescope.resources.language import join_alternatives, join_names, join_sentences, mark, tr, trn

RECORDING, MODEL, ADAPTER, SETTINGS, MEDIA, TEXT, HUB, ENGINE, LEARN, PICTURE, GRAMMAR, CHATS, STUDY = (
    "recording", "model", "adapter", "settings", "media", "text", "hub", "engine", "learn", "picture", "grammar",
    "chats", "study",
)  # fmt: skip
TEXTS = (".txt", ".md", ".markdown", ".rst", ".text", ".log", ".tex", ".srt", ".vtt", ".tsv", ".py", ".adoc", ".org")
WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt")
MAX_TEXT_BYTES = 2**20
"""Largest text file, in bytes, that can become the prompt."""
_PREVIEW_BYTES = 2**16
_OF_A_MODEL = re.compile(
    r"config\.json|.*\.index\.json|tokenizer\.json|(?:tokenizer|preprocessor|processor|adapter)_config\.json|"
    r"(?:vocab|merges|special_tokens_map|added_tokens)\.json"
)
"""Names of files that only mean something in their model's folder."""
_STUDY_PROMPTS = re.compile(rb"^\s*(?:\[\s*prompts\s*[.\]]|prompts\s*[.=])", re.MULTILINE)
GRAMMARS = (".gbnf", ".lark", ".regex")
_SCHEMA_KEYS = frozenset({"$schema", "$defs", "$ref", "definitions", "properties", "anyOf", "oneOf", "allOf", "enum"})
_CHAT_KEYS = frozenset({"messages", "conversations", "conversation", "mapping"})
"""Keys of a chat: OpenAI's, ShareGPT's, and that of ChatGPT's export."""
_JSON_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_HUB_NAME = re.compile(r"[\w.-]+")
_API_PATH = re.compile(r"/v1/?$", re.IGNORECASE)
"""Path of an OpenAI-compatible interface."""
_HUB_HOST = re.compile(r"(?:www\.)?(?:huggingface\.co|hf\.co)", re.IGNORECASE)
_NOT_MODELS = (
    "datasets", "spaces", "docs", "papers", "blog", "collections", "models", "api", "join", "login", "pricing", "tasks",
    "learn", "chat", "settings", "organizations", "posts", "enterprise", "inference", "new", "search", "support",
)  # fmt: skip
"""First parts of the Hub's addresses that are no owner of a model."""


class DropOffer(NamedTuple):
    """The effect of a drop. Without an `action` it is rejected, and `detail` gives cause and remedy."""

    action: str
    title: str
    detail: str = ""
    values: tuple[str, ...] = ()
    """Paths, an address, a name on the hub, or the text itself."""


def offer_for_files(paths: Sequence[str]) -> DropOffer:
    """Return what dropping these files and folders does; only sounds and pictures may be several."""
    if all(map(kind_by_name, paths)):
        return DropOffer(MEDIA, tr("Add to the prompt"), _names(paths), tuple(paths))
    if len(paths) > 1:
        return _reject(tr("Only one file at a time"), tr("Drop one file or folder. Several pictures or sounds can go "
                                                          "together."))  # fmt: skip
    path = Path(paths[0])
    if path.is_dir():
        return _offer_for_folder(path)
    return _offer_for_file(path)


def offer_for_address(address: str) -> DropOffer:
    """Return what dropping a web address does."""
    try:
        parts = urlsplit(address if "//" in address else f"//{address}")
    except ValueError:  # such as an IPv6 address without its end
        parts = urlsplit("")
    if parts.scheme in ("", "http", "https") and _HUB_HOST.fullmatch(parts.hostname or ""):
        return _offer_for_hub_page(parts.path)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return _reject(
            tr("This address cannot be used"),
            tr("Drop the address of a model on the Hub, or of an engine (http:// or https://)."),
        )
    if not _may_be_engine(parts):
        return _reject(
            tr("This is the address of a web page"),
            tr("Drop the address of a model on huggingface.co, or of an engine, such as http://127.0.0.1:8080. To "
               "connect to another address, choose Tools › Connect to an engine…."),
        )  # fmt: skip
    return DropOffer(ENGINE, tr("Connect to this engine"), address, (address,))


def _offer_for_hub_page(path: str) -> DropOffer:
    """Return what dropping a page of the Hub does: one of a model has an owner and a name, or an old name alone."""
    names = [part for part in path.split("/") if part]
    if not names or names[0].lower() in _NOT_MODELS or not all(map(_HUB_NAME.fullmatch, names[:2])):
        return _reject(
            tr("This page of the Hub is not a model’s"),
            tr("Drop the address of a model, such as huggingface.co/Qwen/Qwen3-0.6B."),
        )
    name = "/".join(names[:2])
    return DropOffer(HUB, tr("Find this model on the Hub"), name, (name,))


def _may_be_engine(parts: SplitResult) -> bool:
    """Return whether an address may be an engine's: of this computer or network, with a port, or with its API's path.
    Anything else is a page to read.
    """
    host = parts.hostname or ""
    try:
        is_named = parts.port is not None
    except ValueError:
        return False
    is_local = "." not in host or host.endswith((".local", ".lan", ".localhost", ".internal", ".home.arpa"))
    is_number = ":" in host or host.replace(".", "").isdigit()
    return is_named or is_local or is_number or bool(_API_PATH.search(parts.path))


def offer_for_text(text: str) -> DropOffer:
    """Return what dropping text does."""
    if not text.strip():
        return _reject(tr("The text is empty"), tr("Select some text and drag it again."))
    return DropOffer(TEXT, tr("Use this text as the prompt"), "", (text,))


def _offer_for_folder(path: Path) -> DropOffer:
    if (path / "config.json").is_file() and not (path / adapters.CONFIG_FILE).is_file():
        return DropOffer(MODEL, tr("Open this model"), path.name, (str(path),))
    models = [one for one in sorted(path.glob("*.gguf")) if catalog.is_gguf_model(one)]
    if len(models) == 1:
        return DropOffer(MODEL, tr("Open this model"), models[0].name, (str(models[0]),))
    if models:
        return _reject(
            trn("This folder contains {count} model", "This folder contains {count} models", len(models)).format(
                count=len(models)
            ),
            tr("Drop one of the GGUF files."),
        )
    if (path / adapters.CONFIG_FILE).is_file():
        return _offer_for_adapter(path)
    return _reject(
        tr("This folder contains no model"),
        tr("A model folder contains config.json and the weights. Drop that folder, not its parent."),
    )


class FileKind(NamedTuple):
    """A kind of file that can be dropped. The kinds are tried in order; the list of them is what a refusal names."""

    title: str
    """What can be dropped, with an article, marked for translation."""
    fits: Callable[[Path], bool]
    offer: Callable[[Path], DropOffer]


def droppable_kinds() -> list[str]:
    """Return everything that can be dropped, as words with the suffixes of its files."""
    kinds = [tr("a model folder"), tr("a LoRA adapter"), *(tr(kind.title) for kind in _FILE_KINDS if kind.title)]
    kinds += [tr("a picture"), tr("a sound"), tr("the address of a model or an engine")]
    return kinds


def _has_suffix(*suffixes: str) -> Callable[[Path], bool]:
    return lambda path: path.suffix.lower() in suffixes


def _offer_for_file(path: Path) -> DropOffer:
    if _is_empty(path):
        return _reject(tr("The file is empty"), tr("{name} has no contents. Drop another file.").format(name=path.name))
    for kind in _FILE_KINDS:
        if kind.fits(path):
            return kind.offer(path)
    return _reject(
        tr("Files of this kind cannot be opened"),
        tr("You can drop {kinds}.").format(kinds=join_alternatives(droppable_kinds())),
    )


def _is_empty(path: Path) -> bool:
    """Return whether a file has no bytes; False if that is not known."""
    try:
        return path.is_file() and path.stat().st_size == 0
    except OSError:
        return False


def _offer_for_recording(path: Path) -> DropOffer:
    return DropOffer(RECORDING, tr("Open this recording"), path.name, (str(path),))


def _is_in_adapter_folder(path: Path) -> bool:
    is_part = path.suffix.lower() in (*WEIGHTS, ".json") and path.stem.startswith("adapter_")
    return is_part and (path.parent / adapters.CONFIG_FILE).is_file()


def _offer_for_adapter_folder(path: Path) -> DropOffer:
    return _offer_for_adapter(path.parent)


def _is_part_of_model(path: Path) -> bool:
    return path.suffix.lower() in WEIGHTS or bool(_OF_A_MODEL.fullmatch(path.name.lower()))


def _offer_for_part_of_model(path: Path) -> DropOffer:
    if (path.parent / "config.json").is_file():
        return DropOffer(MODEL, tr("Open the model in this folder"), path.parent.name, (str(path.parent),))
    return _reject(
        tr("The weights alone are not enough"),
        tr("Drop the folder that contains config.json and the weights."),
    )


def _offer_for_grammar(path: Path) -> DropOffer:
    return DropOffer(GRAMMAR, tr("Write only texts of this grammar"), path.name, (str(path),))


def _is_study(path: Path) -> bool:
    """Return whether a TOML file has the prompts of a study."""
    if path.suffix.lower() != ".toml":
        return False
    try:
        with path.open("rb") as file:
            return _STUDY_PROMPTS.search(file.read(_PREVIEW_BYTES)) is not None
    except OSError:
        return False


def _offer_for_study(path: Path) -> DropOffer:
    return DropOffer(STUDY, tr("Open this study"), path.name, (str(path),))


def _refuse_csv(_path: Path) -> DropOffer:
    return _reject(
        tr("CSV files cannot be opened"),
        tr("CSV is only an export format. Use JSON lines (.jsonl) for rankings and chats, recordings "
            "(.decodescope) for runs."),
    )  # fmt: skip


def _offer_for_settings(path: Path) -> DropOffer:
    return DropOffer(SETTINGS, tr("Use these settings"), path.name, (str(path),))


def _offer_for_adapter(path: Path) -> DropOffer:
    if problem := adapters.adapter_problem(str(path)):
        return _reject(tr("The adapter cannot be used"), " ".join(problem))
    return DropOffer(ADAPTER, tr("Add this adapter to the model"), path.name, (str(path),))


def _offer_for_gguf(path: Path) -> DropOffer:
    if adapters.adapter_problem(str(path)) is None:
        return _offer_for_adapter(path)
    problem = catalog.gguf_problem(path)
    if problem is None:
        return DropOffer(MODEL, tr("Open this model"), path.name, (str(path),))
    reason = tr("{name}: {reason}.").format(name=path.name, reason=problem.rstrip("."))
    return _reject(tr("This file cannot be opened"), join_sentences(reason, catalog.gguf_remedy(path)))


def is_grammar_file(path: str) -> bool:
    """Return whether the name of the file is that of a grammar."""
    return Path(path).suffix.lower() in GRAMMARS


def is_json_schema(value: Mapping[str, object]) -> bool:
    """Return whether a JSON object is a JSON schema: no settings have these keys, or `type` with such a value."""
    kinds = value.get("type")
    return bool(_SCHEMA_KEYS & value.keys()) or bool(
        {kinds} & _JSON_TYPES if isinstance(kinds, str) else isinstance(kinds, list) and _JSON_TYPES.issuperset(kinds)
    )


def _offer_for_json(path: Path) -> DropOffer:
    record = _first_object(path)
    if record is not None and path.suffix.lower() == ".json" and is_json_schema(record):
        return DropOffer(GRAMMAR, tr("Write only texts of this JSON schema"), path.name, (str(path),))
    if record is not None and {"chosen", "rejected"} & record.keys() | {"completions", "ranks"} & record.keys():
        return DropOffer(LEARN, tr("Use these rankings in the preference lab"), path.name, (str(path), "reward"))
    if record is not None and _CHAT_KEYS & record.keys() and not _is_for_training(path, record):
        return DropOffer(CHATS, tr("Open these chats"), path.name, (str(path),))
    if record is not None and ("messages" in record or ({"prompt", "completion"} <= record.keys())):
        return DropOffer(LEARN, tr("Use these chats in the preference lab"), path.name, (str(path), "sft"))
    if path.suffix.lower() == ".jsonl":
        return _reject(
            tr("This file contains neither rankings nor chats"),
            tr("Each line needs prompt, chosen and rejected, or prompt, completions and ranks, or messages."),
        )
    if record is None and _start_of(path).lstrip()[:1] not in ("{", ""):
        return _reject(
            tr("This file contains no settings"), tr("Settings are a JSON object: names and values between braces.")
        )
    return DropOffer(SETTINGS, tr("Use these settings"), path.name, (str(path),))


def _is_for_training(path: Path, record: Mapping[str, object]) -> bool:
    """Return whether these chats are examples to train with, one in a line, as in OpenAI's files for fine-tuning."""
    return path.suffix.lower() == ".jsonl" and "messages" in record


def _is_text_settings(path: Path) -> bool:
    from decodescope.app.storage import programs  # rarely needed

    return programs.is_text_settings(path)


def _start_of(path: Path) -> str:
    """Return the beginning of a text file; empty if it cannot be read."""
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            return file.read(_PREVIEW_BYTES)
    except OSError:
        return ""


def _first_object(path: Path) -> dict[str, object] | None:
    """Return the object on the first line of a JSON lines file, or the first of a list; None if there is none."""
    text = _start_of(path).lstrip().removeprefix("[").lstrip()
    try:
        value, _end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _offer_for_text_file(path: Path) -> DropOffer:
    try:
        size = path.stat().st_size
    except OSError as error:
        return _reject(tr("The file cannot be read"), system_error_reason(error))
    if size > MAX_TEXT_BYTES:
        return _reject(
            tr("The text is too long for a prompt"),
            tr("Text files are limited to {most} kB. Drop a shorter one, or copy part of it.").format(
                most=MAX_TEXT_BYTES // 1024
            ),
        )
    if size <= _PREVIEW_BYTES and not _start_of(path).strip():
        return _reject(
            tr("The text is empty"), tr("{name} has only white space. Drop another file.").format(name=path.name)
        )
    return DropOffer(TEXT, tr("Use this text as the prompt"), path.name, (str(path), "file"))


_FILE_KINDS: tuple[FileKind, ...] = (
    FileKind(mark("a recording (.decodescope)"), _has_suffix(RUN_SUFFIX), _offer_for_recording),
    FileKind(mark("a GGUF file"), _has_suffix(".gguf"), _offer_for_gguf),
    FileKind("", _is_in_adapter_folder, _offer_for_adapter_folder),
    FileKind("", _is_part_of_model, _offer_for_part_of_model),
    FileKind(mark("a grammar (.gbnf, .lark, .regex)"), _has_suffix(*GRAMMARS), _offer_for_grammar),
    FileKind(mark("settings, a JSON schema, rankings or chats (.json, .jsonl)"), _has_suffix(".json", ".jsonl"),
             _offer_for_json),
    FileKind(mark("a study (.toml)"), _is_study, _offer_for_study),
    FileKind("", _has_suffix(".csv"), _refuse_csv),
    FileKind(mark("settings of another program"), _is_text_settings, _offer_for_settings),
    FileKind(mark("a text file"), _has_suffix(*TEXTS), _offer_for_text_file),
)  # fmt: skip
"""Everything that a dropped file can be. Those without a title belong to a kind that is named elsewhere."""


def _reject(title: str, detail: str) -> DropOffer:
    return DropOffer("", title, detail)


def _names(paths: Sequence[str]) -> str:
    return join_names(Path(path).name for path in paths)
