"""The grammar's editor and its form: typed text, its errors, and the request of a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QDialogButtonBox, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app import build_window
from decodescope.app.panels.grammar_editor import GrammarEditor, SchemaForm
from decodescope.app.state import setting_values
from decodescope.app.state.comparison.candidates import grammar_candidates
from decodescope.app.state.text_formats import SchemaField, from_schema, from_text, to_schema, to_text
from decodescope.app.state.worker_messages import RunRequest
from decodescope.app.storage.drop_offers import offer_for_files
from decodescope.app.views.compare.comparison_kinds import GRAMMAR, comparison_unsupported_reason
from decodescope.core.processors import registry
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.layout import faults, settle

PARAMETER = registry["grammar"].parameter
FIELDS = (
    SchemaField("name", max_length=20),
    SchemaField("animal", "choice", words=("cat", "dog")),
    SchemaField("age", "number", is_required=False),
    SchemaField("tame", "boolean"),
)


@pytest.fixture
def editor(qtbot: QtBot) -> GrammarEditor:
    assert PARAMETER is not None
    made = GrammarEditor(PARAMETER)
    qtbot.addWidget(made)
    return made


def choose(editor: GrammarEditor, kind: str) -> None:
    editor.kinds.setCurrentIndex(editor.kinds.findData(kind))


def test_every_grammar_kind_starts_with_valid_value(editor: GrammarEditor) -> None:
    assert editor.plain_value() is None
    assert editor.text is None  # nothing is made before it is wanted
    for kind in ("json_schema", "regex", "lark", "gbnf", "choice"):
        choose(editor, kind)
        assert list(editor.plain_value()) == [kind]
        assert editor.problem == ""
    choose(editor, "")
    assert editor.plain_value() is None
    assert editor.text is not None
    assert editor.text.isHidden()


def test_invalid_grammar_shows_problem_while_typing(qtbot: QtBot, editor: GrammarEditor) -> None:
    choose(editor, "regex")
    assert editor.text is not None
    with qtbot.waitSignal(editor.edited):
        editor.text.setPlainText("(a")
    assert "unclosed group" in editor.problem
    editor.text.setPlainText("(a)")
    assert editor.problem == ""
    choose(editor, "json_schema")
    editor.text.setPlainText('{"type": ')
    assert "not valid JSON" in editor.problem
    choose(editor, "regex")
    assert editor.text.toPlainText() == "(a)"  # each kind keeps its text


@pytest.mark.parametrize(
    "value",
    [
        {"choice": [" a", "b\nc", "\\n"]},
        {"regex": "a\\n|b"},
        {"lark": 'start: "a"\n'},
        {"gbnf": 'root ::= "a" # b\n'},
        {"json_schema": {"type": "null"}},
    ],
)
def test_grammar_value_survives_round_trip(editor: GrammarEditor, value: dict[str, object]) -> None:
    editor.set_plain_value(value)
    assert editor.plain_value() == value
    ((kind, content),) = value.items()
    assert from_text(kind, to_text(kind, content)) == value


def test_schema_form_emits_schema(qtbot: QtBot) -> None:
    around = QWidget()  # the form deletes itself when it is done
    qtbot.addWidget(around)
    form = SchemaForm(FIELDS, around)
    form.show()
    settle(form)
    assert faults(form) == []
    assert tuple(form.fields) == FIELDS
    ok = form.buttons.button(QDialogButtonBox.StandardButton.Ok)
    form.add_field()
    assert not ok.isEnabled()  # it has no name yet
    form.rows[-1].name.setText("name")
    assert not ok.isEnabled()  # there is one of that name
    form.rows[-1].remove.click()
    assert ok.isEnabled()
    form.rows[1].limit.words.setText("")
    assert not ok.isEnabled()
    form.rows[1].limit.words.setText("cat, dog")
    with qtbot.waitSignal(form.schemaAccepted) as made:
        ok.click()
    assert made.args == [to_schema(FIELDS)]


def test_from_schema_accepts_only_form_schemas() -> None:
    assert from_schema(to_schema(FIELDS)) == FIELDS
    assert from_schema({**to_schema(FIELDS), "minProperties": 2}) is None
    assert from_schema({"type": "string"}) is None


def test_command_line_grammar_accepts_json_or_file(tmp_path: object) -> None:
    assert PARAMETER is not None
    folder = Path(str(tmp_path))
    (folder / "card.json").write_text('{"type": "null"}')
    (folder / "words.txt").write_text(" yes\n no\n")
    assert setting_values.parse(PARAMETER, '{"regex": "a"}') == {"regex": "a"}
    assert setting_values.parse(PARAMETER, str(folder / "card.json")) == {"json_schema": {"type": "null"}}
    assert setting_values.parse(PARAMETER, str(folder / "words.txt")) == {"choice": [" yes", " no"]}
    for wrong in ("{", "red", str(folder / "gone.lark")):
        with pytest.raises(setting_values.InvalidValueError, match="grammar: "):
            setting_values.parse(PARAMETER, wrong)


def test_opened_grammar_file_is_used_or_its_error_is_shown(editor: GrammarEditor, tmp_path: Path) -> None:
    file = tmp_path / "rules.gbnf"
    file.write_text('root ::= "a"\n')
    editor.open_file(str(file))
    assert editor.plain_value() == {"gbnf": 'root ::= "a"\n'}
    file.write_text('root ::= "a" b\n')
    editor.open_file(str(file))
    assert editor.problem == "Line 1, column 14, in the rule root: the rule b is used but not defined."
    editor.open_file(str(tmp_path / "gone.gbnf"))
    assert "cannot be read" in editor.problem


def test_dropped_grammar_becomes_the_setting(qtbot: QtBot, tmp_path: Path) -> None:
    window = build_window(tmp_path / "settings", ScriptedEngine())
    qtbot.addWidget(window)
    for name, content, kind in (
        ("rules.gbnf", 'root ::= "a"', "gbnf"), ("schema.json", '{"type": "null"}', "json_schema")
    ):  # fmt: skip
        file = tmp_path / name
        file.write_text(content)
        window.parts.dropping.handle_drop(offer_for_files([str(file)]))
        assert list(window.parts.requests.current_request().settings["grammar"]) == [kind]
    broken = tmp_path / "broken.gbnf"
    broken.write_text("root = 1")
    window.parts.dropping.handle_drop(offer_for_files([str(broken)]))
    assert "must follow the name of a rule" in str(window.parts.messages.notice)
    assert list(window.parts.requests.current_request().settings["grammar"]) == ["json_schema"]


def test_grammar_comparison_has_run_without_grammar() -> None:
    ruled = RunRequest("x", {"max_new_tokens": 4}, "greedy", options={"grammar": {"choice": ["a"]}, "top_n_sigma": 1.0})
    own, free = grammar_candidates(ruled)
    assert own.request == ruled
    assert free.request.options == {"top_n_sigma": 1.0}
    assert comparison_unsupported_reason(GRAMMAR, ruled) == ""
    assert "no grammar" in comparison_unsupported_reason(GRAMMAR, free.request)


def test_grammar_without_llguidance_is_disabled(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    from decodescope.app.panels.parameter_panel import ParameterPanel
    from decodescope.core.strategies import registry as strategies

    monkeypatch.setattr("decodescope.core.system.optional_deps.find_spec", lambda name: None)
    panel = ParameterPanel()
    qtbot.addWidget(panel)
    panel.show_parameters(strategies["greedy"].parameters)
    assert "llguidance is not installed" in panel.rows["grammar"].unavailable
    assert not panel.rows["grammar"].editor.isEnabled()
