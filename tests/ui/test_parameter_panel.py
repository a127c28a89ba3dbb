"""The panel of parameters: editors for every kind of setting, marks, resets, help, rare settings, the model's own."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.panels.editors import make_editor
from decodescope.app.panels.parameter_panel import ParameterPanel
from decodescope.app.panels.parameter_row import ParameterRow
from decodescope.app.theme.theme import theme_for
from decodescope.app.window.main_window import MainWindow
from decodescope.core import strategies
from decodescope.core.strategies import Parameter

EVERY_PARAMETER = {p: None for s in strategies.registry.values() for p in s.parameters}


@pytest.fixture
def panel(qtbot: QtBot) -> ParameterPanel:
    panel = ParameterPanel()
    qtbot.addWidget(panel)
    panel.show_parameters(strategies.registry["sampling"].parameters)
    panel.set_theme(theme_for("light"))
    return panel


@pytest.mark.parametrize("parameter", EVERY_PARAMETER, ids=lambda p: p.name)
def test_every_editor_shows_default_and_accepts_other_value(qtbot: QtBot, parameter: Parameter) -> None:
    editor = make_editor(parameter)
    qtbot.addWidget(editor)
    assert editor.plain_value() == parameter.default
    assert editor.problem == ""
    value = _another(parameter)
    with qtbot.waitSignal(editor.edited):
        editor.setValue(value)
    assert editor.plain_value() == value
    editor.set_plain_value(parameter.default)
    assert editor.plain_value() == parameter.default


def _another(parameter: Parameter) -> Any:
    kinds = {"bool": not parameter.default, "lines": ["a", "b\nc"], "tokens": [[1, 2], [3]], "text": "words",
             "grammar": {"choice": ["a"]}, "names": ["top_p", "temperature"],
             "words": ["cat", " red fox"], "word_values": [["cat", 3], ["red", -1.5]]}  # fmt: skip
    if parameter.kind == "choice":
        return next(choice for choice in parameter.choices if choice != parameter.default)
    if parameter.kind in kinds:
        return kinds[parameter.kind]
    high = parameter.maximum if parameter.maximum is not None else 10
    value = max(parameter.default or 0, parameter.minimum or 0) + (parameter.step or 1)
    return value if value <= high else parameter.default - (parameter.step or 1)


def test_numbers_keep_more_decimals_than_they_show(qtbot: QtBot) -> None:
    editor = make_editor(strategies.registry["sampling"].parameter("temperature"))
    qtbot.addWidget(editor)
    editor.setValue(0.8)
    assert editor.text() == f"0{editor.locale().decimalPoint()}80"
    editor.setValue(0.123456)
    assert editor.plain_value() == 0.123456
    editor.setValue(-3)
    assert editor.plain_value() > 0


def test_unset_numbers_are_off(qtbot: QtBot) -> None:
    for name in ("min_p", "top_h", "guidance_scale", "max_time"):
        editor = make_editor(strategies.registry["sampling"].parameter(name))
        qtbot.addWidget(editor)
        assert editor.text() == "off"
        assert editor.plain_value() is None


def test_values_outside_a_list_are_added(qtbot: QtBot) -> None:
    editor = make_editor(strategies.registry["dola"].parameter("dola_layers"))
    qtbot.addWidget(editor)
    editor.setValue([2, 4])
    assert editor.plain_value() == [2, 4]


def test_invalid_list_shows_problem(qtbot: QtBot, panel: ParameterPanel) -> None:
    row = panel.rows["bad_words_ids"]
    row.editor.setPlainText("[[1, 2]")
    assert panel.problems()[0].startswith("Banned phrases")
    assert row.note.text()
    row.editor.setPlainText("[[1, 2]]")
    assert (panel.problems(), row.value) == ([], [[1, 2]])


def test_changed_values_are_marked_and_can_be_reset(qtbot: QtBot, panel: ParameterPanel) -> None:
    row = panel.rows["temperature"]
    assert not row.is_changed
    assert not panel.reset_button.isEnabled()
    with qtbot.waitSignal(panel.changed):
        row.editor.setValue(0.7)
    assert row.is_changed
    assert panel.changed_values() == {"temperature": 0.7}
    panel.rows["top_k"].editor.setValue(7)
    qtbot.mouseDClick(row.label, Qt.MouseButton.LeftButton)
    assert panel.changed_values() == {"top_k": 7}
    panel.reset_button.click()
    assert panel.changed_values() == {}


def test_mark_of_changed_value_is_drawn(qtbot: QtBot, panel: ParameterPanel) -> None:
    row = panel.rows["temperature"]
    panel.resize(300, 800)
    place = QPoint(8, row.label.geometry().center().y() + 1)
    before = row.grab().toImage().pixelColor(place)
    row.set_value(0.7)
    after = row.grab().toImage().pixelColor(place)
    assert before != after
    assert after.blue() > after.red()


def test_slider_and_number_move_together(qtbot: QtBot, panel: ParameterPanel) -> None:
    row = panel.rows["top_p"]
    row.slider.setValue(500)
    assert row.value == 0.5
    row.editor.setValue(0.25)
    assert row.slider.value() == 250
    row.slider.setValue(1000)
    assert row.value == 1.0
    tokens = panel.rows["max_new_tokens"]
    tokens.slider.setValue(0)
    assert tokens.value == 1
    tokens.editor.setValue(5000)
    assert tokens.slider.value() == 1000
    assert tokens.value == 5000


def test_the_wheel_scrolls_the_panel_not_the_values(qtbot: QtBot, panel: ParameterPanel) -> None:
    row = panel.rows["temperature"]
    for part in (row.editor, row.slider):
        wheel = QWheelEvent(
            QPointF(5, 5), QPointF(5, 5), QPoint(0, 120), QPoint(0, 120), Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        QApplication.sendEvent(part, wheel)
        assert not wheel.isAccepted()
    assert row.value == 1.0


def test_help_follows_the_focus(qtbot: QtBot, window: MainWindow) -> None:
    window.activateWindow()
    with qtbot.waitSignal(window.parts.setup.parameters.helpRequested):
        QApplication.sendEvent(window.parts.setup.parameters.rows["top_k"].editor, QEvent(QEvent.Type.FocusIn))
    assert "likeliest tokens" in window.parts.setup.help.text()
    assert "Default: 50" in window.parts.setup.help.text()


def grouped(name: str) -> dict[str, list[Parameter]]:
    return strategies.grouped_settings(strategies.registry[name])


def test_rare_settings_are_folded(qtbot: QtBot, panel: ParameterPanel) -> None:
    panel.show()
    (group,) = panel.groups.values()
    assert not panel.rows["typical_p"].isVisible()
    assert group.more_button.text().endswith("more settings")
    panel.rows["typical_p"].editor.setValue(0.5)
    assert group.more_button.text().endswith("1 changed")
    with qtbot.waitSignal(panel.groupsToggled):
        group.more_button.click()
    assert panel.rows["typical_p"].isVisible()


def test_settings_of_closed_groups_have_values_before_creation(qtbot: QtBot) -> None:
    panel = ParameterPanel()
    qtbot.addWidget(panel)
    panel.show_parameters(grouped("sampling"))
    assert panel.findChild(QWidget, "param.typical_p") is None
    assert panel.findChild(QWidget, "param.top_k") is None
    assert panel.set_values({"typical_p": 0.5, "top_k": 9}) == []
    assert panel.changed_values() == {"typical_p": 0.5, "top_k": 9}
    panel.set_all_open(True)
    assert panel.findChild(QWidget, "param.typical_p").plain_value() == 0.5
    assert panel.values()["typical_p"] == 0.5
    assert "1 changed" not in panel.groups["Filters"].more_button.text()


def test_first_groups_are_open_and_a_closed_one_shows_its_changes(qtbot: QtBot) -> None:
    panel = ParameterPanel()
    qtbot.addWidget(panel)
    panel.set_theme(theme_for("light"))
    panel.show_parameters(grouped("sampling"))
    panel.show()
    assert [key for key, group in panel.groups.items() if group.is_open] == ["Length", "Randomness"]
    head = panel.groups["Filters"].head
    assert (head.summary.startswith("Top-p, Top-k"), head.is_changed) == (True, False)
    before = head.grab().toImage()
    panel.set_values({"top_p": 0.9, "min_p": 0.05})
    assert (head.summary, head.is_changed) == ("top-p 0.9 · min-p 0.05", True)
    assert head.accessibleDescription() == head.summary
    assert head.grab().toImage() != before
    qtbot.keyClick(head, Qt.Key.Key_Right)
    QApplication.processEvents()
    assert panel.rows["top_p"].isVisible()
    qtbot.keyClick(head, Qt.Key.Key_Left)
    assert not panel.rows["top_p"].isVisible()


def test_opened_groups_stay_open_with_another_strategy(qtbot: QtBot) -> None:
    panel = ParameterPanel()
    qtbot.addWidget(panel)
    panel.show_parameters(grouped("sampling"))
    panel.groups["Repetition"].set_open(True)
    panel.groups["Length"].set_open(False)
    panel.show_parameters(grouped("beam_search"))
    assert [key for key, group in panel.groups.items() if group.is_open] == ["Beam search", "Repetition"]
    other = ParameterPanel()
    qtbot.addWidget(other)
    other.show_parameters(grouped("greedy"))
    other.restore_groups(panel.open_groups)
    assert [key for key, group in other.groups.items() if group.is_open] == ["Repetition"]


def test_revealing_a_setting_opens_its_group(qtbot: QtBot) -> None:
    panel = ParameterPanel()
    qtbot.addWidget(panel)
    panel.show_parameters(grouped("sampling"))
    panel.show()
    for name in ("top_k", "typical_p", "watermark_bias"):
        panel.reveal(name)
        QApplication.processEvents()
        assert panel.rows[name].isVisible(), name


@pytest.mark.parametrize("name", sorted(strategies.registry))
def test_every_setting_is_in_one_group_with_a_title(name: str) -> None:
    strategy = strategies.registry[name]
    groups = grouped(name)
    members = [parameter.name for group in groups.values() for parameter in group]
    assert sorted(members) == sorted(strategy.parameter_names)
    assert all(groups)
    assert next(iter(groups)) == "Length"


def test_shared_settings_keep_their_values_between_strategies(panel: ParameterPanel) -> None:
    panel.rows["max_new_tokens"].editor.setValue(33)
    panel.rows["temperature"].editor.setValue(0.5)
    panel.show_parameters(strategies.registry["greedy"].parameters)
    assert panel.changed_values() == {"max_new_tokens": 33}
    panel.show_parameters(strategies.registry["sampling"].parameters)
    assert panel.changed_values() == {"max_new_tokens": 33, "temperature": 0.5}


def test_shared_setting_reuses_row_in_correct_order(qtbot: QtBot, panel: ParameterPanel) -> None:
    panel.show_parameters(list(strategies.registry["sampling"].parameters))
    before = dict(panel.rows)
    before["temperature"].set_unavailable("not now")
    wanted = list(strategies.registry["assisted"].parameters)
    panel.show_parameters(wanted)
    assert list(panel.rows) == [parameter.name for parameter in wanted]
    assert panel.rows["temperature"] is before["temperature"]
    (group,) = panel.groups.values()
    for column in (group.common, group.advanced):
        rows = [column.itemAt(n).widget() for n in range(column.count())]
        drawn = [row.parameter.name for row in rows if isinstance(row, ParameterRow)]
        assert drawn == [parameter.name for parameter in wanted if parameter.name in drawn]
    gone = [name for name, row in before.items() if row.parameter not in wanted]
    assert all(before[name].parent() is None for name in gone)


def test_model_generation_config_sets_defaults(panel: ParameterPanel) -> None:
    panel.rows["top_k"].editor.setValue(7)
    panel.set_model_defaults({"temperature": 0.6, "min_p": 0.05, "top_k": 20, "eos_token_id": [2], "do_sample": True})
    assert panel.rows["temperature"].value == 0.6
    assert panel.changed_values() == {"top_k": 7}
    assert panel.values()["temperature"] == 0.6
    panel.rows["min_p"].set_value(None)
    assert panel.values()["min_p"] == 0.0
    panel.set_model_defaults({})
    assert panel.rows["temperature"].value == 1.0


def test_sampling_settings_are_disabled_without_sampling(qtbot: QtBot, panel: ParameterPanel) -> None:
    panel.show_parameters(strategies.registry["dola"].parameters)
    row = panel.rows["temperature"]
    assert not row.editor.isEnabled()
    assert "Sample" in row.unavailable
    assert "Sample" in row.toolTip()
    panel.rows["do_sample"].editor.setChecked(True)
    assert row.editor.isEnabled()
    assert row.unavailable == ""
    assert "Sample" not in row.toolTip()
