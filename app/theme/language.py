"""The language that the window speaks: the reader's own, or the system's; Qt's dialogs, numbers and dates with it."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator

from resources import language
from resources.language import ENGLISH

SYSTEM = "system"
_qt_translators: list[QTranslator] = []
"""What Qt's own dialogs say, where that is not English."""


def resolve_language(choice: str) -> str:
    """The code of a choice: the language itself, or the one nearest to what the system prefers.

    The first of the system's languages that is there decides, for who reads Chinese and English in that order is told
    both, and who reads German alone is spoken to in English.
    """
    if choice != SYSTEM:
        return choice
    preferred = (name for name in QLocale.system().uiLanguages() if "-" in name)  # bare "zh" follows "zh-Hant-TW" too
    return next((code for name in preferred if (code := _supported_code(name))), ENGLISH)


def set_language(choice: str) -> None:
    """Speak so from now on: what is made later is in that language. Raises KeyError for a code that is none."""
    code = resolve_language(choice)
    language.set_language(code)
    QLocale.setDefault(QLocale(code))
    _translate_qt(code)


def _supported_code(name: str) -> str:
    """The code of the language of that name; empty where it is not there."""
    code = language.closest_language(name)
    return code if code != ENGLISH or name.startswith(ENGLISH) else ""


def _translate_qt(code: str) -> None:
    """Let Qt's own dialogs speak it too, as far as its translations are installed; they are no part of the program."""
    application = QCoreApplication.instance()
    if application is None:
        return
    while _qt_translators:
        application.removeTranslator(_qt_translators.pop())
    translator = QTranslator(application)
    folder = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
    if code != ENGLISH and translator.load(f"qtbase_{code}", folder):
        application.installTranslator(translator)
        _qt_translators.append(translator)
