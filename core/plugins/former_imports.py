"""Let plug-ins go on working that import `core`, `app` or `resources` by the names of these folders."""

from __future__ import annotations

import ast

_FOLDERS = ("core", "app", "resources")


def rename_former_imports(tree: ast.Module) -> tuple[str, ...]:
    """Change imports of `core.…` in a module to `decodescope.core.…`, and those of `app` and `resources` likewise.

    Returns the former names, in order.
    """
    renamer = _Renamer()
    ast.fix_missing_locations(renamer.visit(tree))
    return tuple(dict.fromkeys(renamer.found))


class _Renamer(ast.NodeTransformer):
    def __init__(self) -> None:
        self.found: list[str] = []
        """Former names, one for each import."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        if node.level == 0 and node.module is not None and self._is_former(node.module):
            node.module = f"decodescope.{node.module}"
        return node

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        statements: list[ast.stmt] = []
        for alias in node.names:
            if not self._is_former(alias.name):
                statements.append(ast.Import([alias]))
                continue
            top = alias.name.partition(".")[0]
            if alias.asname is not None or top != alias.name:
                statements.append(ast.Import([ast.alias(f"decodescope.{alias.name}", alias.asname)]))
            if alias.asname is None:  # the statement binds the first part of the name
                statements.append(ast.ImportFrom("decodescope", [ast.alias(top)], 0))
        return [ast.copy_location(statement, node) for statement in statements]

    def _is_former(self, module: str) -> bool:
        is_former = module.partition(".")[0] in _FOLDERS
        if is_former:
            self.found.append(module)
        return is_former
