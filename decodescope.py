"""Decodescope for scripts and notebooks: the public functions of its generation core under one name.

    import decodescope

    model = decodescope.load("storyteller")
    print(decodescope.run(model, decodescope.Request("Once upon a time")).texts[0])

Every name is imported on first use. `decodescope.events`, `.errors`, `.caches`, … are the modules `core.events`, … .
`python -m decodescope` opens the window.

Raises ImportError if another package named `core`, `app` or `resources` precedes the program's own.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core import *  # noqa: F403

_HOME = Path(__file__).resolve().parent


def _require_own(package: str) -> None:
    """Raise ImportError if `package` is not the program's own."""
    own, found = _HOME / package, _location(package)
    if found is None:
        raise ImportError(f"Decodescope is incomplete: {own} is missing. Install it again.", name=package)
    if found.resolve() != own:
        raise ImportError(
            f"Python finds another package named “{package}”: {found} hides Decodescope's own {own}. "
            f"Rename or move {found}, start the script from another folder, or put {_HOME} first on PYTHONPATH.",
            name=package, path=str(found),
        )  # fmt: skip


def _location(package: str) -> Path | None:
    """Return the folder (or file) of a top-level package without importing it; None if there is none."""
    try:
        spec = importlib.util.find_spec(package)
    except ValueError:  # in sys.modules without a spec
        spec = None
    if spec is None:
        file = getattr(sys.modules.get(package), "__file__", None)
        return Path(file) if file else None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    return Path(spec.origin) if spec.origin else None


for _package in ("core", "resources"):
    _require_own(_package)

__path__: list[str] = []  # lets `import decodescope.events` use the finder below
__version__: str


class _SubmoduleFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Resolves `decodescope.NAME` to the module `core.NAME` itself, so that classes exist once."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        import core

        top, _, name = fullname.partition(".")
        public = core.PUBLIC_NAMES.get(name.split(".")[0])
        is_public = top == __name__ and public is not None and public.attribute is None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True) if is_public else None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        head, *rest = name.split(".")[1:]
        import core

        sys.modules[name] = importlib.import_module(".".join((core.PUBLIC_NAMES[head].module, *rest)))


if not any(type(finder).__name__ == _SubmoduleFinder.__name__ for finder in sys.meta_path):
    sys.meta_path.append(_SubmoduleFinder())


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("decodescope")
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import core

    try:
        return getattr(core, name)
    except AttributeError as error:
        raise AttributeError(str(error).replace("'core'", repr(__name__)), name=name) from None


def __dir__() -> list[str]:
    import core

    return sorted(core.__all__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command named by the first argument, which needs no Qt, or open the window; return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    _require_own("app")
    code: int | None = importlib.import_module("app.start.cli.commands").run_command(arguments)
    if code is None:
        code = importlib.import_module("app.__main__").main(arguments)
    return code


if __name__ == "__main__":
    sys.exit(main())
