"""The program's language, for core and window.

The code contains English; every other language is a folder of gettext catalogues in `translations/`, one for each part
of the program. `packaging/translations.py` extracts, updates, checks and compiles them.

- `tr("A sentence of {count} words").format(count=n)`: translate to the current language. Placeholders are named.
- `trn("{n} token", "{n} tokens", n).format(n=n)`: singular or plural.
- `trc("of a beam", "dead")`: with a context, for ambiguous English words.
- `mark("Temperature")`: mark a constant for extraction; translate it through `tr` when shown.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from decodescope.resources.catalogs import compiled_catalogs, recompile

if TYPE_CHECKING:
    from gettext import NullTranslations
    from pathlib import Path

ENGLISH = "en"
LANGUAGES = {ENGLISH: "English", "zh_CN": "简体中文"}
"""Native name of each language, by code."""

_WITHOUT_SPACES = ("ja", "zh")
"""Languages without a space between sentences."""

_code = ENGLISH
_catalogue: NullTranslations | None = None


def mark(text: str) -> str:
    """Return the text unchanged; marks a constant for translation when shown."""
    return text


def tr(text: str) -> str:
    """Translate a text to the current language."""
    return text if _catalogue is None or not text else _catalogue.gettext(text)


def translate_to(text: str, code: str) -> str:
    """Translate a text to the given language; return it unchanged if it has no translation."""
    return text if code == ENGLISH or not text else _translations(code)[0].gettext(text)


def trn(one: str, many: str, count: float) -> str:
    """Translate to the plural form for `count`, by the language's rule: a language may have more than two forms.

    Fractions take the form of 2: gettext's rules are defined for integers only.
    """
    if _catalogue is None:
        return one if count == 1 else many
    return _catalogue.ngettext(one, many, int(count) if count == int(count) else 2)


def trc(about: str, text: str) -> str:
    """Translate an ambiguous text; ``about`` is the context that selects its meaning."""
    return text if _catalogue is None else _catalogue.pgettext(about, text)


def join_sentences(*parts: str) -> str:
    """Join sentences, skipping empty ones; with spaces, except in languages written without them."""
    return ("" if _code.startswith(_WITHOUT_SPACES) else " ").join(part for part in parts if part)


def join_names(names: Iterable[str]) -> str:
    """Return the names of a list in one text, as the language separates them."""
    return tr(", ").join(names)


def join_alternatives(parts: Sequence[str]) -> str:
    """Join words or phrases: `a, b or c`."""
    if len(parts) < 2:
        return "".join(parts)
    return tr("{some} or {last}").format(some=join_names(parts[:-1]), last=parts[-1])


_NAME = re.compile(r"\S*[._/\\:]\w|\w*\d|\w[^\W\d_]*[A-Z]")
"""The beginning of a name: a word with a dot, a slash, an underscore, a digit or a capital letter inside."""


def start_sentence(text: str) -> str:
    """Return a clause with a capital letter. A name at its start, such as that of a file, stays as it is written."""
    word = text.split(maxsplit=1)[0] if text.strip() else ""
    return text if _NAME.match(word) else text[:1].upper() + text[1:]


def current_language() -> str:
    """Return the code of the current language."""
    return _code


def closest_language(name: str) -> str:
    """Return the code of the language that best matches a system locale: "zh_CN.UTF-8", "zh-Hans-SG", "de_AT".

    English if none matches. Only simplified Chinese is available, so readers of the traditional script get English.
    """
    parts = name.replace("-", "_").split(".")[0].split("_")
    if parts[0] == "zh" and {"Hant", "TW", "HK", "MO"} & set(parts):
        return ENGLISH
    exact = "_".join(parts[:2])
    return exact if exact in LANGUAGES else next((c for c in LANGUAGES if c.split("_")[0] == parts[0]), ENGLISH)


def set_language(code: str) -> None:
    """Set the current language. Raises KeyError for one that is not in LANGUAGES.

    Without compiled translations the texts stay in English, with a UserWarning that says how to compile them.
    """
    global _code, _catalogue
    LANGUAGES[code]
    if notice := missing_notice(code):
        warnings.warn(notice, stacklevel=2)
        code = ENGLISH
    _catalogue = None if code == ENGLISH else _translations(code)[0]
    _code = code


def missing_notice(code: str) -> str:
    """Return why texts of a language are in English and what to do; empty if its translations can be read."""
    if code == ENGLISH or _translations(code)[1]:
        return ""
    return (
        f"The translations for {LANGUAGES[code]} are not compiled or are damaged, so all texts are in English. "
        "Start the program with “python3 packaging/bootstrap.py run”, or install Babel and start it again."
    )


@cache
def _translations(code: str) -> tuple[NullTranslations, bool]:
    """Merge the catalogues of a language; also return whether there are any and all of them can be read.

    A damaged compiled catalogue is compiled again if Babel is installed.
    """
    from gettext import NullTranslations

    merged: NullTranslations = NullTranslations()
    files = compiled_catalogs(code)
    is_complete = bool(files)
    for file in files:
        part = _read_catalog(file) or (_read_catalog(file) if recompile(file) else None)
        if part is None:
            is_complete = False
            continue
        part.add_fallback(merged)
        merged = part
    return merged, is_complete


def _read_catalog(file: Path) -> NullTranslations | None:
    """Read a compiled catalogue; None if it is damaged."""
    from gettext import GNUTranslations

    try:
        with file.open("rb") as compiled:
            return GNUTranslations(compiled)
    except Exception:  # gettext checks the first bytes only; damage further on raises whatever Python raises
        return None
