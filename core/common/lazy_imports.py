"""Lazy imports for the `__init__` of a public package: each name is written once, in an ordinary import statement.

    with lazy_imports(globals()) as _LAZY:
        import decodescope.core.events as events
        from decodescope.core.request import Request

    __all__ = sorted(_LAZY)

Type checkers read plain imports. At run time the block imports nothing: it only collects the names, and the package
imports the module of a name on first access.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import NamedTuple


class LazyImport(NamedTuple):
    """The source of a public name."""

    module: str
    attribute: str | None
    """The name in `module`; None if the public name is the module itself."""

    def load(self) -> object:
        """Import the module and return the named object."""
        module = importlib.import_module(self.module)
        return module if self.attribute is None else getattr(module, self.attribute)


class _Placeholder(ModuleType):
    """The result of `import` in the block: for `from` imports its attributes are what is imported, else itself."""

    def __init__(self, module: str, *, is_from: bool) -> None:
        super().__init__(module)
        self._is_from = is_from

    def __getattr__(self, name: str) -> object:
        return LazyImport(self.__name__, name) if self._is_from else self


@contextlib.contextmanager
def lazy_imports(namespace: dict[str, object]) -> Iterator[dict[str, LazyImport]]:
    """Collect the imports of the block instead of executing them. Gives the package of this namespace a `__getattr__`
    and a `__dir__` that serve the collected names. Imports by other modules, in other threads too, are unaffected.
    """
    collected: dict[str, LazyImport] = {}
    execute = builtins.__import__

    def collect(
        name: str, globals: Mapping[str, object] | None = None, locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (), level: int = 0,
    ) -> ModuleType:  # fmt: skip
        if globals is not namespace:
            return execute(name, globals, locals, fromlist or (), level)
        return _Placeholder(name, is_from=bool(fromlist))

    builtins.__import__ = collect
    try:
        yield collected
    finally:
        builtins.__import__ = execute
    for name, value in list(namespace.items()):
        if isinstance(value, (LazyImport, _Placeholder)):
            collected[name] = value if isinstance(value, LazyImport) else LazyImport(value.__name__, None)
            del namespace[name]
    package = namespace["__name__"]

    def load_name(name: str) -> object:
        if name not in collected:
            hint = ""
            if not _has_submodule(namespace, name):  # an import of a submodule asks for its name first
                import difflib

                near = difflib.get_close_matches(name, collected, 1)
                hint = f" Did you mean {near[0]!r}?" if near else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}.{hint}", name=name)
        namespace[name] = collected[name].load()
        return namespace[name]

    namespace["__getattr__"] = load_name
    namespace["__dir__"] = lambda: sorted({*namespace, *collected})


def _has_submodule(namespace: Mapping[str, object], name: str) -> bool:
    folders = namespace.get("__path__", ())
    assert isinstance(folders, Iterable)
    places = [os.path.join(folder, name) for folder in folders]
    return any(os.path.exists(place) or os.path.exists(f"{place}.py") for place in places)
