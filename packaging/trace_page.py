"""Generate docs/trace-format.md and its schema, the file format of recorded runs, from the event classes.

Run in the root of the repository: python packaging/trace_page.py [--check]
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections.abc import Iterator
from dataclasses import MISSING
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from decodescope.core.events import EVENTS  # noqa: E402  # after the root has been added to the path
from decodescope.core.trace.schema import (  # noqa: E402
    ANY_NAME,
    FILE_NAMES,
    VERSION,
    RecordSchema,
    TypeSpec,
    record_schemas,
    schema_description,
)

DOCS = ROOT / "docs"
PARTS = ROOT / "packaging" / "trace"
NAME = ".".join(map(str, VERSION))
PAGE = DOCS / "trace-format.md"
SCHEMA = DOCS / "trace-schema" / f"{NAME}.json"


def spelled(kind: TypeSpec) -> str:
    """Return a kind in words."""
    match kind:
        case ("optional", of):
            return f"{spelled(of)} or nil"
        case ("many", of):
            return f"list of {spelled(of)}"
        case ("tuple", *of):
            return f"({', '.join(map(spelled, of))})"
        case ("choice", *names):
            listed = ", ".join(f"`{name}`" for name in names if name != ANY_NAME)
            return f"{listed} or another name" if ANY_NAME in names else listed
        case ("record" | "union", *names):
            return " or ".join(f"[{name}](#{str(name).lower()})" for name in names)
    return str(kind)


def docstrings() -> dict[str, str]:
    """Return the docstrings of all fields, by `Class.field`, and of all classes, by name."""
    found = {}
    for path in (*sorted((ROOT / "core" / "events").glob("*.py")), ROOT / "core" / "common" / "size_terms.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                name = FILE_NAMES.get(node.name, node.name)
                found[name] = ast.get_docstring(node) or ""
                found |= {f"{name}.{field}": words for field, words in _fields(node)}
    return {name: " ".join(words.split()).replace("|", "\\|") for name, words in found.items()}


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, below in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match below:
                case ast.Expr(value=ast.Constant(value=str(words))):
                    yield field.target.id, words
                case _:
                    yield field.target.id, ""


def table(record: RecordSchema, words: dict[str, str]) -> str:
    """Return the section of one class: its docstring and its fields."""
    lines = [f"### {record.name}", "", words[record.name], ""]
    if record.fields:
        lines += ["| field | kind | default | |", "| --- | --- | --- | --- |"]
    for field in record.fields:
        default = "" if field.default is MISSING else f"`{json.dumps(field.default)}`"
        lines.append(f"| {field.name} | {spelled(field.kind)} | {default} | {words[f'{record.name}.{field.name}']} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """Return the whole document."""
    words, events = docstrings(), {FILE_NAMES.get(cls.__name__, cls.__name__) for cls in EVENTS}
    head = (PARTS / "page.md").read_text(encoding="utf-8")
    reader = (PARTS / "reader.py").read_text(encoding="utf-8")
    tables = {name: table(record, words) for name, record in record_schemas().items()}
    return "\n".join([
        head.format(version=NAME, schema=SCHEMA.relative_to(DOCS).as_posix(), reader=reader),
        "## Events\n",
        *(tables[name] for name in tables if name in events),
        "## Records in events\n",
        *(tables[name] for name in tables if name not in events),
    ])  # fmt: skip


def schema() -> str:
    """Return the schema as in the header of every file."""
    return json.dumps(schema_description(), indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    """Write both files, or check that they are up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only check whether the files are up to date")
    written = {PAGE: page(), SCHEMA: schema()}
    if parser.parse_args().check:
        return int(not all(path.is_file() and path.read_text("utf-8") == text for path, text in written.items()))
    for path, text in written.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
