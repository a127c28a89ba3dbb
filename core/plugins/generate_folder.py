"""Read and import `custom_generate` folders, transformers' mechanism for a decoding function of one's own: the file
`custom_generate/generate.py` with a function `generate`.
"""

from __future__ import annotations

import hashlib
import importlib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, cast

from decodescope.core.errors import PluginError
from decodescope.core.system.plugin_code import PluginLocation, make_plugin_error
from decodescope.core.system.system_errors import system_error_reason
from decodescope.resources.language import tr

SUBFOLDER, FILE, REQUIREMENTS = "custom_generate", "generate.py", "requirements.txt"
MAX_FILES, MAX_BYTES = 100, 1_000_000
"""Number and total size of the files in a folder."""
_PACKAGE = "decodescope_custom_generate"
_SNAPSHOT = re.compile(r"models--(?:.+--)?(.+)")
"""Folder of a repository in the Hub's cache, whose snapshots are named after commits."""


class FolderSource(NamedTuple):
    """The content of a `custom_generate` folder, as it was read once."""

    folder: Path
    """The folder that contains `custom_generate`."""
    files: Mapping[str, bytes]
    """Content by path below `custom_generate`."""

    @property
    def title(self) -> str:
        """Name of the folder, or of the repository in the Hub's cache."""
        parts = self.folder.parts[-3:]
        repository = _SNAPSHOT.fullmatch(parts[0]) if len(parts) == 3 and parts[1] == "snapshots" else None
        return repository[1] if repository else self.folder.name

    @property
    def path(self) -> Path:
        """The file with the function."""
        return self.folder / SUBFOLDER / FILE

    @property
    def digest(self) -> str:
        """SHA-256 of names and contents."""
        found = hashlib.sha256()
        for name, content in sorted(self.files.items()):
            found.update(f"{name}\0{len(content)}\0".encode())
            found.update(content)
        return found.hexdigest()


def folder_of(path: Path) -> Path | None:
    """Return the folder that `path` means: itself, the parent of `custom_generate`, or that of the file; None if there
    is no `custom_generate/generate.py`.
    """
    path = path.absolute()
    if path.name == FILE:
        path = path.parent
    if path.name == SUBFOLDER and (path / FILE).is_file():
        path = path.parent
    return path if (path / SUBFOLDER / FILE).is_file() else None


def downloaded_folder(repository: str) -> Path | None:
    """Return the folder of a repository of the Hub that was downloaded before; None if it was not."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(repository, f"{SUBFOLDER}/{FILE}")
    except HFValidationError:
        return None
    return Path(found).parents[1] if isinstance(found, str) else None


def read_folder(folder: Path) -> FolderSource:
    """Return the Python files of a folder and its requirements. Raises PluginError if they cannot be read."""
    inside = folder / SUBFOLDER
    location = PluginLocation(folder.name, str(inside / FILE), 0)
    try:
        paths = [path for path in inside.rglob("*") if path.suffix == ".py" or path == inside / REQUIREMENTS]
        paths = [path for path in paths if path.is_file()]  # opening a pipe would wait for a writer
        if inside / FILE not in paths:
            raise make_plugin_error(location, tr("there is no {file}").format(file=f"{SUBFOLDER}/{FILE}"))
        if len(paths) > MAX_FILES or sum(path.stat().st_size for path in paths) > MAX_BYTES:
            problem = tr("it has more than {count} files or {size}").format(count=MAX_FILES, size="1 MB")
            raise make_plugin_error(location, problem)
        return FolderSource(folder, {path.relative_to(inside).as_posix(): path.read_bytes() for path in paths})
    except OSError as error:
        raise make_plugin_error(location, system_error_reason(error)) from error


def import_function(source: FolderSource) -> Callable[..., object]:
    """Run the files as a package and return the function `generate`. Raises whatever they raise, ImportError for a
    missing requirement, PluginError without the function.
    """
    if REQUIREMENTS in source.files:
        _check_requirements(source.folder)
    name = re.sub(r"\W", "_", source.title)
    package = f"{_PACKAGE}.{name}_{source.digest[:12]}"
    modules = _FINDER.add(package, source)
    for module_name in modules:  # it may be loaded again, after its objects were changed
        sys.modules.pop(module_name, None)
    module = importlib.import_module(f"{package}.{Path(FILE).stem}")
    function: object = getattr(module, "generate", None)
    if not callable(function):
        location = PluginLocation(source.title, str(source.path), 0)
        raise make_plugin_error(location, tr("it defines no function called generate"))
    return cast("Callable[..., object]", function)


def _check_requirements(folder: Path) -> None:
    """Raise ImportError with the packages of requirements.txt that are missing."""
    from transformers.dynamic_module_utils import check_python_requirements

    try:
        check_python_requirements(str(folder), f"{SUBFOLDER}/{REQUIREMENTS}", local_files_only=True)
    except ImportError as error:
        missing = ", ".join(str(error).splitlines()[1:])
        raise ImportError(tr("it requires {packages}").format(packages=missing or error)) from None


class _SourceLoader(Loader):
    """Runs a file's content as it was read, whatever the file contains by now."""

    def __init__(self, path: Path, content: bytes) -> None:
        self._path, self._content = path, content

    def exec_module(self, module: ModuleType) -> None:
        """Run the file in its module."""
        exec(compile(self._content, str(self._path), "exec", dont_inherit=True), vars(module))


class _FolderFinder(MetaPathFinder):
    """Finds the modules of all folders that were imported, also those that a function imports while it runs."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[Path, bytes, bool]] = {}
        """Path, content and whether it is a package, by module name."""

    def add(self, package: str, source: FolderSource) -> list[str]:
        """Add the modules of a folder as the package of that name; return their names."""
        inside = source.folder / SUBFOLDER
        self._found[_PACKAGE] = inside, b"", True
        found = {package: (inside, source.files.get("__init__.py", b""), True)}
        for name, content in source.files.items():
            parts = name.removesuffix(".py").split("/")
            for count in range(1, len(parts)):
                folder = "/".join(parts[:count])
                initial = source.files.get(f"{folder}/__init__.py", b"")
                found[".".join((package, *parts[:count]))] = inside / folder, initial, True
            if name.endswith(".py") and parts[-1] != "__init__":
                found[".".join((package, *parts))] = inside / name, content, False
        self._found |= found
        if self not in sys.meta_path:
            sys.meta_path.append(self)
        return list(found)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module of a folder; None for any other."""
        found = self._found.get(fullname)
        if found is None:
            return None
        file, content, is_package = found
        file = file / "__init__.py" if is_package else file
        spec = spec_from_loader(fullname, _SourceLoader(file, content), origin=str(file), is_package=is_package)
        if spec is not None:
            spec.has_location = True
        return spec


_FINDER = _FolderFinder()


def find_generate_folder(path: str | Path) -> Path:
    """Return the folder that a path or the name of a downloaded repository means. Raises PluginError."""
    folder = folder_of(Path(path))
    if folder is None and isinstance(path, str) and not Path(path).exists():
        folder = downloaded_folder(path)
    if folder is None:
        raise PluginError(
            tr("{path} contains no {file}.").format(path=path, file=f"{SUBFOLDER}/{FILE}"),
            tr("Choose a folder or a downloaded repository that transformers accepts as custom_generate."),
        )
    return folder
