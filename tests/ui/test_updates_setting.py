"""The setting for new versions: off by default, with a confirmation the first time that it is switched on."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QCheckBox, QMessageBox, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.panels.settings.settings_dialog import SettingsDialog
from decodescope.app.storage.settings import Settings, UpdatesSection
from decodescope.app.storage.settings_file import SettingsStore

ADDRESS = "https://example.org/notice.json"


@pytest.fixture
def parent(qtbot: QtBot) -> QWidget:
    made = QWidget()
    qtbot.addWidget(made)
    return made


def shown(parent: QWidget, updates: UpdatesSection, address: str = ADDRESS, reason: str = "") -> SettingsDialog:
    dialog = SettingsDialog(Settings(updates=updates), "/settings", parent, address, reason)
    dialog.open()
    return dialog


def question(dialog: SettingsDialog) -> QMessageBox | None:
    return dialog.findChild(QMessageBox, "updatesQuestion")


def press(box: QMessageBox, role: QMessageBox.ButtonRole) -> None:
    next(button for button in box.buttons() if box.buttonRole(button) == role).click()


def test_update_check_is_off_and_requires_one_confirmation(parent: QWidget) -> None:
    updates = UpdatesSection()
    dialog = shown(parent, updates)
    box = dialog.findChild(QCheckBox, "updatesChoice")
    assert not box.isChecked()
    changes: list[str] = []
    dialog.changed.connect(changes.append)
    box.click()
    asked = question(dialog)
    assert ADDRESS in asked.text()
    assert (box.isChecked(), updates.check, updates.agreed, changes) == (False, False, False, [])
    press(asked, QMessageBox.ButtonRole.AcceptRole)
    assert (box.isChecked(), updates.check, updates.agreed, changes) == (True, True, True, ["updates"])
    box.click()
    assert (updates.check, updates.agreed) == (False, True)
    asked.setObjectName("earlier")  # it is deleted later
    box.click()
    assert question(dialog) is None
    assert updates.check


def test_rejected_confirmation_keeps_update_check_off(parent: QWidget) -> None:
    updates = UpdatesSection()
    dialog = shown(parent, updates)
    box = dialog.findChild(QCheckBox, "updatesChoice")
    box.click()
    asked = question(dialog)
    press(asked, QMessageBox.ButtonRole.RejectRole)
    assert (box.isChecked(), updates.check, updates.agreed) == (False, False, False)
    asked.setObjectName("earlier")
    box.click()
    assert question(dialog) is not None


def test_update_check_without_address_is_disabled(parent: QWidget) -> None:
    dialog = shown(parent, UpdatesSection(check=True, agreed=True), "", "There is none.")
    box = dialog.findChild(QCheckBox, "updatesChoice")
    assert not box.isEnabled()
    assert not box.isChecked()
    assert box.accessibleDescription() == "There is none."


@pytest.mark.parametrize("day", [-1, "x", 10**9])
def test_an_invalid_day_is_reset(day: object) -> None:
    section, invalid = UpdatesSection.read({"check": True, "agreed": True, "last_day": day})
    assert (section.check, section.last_day, invalid) == (True, 0, ["last_day"])


def test_update_check_is_off_by_default(tmp_path: Path) -> None:
    updates = SettingsStore(tmp_path).load().updates
    assert (updates.check, updates.agreed) == (False, False)
