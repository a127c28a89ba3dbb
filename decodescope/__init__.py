"""Decodescope for scripts and notebooks: the public functions of its generation core under one name.

    import decodescope

    model = decodescope.load("storyteller")
    print(decodescope.run(model, decodescope.Request("Once upon a time")).texts[0])

Every name is imported on first use. `decodescope.events`, `.errors`, `.caches`, … are the modules
`decodescope.core.events`, … . `python -m decodescope` opens the window.

In a checkout, the folders `core`, `app` and `resources` lie beside this package instead of inside it. There,
`import core` gives the same module objects.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if sys.flags.optimize > 1:
    raise ImportError(
        "decodescope cannot run under -OO or PYTHONOPTIMIZE=2: they remove docstrings, which transformers reads. "
        "Start Python without them."
    )

if TYPE_CHECKING:
    from importlib.abc import Loader, MetaPathFinder

    from decodescope.core import *  # noqa: F403

    class _FinderAndLoader(MetaPathFinder, Loader): ...

else:
    _FinderAndLoader = object  # importing their base classes would take a tenth of the time until a window is seen

PARTS = ("core", "app", "resources")
"""The packages that this one consists of."""
_HERE = Path(__file__).resolve().parent
__version__: str

if not (_HERE / PARTS[0]).is_dir():
    __path__.append(str(_HERE.parent))  # noqa: F405  # every package has a __path__


class _ModuleAliases(_FinderAndLoader):
    """Finds modules under a second name, so that classes exist once: `decodescope.NAME` of the public modules, and in a
    checkout `core.NAME`, `app.NAME` and `resources.NAME`.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.endswith(".__main__") or (own := self._own_name(fullname)) is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, origin=own, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        """Let the interpreter make an empty module, which `exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        assert spec.origin is not None
        sys.modules[spec.name] = importlib.import_module(spec.origin)

    @staticmethod
    def _own_name(fullname: str) -> str | None:
        """Return the name of the module that `fullname` is an alias of."""
        top, _, name = fullname.partition(".")
        if top in PARTS and name:
            own = sys.modules.get(f"{__name__}.{top}")
            return f"{__name__}.{fullname}" if own is not None and sys.modules.get(top) is own else None
        if top != __name__ or name.partition(".")[0] in ("", *PARTS):
            return None
        from decodescope.core import PUBLIC_NAMES

        head, dot, rest = name.partition(".")
        public = PUBLIC_NAMES.get(head)
        return None if public is None or public.attribute is not None else public.module + dot + rest


if not any(type(finder).__name__ == _ModuleAliases.__name__ for finder in sys.meta_path):
    sys.meta_path.insert(0, _ModuleAliases())  # before the finder that would load the files of a checkout again


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("decodescope")
    if name in PARTS:
        return importlib.import_module(f"{__name__}.{name}")
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from decodescope import core

    try:
        return getattr(core, name)
    except AttributeError as error:
        raise AttributeError(str(error).replace(repr(core.__name__), repr(__name__)), name=name) from None


def __dir__() -> list[str]:
    from decodescope import core

    return sorted(core.__all__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command named by the first argument, which needs no Qt, or open the window; return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    code: int | None = importlib.import_module("decodescope.app.start.cli.commands").run_command(arguments)
    if code is None:
        importlib.import_module("decodescope.app.start.cli.information").print_information(arguments)
        code = importlib.import_module("decodescope.app.__main__").main(arguments)
    return code
