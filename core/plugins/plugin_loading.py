"""Run the code of plug-ins and collect what they add. Everything here runs with the program's rights: callers load only
what the user has switched on.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import linecache
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from decodescope.core.caches.base import CacheBackend
from decodescope.core.common.claim import claim_problem
from decodescope.core.errors import DecodescopeError, PluginError
from decodescope.core.measures.base import Measure
from decodescope.core.parameter import Parameter, check
from decodescope.core.plugins import guarded_thread
from decodescope.core.plugins.former_imports import rename_former_imports
from decodescope.core.plugins.generate_folder import FILE, SUBFOLDER, FolderSource, import_function, read_folder
from decodescope.core.plugins.generate_strategy import GenerateFunction, generate_equivalent, make_strategy
from decodescope.core.plugins.guarded_entries import (
    guard_cache,
    guard_drafter,
    guard_measure,
    guard_processor,
    guard_strategy,
    location_of,
)
from decodescope.core.plugins.logits_processor import is_logits_processor, processor_of_class
from decodescope.core.plugins.plugin import ATTRIBUTES, GROUPS, Plugin, PluginEntry, PluginKind, PluginState
from decodescope.core.plugins.signature_settings import UnsupportedSignatureError
from decodescope.core.processors.base import Processor
from decodescope.core.registry import RegistryEntry
from decodescope.core.strategies.base import Strategy
from decodescope.core.system.plugin_code import (
    PluginLocation,
    attribute_error,
    describe,
    make_plugin_error,
    register_source,
)
from decodescope.core.system.system_errors import system_error_reason
from decodescope.resources.language import join_names, tr

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

MAX_BYTES = 1_000_000
"""Maximum size of a plug-in file."""
MAX_PARAMETERS = 64
_NAME = re.compile(r"[^\W\d]\w{0,59}")


def digest_of(content: bytes) -> str:
    """Return the SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


def read_plugin(path: Path) -> bytes:
    """Return the content of a plug-in file. Raises PluginError if it is not a readable file of at most `MAX_BYTES`."""
    try:
        if not path.is_file():  # opening a pipe would wait for a writer
            raise _file_error(path, tr("it is not a file"))
        if path.stat().st_size > MAX_BYTES:
            raise _file_error(path, tr("it is larger than {size}").format(size="1 MB"))
        return path.read_bytes()
    except OSError as error:
        raise _file_error(path, system_error_reason(error)) from error


def _file_error(path: Path, problem: str) -> PluginError:
    return make_plugin_error(PluginLocation(path.stem, str(path), 0), problem)


def source_of(path: Path) -> str:
    """Return where a plug-in file is, and for a link also where it points."""
    return f"{path} → {os.path.realpath(path)}" if path.is_symlink() else str(path)


def load_file(path: Path, digest: str = "") -> Plugin:
    """Run a plug-in file and return what it adds, or its error. With `digest`, a file with another content is not
    run: its state is `changed`.
    """
    plugin = Plugin(path.name, source_of(path), "failed", path)
    try:
        content = read_plugin(path)
        plugin = replace(plugin, digest=digest_of(content))
        if digest and digest != plugin.digest:
            return replace(plugin, state="changed")
        location = PluginLocation(path.stem, str(path), 0)
        register_source(str(path), path.stem)
        module, former = _run_file(path, content, location)
        return replace(
            plugin,
            state="on",
            summary=_first_sentence(module.__doc__),
            entries=tuple(_entries_of(module, location)),
            notice=_former_imports_notice(former),
        )
    except PluginError as error:
        return replace(plugin, error=error)


def describe_folder(folder: Path, allowed: str) -> Plugin:
    """Return a `custom_generate` folder that is not loaded; `allowed` is the digest of the content that may run."""
    plugin = Plugin(str(folder), str(folder), "off", folder / SUBFOLDER / FILE, folder=folder, own_title=folder.name)
    try:
        source = read_folder(folder)
    except PluginError as error:
        return replace(plugin, state="failed", error=error)
    return replace(plugin, digest=source.digest, own_title=source.title, state=state_of(source.digest, allowed))


def state_of(digest: str, allowed: str) -> PluginState:
    """Return whether content with this digest may run; `allowed` is the digest that the user switched on, if any."""
    return "off" if not allowed else "on" if allowed == digest else "changed"


def load_folder(folder: Path, digest: str = "") -> Plugin:
    """Run a `custom_generate` folder and return its strategy, or its error. With `digest`, a folder with another
    content is not run: its state is `changed`.
    """
    plugin = Plugin(str(folder), str(folder), "failed", folder / SUBFOLDER / FILE, folder=folder, own_title=folder.name)
    try:
        source = read_folder(folder)
        plugin = replace(plugin, digest=source.digest, own_title=source.title)
        if digest and digest != plugin.digest:
            return replace(plugin, state="changed")
        location = PluginLocation(source.title, str(source.path), 0)
        register_source(os.path.join(folder, SUBFOLDER, ""), source.title)
        linecache.checkcache()
        with _plugin_errors(location), _process_state():
            found = guarded_thread.call_guarded(lambda: import_function(source), guarded_thread.IMPORT_SECONDS)
        return replace(plugin, state="on", entries=(_folder_entry(found, source),))
    except PluginError as error:
        return replace(plugin, error=error)


