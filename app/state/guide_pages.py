"""Pages of the documentation as shown: written ones, completed by what strategies and caches say of themselves.

A strategy or cache without a written page has a generated one. Tables of settings and the guide's index get a row for
what they lack. A page without a translation is the English one. Names are paths below the folder of the documentation:
`guide/strategies/greedy.md`, `guide/zh_CN/strategies/greedy.md`. No Qt.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from pathlib import Path

from decodescope.core import caches, strategies
from decodescope.resources.language import ENGLISH, LANGUAGES, mark, translate_to

Entry = strategies.Strategy | caches.CacheBackend

CLAIMS = mark("Claims")
BUNDLED_VERDICT = mark("On the bundled {model}: {verdict}; difference {difference}, {prompts} prompts, {date}.")
EXACTLY, SETTING, EFFECT, SOURCE = mark("Exactly"), mark("setting"), mark("what it does"), mark("Source: {source}.")
_SETTING_ROW = re.compile(r"^\| `(\w+)` \|.*$", re.MULTILINE)


def entry_pages() -> dict[str, Entry]:
    """Return every strategy and cache, plug-ins included, by the English name of its page."""
    return {
        f"guide/{section}/{entry.name}.md": entry
        for section, registry in (("strategies", strategies.registry), ("caches", caches.registry))
        for entry in registry.values()
    }


def english_name(name: str) -> tuple[str, str]:
    """Return the English name of a page, and the language of the page."""
    top, _, rest = name.partition("/")
    code, _, own = rest.partition("/")
    return (f"{top}/{own}", code) if code in LANGUAGES and own else (name, ENGLISH)


def localized_name(name: str, language: str) -> str:
    """Return the name that an English page has in a language. Pages outside the guide and the tutorials have none."""
    top, _, rest = name.partition("/")
    return f"{top}/{language}/{rest}" if language != ENGLISH and top in ("guide", "tutorials") else name


def find_page(folder: Path, name: str) -> str:
    """Return the name of the page that is shown for a name: itself, or the English one; empty if there is neither."""
    english, _ = english_name(name)
    found = next((one for one in (name, english) if (folder / one).is_file()), "")
    return found or (name if english in entry_pages() else "")


def page_text(folder: Path, name: str) -> str:
    """Return a page that `find_page` found: the file, completed, or a generated page."""
    file = folder / name
    if file.is_file():
        return add_claims(name, complete_page(name, file.read_text(encoding="utf-8")))
    english, language = english_name(name)
    entry = entry_pages().get(english)
    return "" if entry is None else add_claims(name, _generated_page(entry, language))


def complete_page(name: str, text: str) -> str:
    """Return the text of a page with the rows that its table of settings, or the guide's index, lacks."""
    english, language = english_name(name)
    if english == "guide/README.md":
        return _complete_index(text, language)
    entry = entry_pages().get(english)
    return text if entry is None else _complete_settings(text, entry, language)


def escape_markdown(text: str) -> str:
    """Return text with the characters escaped that Markdown would interpret."""
    return re.sub(r"([\\`*_<>\[\]#|])", r"\\\1", text)


def _generated_page(entry: Entry, language: str) -> str:
    """Return a page with the summary, the explanations, the settings and the source of an entry."""
    about = entry.description
    lines = [f"# {_text(entry.title, language)}", "", f"*{_text(entry.summary, language)}*", ""]
    if about is not None:
        lines += [_text(about.usual, language), ""]
        lines += [f"## {_text(EXACTLY, language)}", "", _text(about.exact, language), ""]
    text = _complete_settings("\n".join(lines), entry, language)
    source = entry.paper if about is None else f"[{escape_markdown(about.source)}]({about.address})"
    return f"{text}\n{_source(source, language)}\n" if source else text


def add_claims(name: str, text: str) -> str:
    """Return the text of a page with the claims about its strategy or cache, and what the bundled model showed."""
    english, language = english_name(name)
    entry = entry_pages().get(english)
    if entry is None or not entry.claims:
        return text
    from decodescope.core import claims  # the window starts without it

    lines = []
    for claim in entry.claims:
        line = f"- **{_text(claim.title, language)}.** {_text(claim.exact, language)}"
        line += f" [{escape_markdown(claim.source)}]({claim.address})."
        stored = claims.bundled_outcome(claim.name)
        if stored is not None:
            digits = claims.measure_of(claim).digits
            line += " " + translate_to(BUNDLED_VERDICT, language).format(
                model=stored.model, verdict=translate_to(claims.VERDICTS[stored.verdict], language),
                difference=claims.interval_text(stored, digits), prompts=stored.prompts, date=stored.date,
            )  # fmt: skip
        lines.append(line)
    return "\n".join([text.rstrip("\n"), "", f"## {_text(CLAIMS, language)}", "", *lines, ""])


def _source(source: str, language: str) -> str:
    return translate_to(SOURCE, language).format(source=source)


def _complete_settings(text: str, entry: Entry, language: str) -> str:
    """Add a row to the table of settings for each setting of the entry that has none."""
    rows = list(_SETTING_ROW.finditer(text))
    named = {row[1] for row in rows}
    settings = strategies.own_settings(entry) if isinstance(entry, strategies.Strategy) else entry.parameters
    missing = [f"| `{one.name}` | {_text(one.help, language)} |" for one in settings if one.name not in named]
    if missing and not rows:
        head = f"| {_text(SETTING, language)} | {_text(EFFECT, language)} |"
        return "\n".join([text.rstrip("\n"), "", head, "| --- | --- |", *missing, ""])
    return _insert_rows(text, rows[-1].end(), missing) if missing else text


def _complete_index(text: str, language: str) -> str:
    """Add a row to the guide's index for each strategy and cache that has none."""
    for section in ("strategies", "caches"):
        rows = list(re.finditer(rf"^\| \[[^\]]*\]\({section}/(\w+)\.md\) \|.*$", text, re.MULTILINE))
        named = {row[1] for row in rows}
        pages = ((posixpath.basename(name)[:-3], one) for name, one in entry_pages().items() if f"/{section}/" in name)
        missing = [
            f"| [{_text(entry.title, language)}]({section}/{name}.md) | {_text(entry.summary, language)} |"
            for name, entry in pages
            if name not in named
        ]
        text = _insert_rows(text, rows[-1].end(), missing) if rows and missing else text
    return text


def _insert_rows(text: str, end: int, rows: Iterable[str]) -> str:
    return "\n".join([text[:end], *rows]) + text[end:]


def _text(text: str, language: str) -> str:
    """Return a text of an entry in a language, as Markdown on one line."""
    return escape_markdown(" ".join(translate_to(text, language).split()))
