"""Hooks of the documentation site: navigation, generated reference pages, and links that leave docs/.

A new page of docs/guide, docs/tutorials or docs appears in the navigation by itself, with its heading as title. The
reference is generated from the program: options from its parser, the API from `core/__init__.py`, the glossary from
`resources/glossary`. Strategies and caches without a written page have a generated one, and pages without a translation
are the English ones (`app/state/guide_pages.py`).
"""

from __future__ import annotations

import argparse
import os
import posixpath
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
for path in (str(ROOT / "packaging"), str(ROOT)):
    if path not in sys.path:
        sys.path.insert(0, path)

from static_checks import link_package  # noqa: E402  # after its folder has been added to the path

from decodescope import core  # noqa: E402
from decodescope.app.panels.commands import SHORTCUTS  # noqa: E402
from decodescope.app.start.cli.parser import make_parser  # noqa: E402
from decodescope.app.state.guide_pages import (  # noqa: E402
    add_claims,
    complete_page,
    english_name,
    entry_pages,
    escape_markdown,
    find_page,
    localized_name,
    page_text,
)
from decodescope.core.glossary import terms  # noqa: E402
from decodescope.resources.language import ENGLISH, LANGUAGES, set_language, tr  # noqa: E402

PROJECT_PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
"""Documents of the repository's top level that become pages."""
GUIDE_ORDER = ("strategies", "caches", "views")
TUTORIAL_ORDER = (
    "first-run",
    "temperature",
    "atlas",
    "beams",
    "drafts",
    "caches",
    "your-own-model",
    "your-own-processor",
    "study",
    "studies",
)
GENERATED_REFERENCE = ("reference/command-line.md", "reference/keys.md", "reference/api.md", "reference/glossary.md")
REFERENCE = (
    "toml-files.md",
    "pictures.md",
    "cache-compatibility.md",
    "models.md",
    "gguf-tokenizers.md",
    "stages.md",
    "trace-format.md",
)
HOW_TO = ("programs.md", "translating.md")
INSIDE = ("architecture.md", "tour-of-the-code.md", "building.md")
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^# (.+)$", re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


CHINESE_SECTIONS = {
    "Home": "首页", "Tutorials": "教程（英文）", "Guide": "指南（英文）", "How-to": "操作方法", "Reference": "参考",
    "Project": "项目",
}  # fmt: skip
"""Titles of the sections on Chinese pages, by the English ones."""


_SOURCES = set[Path]()
"""Files of docs/notebooks before the notebooks were run."""


def on_startup(**_: Any) -> None:
    """Arrange the package where mkdocstrings looks for it, and hide, in the results of notebooks, that there are no
    widgets for progress bars.
    """
    link_package()
    os.environ["PYTHONWARNINGS"] = "ignore:IProgress not found"
    _SOURCES.update((DOCS / "notebooks").iterdir())


def on_post_build(**_: Any) -> None:
    """Remove the files that the notebooks wrote beside themselves."""
    for path in set((DOCS / "notebooks").iterdir()) - _SOURCES:
        path.unlink()


def on_config(config: Any) -> Any:
    """State the version on every page, and link to the source where pyproject.toml names its address."""
    project = _project()
    config.copyright = f"Decodescope {project['version']} · {project['license']}"
    config.repo_url = project.get("urls", {}).get("Source")
    return config


