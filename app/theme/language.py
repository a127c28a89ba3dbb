"""The language that the window speaks: the reader's own, or the system's; Qt's dialogs, numbers and dates with it."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator

from resources import language
from resources.language import ENGLISH

SYSTEM = "system"
_of_qt: list[QTranslator] = []
"""What Qt's own dialogs say, where that is not English."""


def code_of(choice: str) -> str:
    """The code of a choice: the language itself, or the one nearest to what the system prefers.

    The first of the system's languages that is there decides, for who reads Chinese and English in that order is told
    both, and who reads German alone is spoken to in English.
    """
    if choice != SYSTEM:
        return choice
    preferred = (name for name in QLocale.system().uiLanguages() if "-" in name)  # bare "zh" follows "zh-Hant-TW" too
    return next((code for name in preferred if (code := _known(name))), ENGLISH)


def speak(choice: str) -> None:
    """Speak so from now on: what is made later is in that language. Raises KeyError for a code that is none."""
    code = code_of(choice)
    language.use(code)
    QLocale.setDefault(QLocale(code))
    _translate_qt(code)


def _known(name: str) -> str:
    """The code of the language of that name; empty where it is not there."""
    code = language.nearest(name)
    return code if code != ENGLISH or name.startswith(ENGLISH) else ""


def _translate_qt(code: str) -> None:
    """Let Qt's own dialogs speak it too, as far as its translations are installed; they are no part of the program."""
    application = QCoreApplication.instance()
    if application is None:
        return
    while _of_qt:
        application.removeTranslator(_of_qt.pop())
    translator = QTranslator(application)
    folder = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
    if code != ENGLISH and translator.load(f"qtbase_{code}", folder):
        application.installTranslator(translator)
        _of_qt.append(translator)
