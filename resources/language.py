"""The language that the program speaks: one mechanism for both halves, core and window.

English is what stands in the code; another language is a folder of gettext catalogues in `translations/`, a part of the
program each. `packaging/translations.py` extracts, updates, checks and compiles them.

- `tr("A sentence of {count} words").format(count=n)`: the sentence in the language of now. Placeholders have names.
- `trn("{n} token", "{n} tokens", n).format(n=n)`: where a number decides on the form.
- `trc("of a beam", "dead")`: where one English word means two things; what it is about comes first.
- `mark("Temperature")`: what stands in a constant, is found by extraction, and goes through `tr` where it is shown.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import resources

if TYPE_CHECKING:
    from gettext import NullTranslations

ENGLISH = "en"
LANGUAGES = {ENGLISH: "English", "zh_CN": "简体中文"}
"""What each language calls itself, by its code."""

_code = ENGLISH
_catalogue: NullTranslations | None = None


def mark(text: str) -> str:
    """The text as it is: it stands in a constant, and is translated where it is shown."""
    return text


def tr(text: str) -> str:
    """The text in the language of now."""
    return text if _catalogue is None or not text else _catalogue.gettext(text)


def translate_to(text: str, code: str) -> str:
    """The text in that language, whatever the language of now is; the text itself where it has no translation."""
    return text if code == ENGLISH or not text else _catalogue_of(code).gettext(text)


def trn(one: str, many: str, count: float) -> str:
    """The form for so many, in the language of now."""
    if _catalogue is None:
        return one if count == 1 else many
    return _catalogue.ngettext(one, many, 1 if count == 1 else 2)


def trc(about: str, text: str) -> str:
    """The text in the language of now, where ``about`` tells which of its meanings is meant."""
    return text if _catalogue is None else _catalogue.pgettext(about, text)


def join_sentences(*parts: str) -> str:
    """One after the other, those that are empty left out; Chinese sets no space between them."""
    return ("" if _code.startswith("zh") else " ").join(part for part in parts if part)


def current_language() -> str:
    """The code of the language of now."""
    return _code


def closest_language(name: str) -> str:
    """The code of the language that fits a name as systems write it: "zh_CN.UTF-8", "zh-Hans-SG", "de_AT".

    English where none fits. Only simplified Chinese is there: who reads the traditional script is given English.
    """
    parts = name.replace("-", "_").split(".")[0].split("_")
    traditional = {"Hant", "TW", "HK", "MO"} & set(parts)
    return "zh_CN" if parts[0] == "zh" and not traditional else ENGLISH


def set_language(code: str) -> None:
    """Speak this language from now on. Raises KeyError for one that is not in LANGUAGES."""
    global _code, _catalogue
    LANGUAGES[code]
    _catalogue = None if code == ENGLISH else _catalogue_of(code)
    _code = code


@cache
def _catalogue_of(code: str) -> NullTranslations:
    """All parts in one."""
    from gettext import GNUTranslations, NullTranslations

    whole = NullTranslations()
    for file in sorted(resources.path("translations", code).glob("*.mo")):
        with file.open("rb") as compiled:
            part = GNUTranslations(compiled)
        part.add_fallback(whole)
        whole = part
    return whole