def _project() -> dict[str, Any]:
    return dict(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"])


def on_page_context(context: Any, page: Any, config: Any, nav: Any) -> Any:
    """Give a Chinese page the controls, section titles and the language mark of its language."""
    is_chinese = "zh_CN" in page.file.src_uri
    config.theme["language"] = "zh" if is_chinese else "en"
    english = {chinese: title for title, chinese in CHINESE_SECTIONS.items()}
    for section in nav.items:
        section.title = (CHINESE_SECTIONS if is_chinese else english).get(section.title, section.title)
    return context


def on_files(files: Any, config: Any) -> Any:
    """Add generated pages and assets, then build the navigation from what there is."""
    from mkdocs.structure.files import File  # the other functions need no MkDocs

    texts = {
        "index.md": (ROOT / "README.md").read_text(encoding="utf-8"),
        "reference/command-line.md": command_line_page(),
        "reference/api.md": api_page(),
        "reference/glossary.md": glossary_page(ENGLISH),
        "reference/glossary-zh_CN.md": glossary_page("zh_CN"),
        "reference/keys.md": keys_page(),
        **{f"project/{name}": (ROOT / name).read_text(encoding="utf-8") for name in PROJECT_PAGES},
        "project/LICENSE.md": "# Licence\n\n" + (ROOT / "LICENSE").read_text(encoding="utf-8"),
    }
    texts |= {name: page_text(DOCS, find_page(DOCS, name)) for name in pages_without_file()}
    for name, text in texts.items():
        files.append(File.generated(config, name, content=text))
    here = Path(__file__).parent
    assets = {
        "assets/iframe-worker.js": here / "iframe-worker.js",
        "assets/decodescope.svg": ROOT / "resources" / "icons" / "decodescope.svg",
    }
    for name, path in assets.items():
        files.append(File.generated(config, name, content=path.read_bytes()))
    config.nav = navigation({file.src_uri for file in files.documentation_pages()})
    return files


def pages_without_file() -> list[str]:
    """Return the pages that are generated from an entry, or are English for lack of a translation."""
    written = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    english = {name for name in written if english_name(name)[1] == ENGLISH} | set(entry_pages())
    expected = {localized_name(name, language) for name in english for language in LANGUAGES}
    return sorted(expected - written)


def navigation(pages: set[str]) -> list[Any]:
    """Return the navigation in the format of MkDocs; unlisted pages go into the section of their folder."""
    left = set(pages)

    def take(*names: str) -> list[str]:
        found = [name for name in names if name in left]
        left.difference_update(found)
        return found

    def folder(prefix: str, order: tuple[str, ...] = ()) -> list[str]:
        """Take the pages directly in a folder: its index, those named in `order`, the rest by name."""
        inside = sorted(name for name in left if posixpath.dirname(name) == prefix)
        first = [f"{prefix}/README.md", *(f"{prefix}/{name}.md" for name in order)]
        return take(*first, *(name for name in inside if name not in first))

    def guide(prefix: str) -> list[Any]:
        sections = [
            {_title(f"{prefix}/README.md", part): pages_of_part}
            for part in GUIDE_ORDER
            if (pages_of_part := folder(f"{prefix}/{part}"))
        ]
        own = folder(prefix)
        others = sorted({posixpath.dirname(name) for name in left if name.startswith(f"{prefix}/")} - {"guide/zh_CN"})
        more = [{part.rpartition("/")[2].capitalize(): folder(part)} for part in others if "zh_CN" not in part]
        return [*own[:1], *sections, *own[1:], *more]

    chinese = [*guide("guide/zh_CN"), {"教程": folder("tutorials/zh_CN", TUTORIAL_ORDER)}]
    result: list[Any] = [
        {"Home": take("index.md", "installation.md")},
        {"Tutorials": [*folder("tutorials", TUTORIAL_ORDER), {"Notebooks": folder("notebooks")}]},
        {"Guide": guide("guide")},
        {"中文指南": [*chinese, *take("reference/glossary-zh_CN.md")]},
        {"How-to": take(*HOW_TO)},
        {"Reference": [*take(*GENERATED_REFERENCE, *REFERENCE)]},
        {"Project": [*take(*INSIDE, *(f"project/{name}" for name in PROJECT_PAGES), "project/LICENSE.md")]},
    ]
    if left:
        result.append({"More": sorted(left)})
    return [section for section in result if next(iter(section.values()))]


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Complete a written page, and turn links that leave docs/ into links to generated pages, or into plain text."""
    own = page.file.src_uri
    page.meta.setdefault("search", {"boost": _search_boost(own, markdown)})
    if own == "index.md":
        markdown = re.sub(r"\A# .+\n", rf"\g<0>\nVersion {_project()['version']} · [Install](#install)\n", markdown)
    shown = find_page(DOCS, own) or own  # the links of an English page in the place of a missing one are its own
    markdown = add_claims(own, complete_page(own, markdown))
    base = "" if own == "index.md" or own.startswith("project/") else posixpath.join("docs", posixpath.dirname(shown))
    known = {file.src_uri for file in files}

    def rewrite(match: re.Match[str]) -> str:
        mark, text, target = match.groups()
        address, hash_, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target) or not address:
            return match.group()
        path = posixpath.normpath(posixpath.join(base, address))
        inside = path.removeprefix("docs/") if path.startswith("docs/") else _page_of_top_level(path)
        if inside not in known:
            return f"{mark}{text}" if mark else text
        return f"{mark}[{text}]({posixpath.relpath(inside, posixpath.dirname(own) or '.')}{hash_}{anchor})"

    parts, end = [], 0
    for fence in _FENCE.finditer(markdown):
        parts += [_LINK.sub(rewrite, markdown[end : fence.start()]), fence.group()]
        end = fence.end()
    return "".join([*parts, _LINK.sub(rewrite, markdown[end:])])


def _search_boost(name: str, markdown: str) -> float:
    """Return a weight by which a page whose whole title was searched precedes one with more words in its title, and
    both precede the generated reference and the project's pages.
    """
    title = _HEADING.search(markdown)
    words = len(title.group(1).split()) if title else 4
    return (0.5 if name.startswith(("reference/", "project/")) else 2.0) * 2 / (1 + words)


def _page_of_top_level(path: str) -> str:
    if path == "README.md":
        return "index.md"
    return "project/LICENSE.md" if path == "LICENSE" else f"project/{path}"


def _title(index: str, part: str) -> str:
    """Return the heading of the section of a guide's index that lists a folder, up to its colon."""
    text = (ROOT / "docs" / index).read_text(encoding="utf-8")
    before = text[: text.index(f"]({part}/")]
    heading = re.findall(r"^## (.+)$", before, re.MULTILINE)[-1]
    return str(re.split("[::：]", heading)[0])


def command_line_page() -> str:
    """Return the page of all command-line options, made from the parser."""
    set_language(ENGLISH)
    parser = make_parser()
    lines = ["# Command line", "", "```text", parser.format_usage().strip(), "```", ""]
    for group in parser._action_groups:
        actions = [action for action in group._group_actions if action.help != argparse.SUPPRESS]
        if not actions:
            continue
        title = (group.title or "").capitalize()
        lines += [f"## {title}", "", "| option | meaning |", "| --- | --- |"]
        for action in actions:
            lines.append(f"| {_option(action)} | {_cell(_help(parser, action))} |")
        lines.append("")
    epilogue = parser.format_help().partition("\nstrategies:")
    if epilogue[1]:
        lines += ["## Names and scripts", "", "```text", (epilogue[1] + epilogue[2]).strip(), "```", ""]
    return "\n".join(lines)


def _option(action: argparse.Action) -> str:
    value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else "")
    names = action.option_strings or [str(value)]
    takes = f" {value}" if action.option_strings and action.nargs != 0 and value else ""
    return ", ".join(f"`{name}{takes}`" for name in names).replace("|", "\\|")


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    return parser._get_formatter()._expand_help(action) if action.help else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def keys_page() -> str:
    """Return the page of all keys, by the group that the program lists them in."""
    set_language(ENGLISH)
    lines, group = ["# Keys", "", "`Ctrl+/` lists them in the program."], ""
    for shortcut in (shortcut for shortcut in SHORTCUTS if shortcut.keys):
        if shortcut.group != group:
            group = shortcut.group
            lines += ["", f"## {tr(group)}", "", "| key | does |", "| --- | --- |"]
        lines.append(f"| {_cell(shortcut.label)} | {_cell(tr(shortcut.title))} |")
    return "\n".join([*lines, ""])


