"""The interface language: the selected one or the system's. It also applies to Qt's dialogs, numbers and dates."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator

from decodescope.resources import language
from decodescope.resources.language import ENGLISH

SYSTEM = "system"
_qt_translators: list[QTranslator] = []
"""Installed translators of Qt's own dialogs; empty for English."""


def resolve_language(choice: str) -> str:
    """Return the language code of a choice; English if that language's translations are not compiled."""
    code = _chosen_code(choice)
    return ENGLISH if language.missing_notice(code) else code


def _chosen_code(choice: str) -> str:
    """Return the language itself, or the best match for the system's languages.

    The first of the system's languages that has a translation wins: a reader of Chinese and English gets the first of
    the two, a reader of German alone gets English.
    """
    if choice != SYSTEM:
        return choice
    preferred = (
        name for name in QLocale.system().uiLanguages() if "-" in name
    )  # a bare "zh" also follows "zh-Hant-TW"
    return next((code for name in preferred if (code := _supported_code(name))), ENGLISH)


def system_language() -> str:
    """Return the code of the first of the system's languages that the program has, even if its translations are not
    compiled; English without one.
    """
    return _chosen_code(SYSTEM)


def set_language(choice: str) -> None:
    """Switch the interface to this language; it applies to texts created later. Raises KeyError for an unknown code."""
    code = resolve_language(choice)
    language.set_language(code)
    QLocale.setDefault(QLocale(code))
    _translate_qt(code)


def missing_notice(choice: str) -> str:
    """Return why the interface is in English although that language was chosen, and what to do; else empty."""
    return language.missing_notice(_chosen_code(choice))


def _supported_code(name: str) -> str:
    """Return the code of the language called `name`, or "" if there is no translation."""
    code = language.closest_language(name)
    return code if code != ENGLISH or name.startswith(ENGLISH) else ""


def _translate_qt(code: str) -> None:
    """Translate Qt's own dialogs too, if Qt's translations are installed; they are not part of the program."""
    application = QCoreApplication.instance()
    if application is None:
        return
    while _qt_translators:
        former = _qt_translators.pop()
        application.removeTranslator(former)
        former.deleteLater()
    if code == ENGLISH:
        return
    translator = QTranslator(application)
    if translator.load(f"qtbase_{code}", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)):
        application.installTranslator(translator)
        _qt_translators.append(translator)
    else:
        translator.deleteLater()