def _folder_entry(function: Callable[..., object], source: FolderSource) -> PluginEntry:
    """Return the strategy of a folder. Raises PluginError."""
    location = location_of(function, PluginLocation(source.title, str(source.path), 0))
    try:
        own = GenerateFunction(function, source)
    except UnsupportedSignatureError as error:
        raise make_plugin_error(location, str(error)) from error
    entry = check_entry("strategy", make_strategy(own), own.location)
    assert isinstance(entry.value, Strategy)
    return entry._replace(value=replace(entry.value, generate_equivalent=partial(generate_equivalent, own)))


def _former_imports_notice(former: Sequence[str]) -> str:
    if not former:
        return ""
    return tr("It imports {former}, which is now called {current}. It works, but change its imports.").format(
        former=former[0], current=f"decodescope.{former[0]}"
    )


def _run_file(path: Path, content: bytes, location: PluginLocation) -> tuple[ModuleType, tuple[str, ...]]:
    """Execute a file as a module of its own; return it with the former names of modules that it imports. Raises
    PluginError.
    """
    name = f"decodescope_plugins.{re.sub(r'[^0-9A-Za-z_]', '_', path.stem)}"
    module = ModuleType(name)
    module.__file__ = str(path)
    former: tuple[str, ...] = ()
    linecache.checkcache(str(path))

    def execute() -> None:
        nonlocal former
        tree = ast.parse(content, str(path))
        former = rename_former_imports(tree)
        code = compile(tree, str(path), "exec", dont_inherit=True)
        sys.modules[name] = module  # dataclasses and annotations look their module up
        exec(code, vars(module))

    with _plugin_errors(location), _process_state():
        guarded_thread.call_guarded(execute, guarded_thread.IMPORT_SECONDS)
    return module, former


@contextmanager
def _plugin_errors(location: PluginLocation) -> Iterator[None]:
    """Translate every exception in the block to a PluginError."""
    try:
        yield
    except PluginError:
        raise
    except SyntaxError as error:
        at = location._replace(line=error.lineno or 0) if error.filename == location.path else location
        raise make_plugin_error(at, f"{type(error).__name__}: {error.msg}") from error
    except BaseException as error:
        if isinstance(error, DecodescopeError) and isinstance(error.__cause__, BaseException):
            named = attribute_error(error.__cause__)
        else:
            named = attribute_error(error)
        raise named or make_plugin_error(location, describe(error)) from error


@contextmanager
def _process_state() -> Iterator[None]:
    """Restore what an import must not change: working folder, search path, standard streams, settings of torch."""
    from decodescope.core.system.torch_state import settings_undone

    folder, path, streams = os.getcwd(), sys.path[:], (sys.stdin, sys.stdout, sys.stderr)
    try:
        with settings_undone():
            yield
    finally:
        os.chdir(folder)
        sys.path[:] = path
        sys.stdin, sys.stdout, sys.stderr = streams


def _first_sentence(doc: object) -> str:
    text = " ".join(doc.split()) if isinstance(doc, str) else ""
    return re.split(r"(?<=[.!?。])\s", text)[0][:200]


def _entries_of(module: ModuleType, location: PluginLocation) -> list[PluginEntry]:
    """Return the checked entries of a module. Raises PluginError if it has none."""
    found = [
        check_entry(kind, value, location)
        for attribute, kind in ATTRIBUTES.items()
        if (value := vars(module).get(attribute)) is not None
    ]
    if not any(entry.kind == "processor" for entry in found):
        found += [
            check_entry("processor", value, location)
            for name, value in list(vars(module).items())
            if not name.startswith("_") and is_logits_processor(value) and value.__module__ == module.__name__
        ]
    if not found:
        raise make_plugin_error(
            location,
            tr("it defines nothing: it needs a LogitsProcessor class, or one of {names}").format(
                names=join_names(ATTRIBUTES)
            ),
        )
    return found


def check_entry(kind: PluginKind, value: object, location: PluginLocation) -> PluginEntry:
    """Return a registry entry with guards around its functions; a LogitsProcessor class becomes a processor. Raises
    PluginError.
    """
    at = location
    if kind == "processor" and is_logits_processor(value):
        assert isinstance(value, type)
        at = location_of(vars(value).get("__init__") or vars(value).get("__call__"), location)
        try:
            value = processor_of_class(value)
        except UnsupportedSignatureError as error:
            raise make_plugin_error(at, str(error)) from error
    with _plugin_errors(at):
        if problem := _entry_problem(kind, value):
            raise make_plugin_error(at, problem)
        return PluginEntry(kind, _GUARDS[kind](value, location))