def api_page() -> str:
    """Return the page of the Python API: a directive of mkdocstrings for each public class, function and module."""
    modules = [name for name, source in core.PUBLIC_NAMES.items() if source.attribute is None]
    sources = {name: ".".join(filter(None, source)) for name, source in core.PUBLIC_NAMES.items()}
    public = [name for name in core.__all__ if name not in modules]
    first = [name for name in ("load", "Request", "stream", "run", "Result", "record", "replay") if name in public]
    rest = [name for name in public if name not in first]
    lines = [
        "# Python API", "",
        "`import decodescope` gives these names; `core` has the same ones. Nothing here needs Qt.", "",
        "## The most important", "", *_directives(first, sources),
        "## All others", "", *_directives(rest, sources),
        "## Modules", "", *_directives(sorted(modules), sources),
    ]  # fmt: skip
    return "\n".join(lines)


def _directives(names: list[str], sources: dict[str, str]) -> list[str]:
    return [line for name in names for line in (f"::: {sources[name]}", *_members_option(name), "")]


def _members_option(name: str) -> list[str]:
    """Return the lines that list the names of a package with lazy imports, which mkdocstrings cannot see."""
    public = getattr(core, name)
    if not hasattr(public, "_PUBLIC_NAMES"):
        return []
    return ["    options:", f"      members: [{', '.join(public.__all__)}]"]


def glossary_page(language: str) -> str:
    """Return all terms of the glossary with the explanations of the three levels, in a language."""
    set_language(language)
    try:
        title, labels = tr("Glossary"), (tr("Plain words"), tr("Standard terms"), tr("Exact terms"))
        lines = [f"# {title}", ""]
        for term in sorted(terms().values(), key=lambda term: term.title.casefold()):
            lines += [f"## {escape_markdown(term.title)}", ""]
            levels = (term.plain, term.usual, term.exact)
            lines += [f"- *{label}*: {escape_markdown(tr(text))}" for label, text in zip(labels, levels, strict=True)]
            lines += [
                "",
                f"[{escape_markdown(term.source)}]({term.address})" if term.address else escape_markdown(term.source),
                "",
            ]
    finally:
        set_language(ENGLISH)
    return "\n".join(lines)