def _entry_problem(kind: PluginKind, value: object) -> str:
    """Return why a value is not an entry of that kind; empty if it is."""
    if not isinstance(value, entry_classes()[kind]):
        return tr("{name} is not an instance of {wanted}").format(
            name=type(value).__name__, wanted=entry_classes()[kind].__name__
        )
    name = getattr(value, "name", "")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return tr("its name is not a Python identifier")
    for field in ("title", "summary", "help", "label", "phrase", "paper", "brief"):
        if not isinstance(getattr(value, field, ""), str):
            return tr("its {field} is not text").format(field=field)
    if not isinstance(getattr(value, "order", 0), int):
        return tr("its {field} is not an integer").format(field="order")
    claims = getattr(value, "claims", ())
    if not isinstance(claims, tuple):
        return tr("its claims are not a tuple")
    if problem := next(filter(None, map(claim_problem, claims)), ""):
        return problem
    own = getattr(value, "parameter", None) if kind == "processor" else None
    parameters = [
        *([own] if own is not None else []),
        *getattr(value, "parameters", ()),
        *getattr(value, "extra_parameters", ()),
    ]
    return _parameters_problem(kind, name, parameters)


def _parameters_problem(kind: PluginKind, name: str, parameters: Sequence[object]) -> str:
    if len(parameters) > MAX_PARAMETERS:
        return tr("it has more than {count} settings").format(count=MAX_PARAMETERS)
    names = set()
    for parameter in parameters:
        if not isinstance(parameter, Parameter):
            return tr("{name} is not an instance of {wanted}").format(name=type(parameter).__name__, wanted="Parameter")
        texts = (parameter.name, parameter.title, parameter.help)
        if not all(isinstance(text, str) for text in texts) or not _NAME.fullmatch(parameter.name):
            return tr("its setting {name} has an invalid name, title or help").format(name=str(parameter.name)[:60])
        if parameter.name in names:
            return tr("it has two settings called {name}").format(name=parameter.name)
        names.add(parameter.name)
        if parameter.default is not None:
            try:
                check(parameter, parameter.default)
            except DecodescopeError as error:
                return tr("the default of its setting {name} is invalid: {reason}").format(
                    name=parameter.name, reason=error.cause
                )
    if kind == "processor" and (not parameters or not getattr(parameters[0], "option", False)):
        return tr("its setting needs option=True")
    if kind == "processor" and getattr(parameters[0], "name", "") != name:
        return tr("its setting must be called {name}, like the processor").format(name=name)
    return ""


def entry_classes() -> dict[PluginKind, type]:
    """Return the class of each kind's entries."""
    from decodescope.core.decoding.speculation.drafters.base import DrafterKind  # imports torch

    return {
        "strategy": Strategy, "processor": Processor, "cache": CacheBackend, "drafter": DrafterKind, "measure": Measure,
    }  # fmt: skip


_GUARDS: dict[PluginKind, Callable[..., RegistryEntry]] = {
    "strategy": guard_strategy,
    "processor": guard_processor,
    "cache": guard_cache,
    "drafter": guard_drafter,
    "measure": guard_measure,
}


def entry_points() -> list[tuple[PluginKind, EntryPoint]]:
    """Return the entry points that installed packages declare, without importing them."""
    from importlib import metadata  # slow to import

    return [(kind, point) for kind, group in GROUPS.items() for point in metadata.entry_points(group=group)]


def describe_entry_point(point: EntryPoint) -> Plugin:
    """Return an entry point that is not loaded."""
    dist = point.dist
    package = f"{dist.name} {dist.version}" if dist is not None else point.module
    return Plugin(f"{dist.name if dist is not None else point.module}: {point.name}", package, "off")


def load_entry_point(kind: PluginKind, point: EntryPoint) -> Plugin:
    """Import an entry point and return what it adds, or its error. It names a registry entry or a LogitsProcessor
    class.
    """
    plugin = describe_entry_point(point)
    location = PluginLocation(point.name, _register_package(point), 0)

    def load() -> object:
        return point.load()

    try:
        with _plugin_errors(location), _process_state():
            value = guarded_thread.call_guarded(load, guarded_thread.IMPORT_SECONDS)
        entry = check_entry(kind, value, location)
        return replace(plugin, state="on", entries=(entry,), summary=_first_sentence(getattr(value, "__doc__", "")))
    except PluginError as error:
        return replace(plugin, state="failed", error=error)


def _register_package(point: EntryPoint) -> str:
    """Attribute the code of the entry point's package to it; return the path of its module or package."""
    top = point.module.partition(".")[0]
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.origin:
        return top
    if spec.submodule_search_locations:
        for folder in spec.submodule_search_locations:
            register_source(os.path.join(folder, ""), point.name)
    else:
        register_source(spec.origin, point.name)
    return spec.origin
