"""The prompt panel: an editor for text or chat, and example prompts."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from PySide6.QtCore import QEvent, QMimeData, QSize, Qt, Signal, Slot
from PySide6.QtGui import QAction, QColor, QKeyEvent, QKeySequence, QResizeEvent, QTextCursor, QWheelEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QMenu,
    QPushButton,
    QSizePolicy,
    QTextEdit,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from decodescope.app.panels.parameter_row import MARGIN
from decodescope.app.state import conversation
from decodescope.app.state.media import kind_by_name
from decodescope.app.state.worker_messages import Prompt
from decodescope.app.storage.examples import ExamplePrompt
from decodescope.app.theme.theme import Theme, tab_distance
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets import text_documents
from decodescope.app.widgets.building import arrange, set_role, set_up, show_text
from decodescope.app.widgets.buttons import SegmentedControl
from decodescope.app.widgets.flow_layout import FlowLayout, delete_widget
from decodescope.app.widgets.inputs import changes_text_size
from decodescope.app.widgets.labels import ElidedLabel
from decodescope.app.widgets.plain_text import PlainLabel, tooltip
from decodescope.app.widgets.text_documents import ExactTextEdit, wrap_mode
from decodescope.resources.language import mark, tr

TEXT_LINES, CHAT_LINES = (3, 12), (1, 10)
"""Smallest and largest height of the editor in lines, for a text and for a message."""
MAX_CHIPS, MAX_CHIP_LENGTH, MAX_CHIP_ROWS = 5, 20, 2
"""Number of example chips, the longest title of a chip, and the number of rows; all other examples are in the menu of
the last chip.
"""
CHAT_HINT = mark("Write a message…")
TEXT_HINT = mark("Write the beginning of the text…")


class PromptEdit(ExactTextEdit):
    """Plain text editor that grows with its content, within bounds; Tab leaves it.

    Emits `filesInserted(paths)` and `imageInserted(QImage)` for media that were pasted or dropped, and `submitted` when
    the message should be sent.
    """

    filesInserted = Signal(list)
    imageInserted = Signal(object)
    submitted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.sends_with: Callable[[], Qt.KeyboardModifier | None] = _no_key
        """Returns the modifier that sends a message together with Enter; None if no key does."""
        self._line_range = TEXT_LINES
        self.setDocument(text_documents.create_bidi_document(self))
        self.setObjectName("promptEdit")
        self.setTabChangesFocus(True)
        self.setAccessibleName(tr("Prompt"))
        self.setPlaceholderText(tr(TEXT_HINT))
        self.document().documentLayout().documentSizeChanged.connect(self._on_size)
        self._on_size()

    def event(self, event: QEvent) -> bool:
        """Handle undo and redo while the editor has something to undo or redo; otherwise leave them to the window."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride:
            keys, document = QKeySequence.StandardKey, self.document()
            undoes, redoes = event.matches(keys.Undo), event.matches(keys.Redo)
            if (undoes and not document.isUndoAvailable()) or (redoes and not document.isRedoAvailable()):
                event.ignore()
                return False
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Send the message with Enter, or with Shift+Enter, as the settings say; otherwise edit the text."""
        modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        sends = self.sends_with() if is_enter else None
        if sends is not None and modifiers == sends:
            self.submitted.emit()
        elif sends is not None and modifiers in (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ShiftModifier):
            self.insertPlainText("\n")  # Qt's own Shift+Enter starts a line within the paragraph
            self.ensureCursorVisible()
        else:
            super().keyPressEvent(event)

    def set_line_range(self, lines: tuple[int, int]) -> None:
        """Set the smallest and largest height in lines."""
        self._line_range = lines
        self._on_size()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll; with Ctrl, let the window change the text size."""
        if changes_text_size(event):
            event.ignore()
        else:
            super().wheelEvent(event)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        """Accept text, media files and images."""
        return bool(media_files(source)) or has_image_only(source) or super().canInsertFromMimeData(source)

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Insert text, or emit pasted or dropped media."""
        if paths := media_files(source):
            self.filesInserted.emit(paths)
        elif has_image_only(source):
            self.imageInserted.emit(source.imageData())
        else:
            self.set_wrap_mode_for(self.toPlainText() + source.text())
            super().insertFromMimeData(source)

    def set_wrap_mode_for(self, text: str) -> None:
        """Choose the line wrapping that suits the text to be shown."""
        mode = wrap_mode(text)
        if mode != self.wordWrapMode():
            self.setWordWrapMode(mode)

    @Slot()
    def _on_size(self) -> None:
        """Fit the height to the content; QPlainTextEdit measures its document in lines."""
        least, most = self._line_range
        lines = min(most, max(least, round(self.document().size().height())))
        more = 14 if self._line_range == TEXT_LINES else 2
        frame = 2 * (self.frameWidth() + round(self.document().documentMargin())) + more
        self.setFixedHeight(lines * self.fontMetrics().lineSpacing() + frame)

    def minimumSizeHint(self) -> QSize:
        return QSize(80, super().minimumSizeHint().height())


def _no_key() -> None:
    return None


def media_files(source: QMimeData) -> list[str]:
    """Return the local media files, if all URLs are media files; they are recognised by their names, without opening
    them.
    """
    paths = [url.toLocalFile() for url in source.urls()]
    return paths if paths and all(map(kind_by_name, paths)) else []


def has_image_only(source: QMimeData) -> bool:
    """Return whether the data contains an image but no text; some programs add an image to copied text."""
    return source.hasImage() and not source.hasText()


class ExampleChips(QWidget):
    """Chips in at most two rows. Those that do not fit are hidden; `more`, the last chip, has all hidden ones."""

    def __init__(self, chips: Sequence[QWidget], more: QPushButton, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._chips, self._more = chips, more
        self._flow = FlowLayout()
        arrange(QVBoxLayout(self), self._flow, margins=(MARGIN, 0, MARGIN, 0))
        arrange(self._flow, *chips, more)

    def set_chips(self, chips: Sequence[QWidget]) -> None:
        """Replace the chips before `more`."""
        while self._flow.takeAt(0) is not None:
            pass
        self._chips = chips
        arrange(self._flow, *chips, self._more)
        self.fit()
        self._flow.invalidate()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self.fit()

    @Slot()
    def fit(self) -> None:
        """Show as many chips as fit."""
        widths = []
        for chip in (*self._chips, self._more):
            chip.ensurePolished()
            widths.append(chip.sizeHint().width())
        count = next((n for n in range(len(self._chips), 0, -1) if self._fits([*widths[:n], widths[-1]])), 0)
        for number, chip in enumerate(self._chips):
            chip.setVisible(number < count)
        for action in self._more.menu().actions():
            chip = action.property("chip")
            action.setVisible(not isinstance(chip, QWidget) or chip.isHidden())

    def _fits(self, widths: Sequence[int]) -> bool:
        """Return whether chips of these widths take at most `MAX_CHIP_ROWS` rows."""
        room, x, rows = self.width() - 2 * MARGIN, 0, 1
        for width in widths:
            if x and x + width > room:
                x, rows = 0, rows + 1
            x += width + self._flow.spacing()
        return rows <= MAX_CHIP_ROWS


class PromptPanel(Themed, QWidget):
    """Prompt editor with mode switch and example chips.

    A text prompt and a message are written in the same editor, and each mode keeps its own text. While a message is
    written, the editor with its media and marks (`input_area`) may be in another panel.

    Emits `exampleChosen(example)`, `edited` when text or mode changed, `modeChosen(is_chat)` when the user switched the
    mode, `modeChanged(is_chat)` whenever it has changed, and the editor's `filesInserted(paths)` and
    `imageInserted(QImage)`.
    """

    filesInserted = Signal(list)
    imageInserted = Signal(object)
    exampleChosen = Signal(object)
    edited = Signal()
    modeChosen = Signal(bool)
    modeChanged = Signal(bool)

    def __init__(self, examples: Sequence[ExamplePrompt], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._examples = list(examples)
        self.editor = PromptEdit(self)
        self.mode = SegmentedControl((("text", tr("Text")), ("chat", tr("Chat"))), tr("Prompt type"), self)
        self.score_button = self._score_button()
        self.reuse_label = set_up(
            ElidedLabel(), name="reuseLine", role="muted", accessible_name=tr("Cached part of the prompt")
        )
        self.reuse_label.hide()
        self.count_label = set_up(
            ElidedLabel(), name="promptTokens", role="muted", accessible_name=tr("Tokens of the prompt")
        )
        self.count_label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._reuse_color = QColor()
        self._is_chat = False
        self._texts = {False: "", True: ""}
        """The text of the mode that is not chosen: of the text prompt, and of the message."""
        self._ids: tuple[int, ...] = ()
        self._ids_text = ""
        """The prompt of a script's run, and the text that it spells."""
        self._chips: list[QPushButton] = []
        self.more = self._more_chip()
        self._lay_out()
        self.editor.textChanged.connect(self.edited)
        self.editor.filesInserted.connect(self.filesInserted)
        self.editor.imageInserted.connect(self.imageInserted)
        self.mode.chosen.connect(self._on_mode)

    @property
    def prompt(self) -> Prompt:
        """The prompt for the model: the plain text or the messages of the conversation."""
        text = self.editor.toPlainText()
        if self.is_chat:
            return conversation.parse(text)
        return self._ids if self._ids and text == self._ids_text else text

    @property
    def examples(self) -> Sequence[ExamplePrompt]:
        """All example prompts."""
        return self._examples

    @property
    def chips(self) -> Sequence[QPushButton]:
        """The example chips and the button of the menu with the other examples."""
        return (*self._chips, self.more)

    @property
    def is_chat(self) -> bool:
        """Whether a message is written instead of a text prompt."""
        return self._is_chat

    @property
    def text_prompt(self) -> str:
        """The text prompt, also while a message is written."""
        return self._texts[False] if self.is_chat else self.editor.toPlainText()

    @property
    def message(self) -> str:
        """The message that is being written, also in text mode."""
        return self.editor.toPlainText() if self.is_chat else self._texts[True]

    def set_message(self, text: str) -> None:
        """Set the message without changing the mode; undo does not restore the previous one."""
        if self.is_chat:
            self.set_prompt(text, is_chat=True)
            self.editor.document().clearUndoRedoStacks()
        else:
            self._texts[True] = text

    def switch_mode(self, is_chat: bool) -> None:
        """Switch between text and chat, each with its own text."""
        if is_chat != self.is_chat:
            self._set_mode(is_chat)
            self._show_text(self._texts[is_chat])
            self.edited.emit()

    def show_examples_first(self, models: Container[str]) -> None:
        """Show chips for examples of these models; all others are in the menu of the last chip."""
        suitable = [n for n, example in enumerate(self._examples) if not example.model or example.model in models]
        short = [n for n in suitable if len(self._examples[n].title) <= MAX_CHIP_LENGTH]
        chosen = (short or suitable)[:MAX_CHIPS]
        if [chip.property("number") for chip in self._chips] == chosen:
            return
        for chip in self._chips:
            delete_widget(chip)
        self._chips = [self._chip(number, self._examples[number]) for number in chosen]
        by_number = dict(zip(chosen, self._chips, strict=True))
        for action in self.more.menu().actions():
            action.setProperty("chip", by_number.get(action.data()))
        self.examples_row.set_chips((self.score_button, *self._chips))

    def set_prompt(self, text: str, is_chat: bool = False) -> None:
        """Show a prompt; undo restores the previous one."""
        self._ids = ()
        self._set_mode(is_chat)
        self._show_text(text)
        self.edited.emit()

    def _show_text(self, text: str) -> None:
        if text != self.editor.toPlainText():
            self.editor.set_wrap_mode_for(max(text, self.editor.toPlainText(), key=len))
            self.editor.replace_text(text)
            self.editor.set_wrap_mode_for(text)

    def set_token_ids(self, ids: tuple[int, ...], text: str) -> None:
        """Show the text that token ids spell; `prompt` is the ids until the text is changed."""
        self.set_prompt(text)
        self._ids, self._ids_text = ids, text

    def drop_token_ids(self) -> None:
        """Let the text be tokenized: the ids are those of another model."""
        self._ids = ()

    def clear_text(self) -> None:
        """Clear the editor; undo restores the text."""
        cursor = self.editor.textCursor()
        cursor.select(cursor.SelectionType.Document)
        cursor.removeSelectedText()

    def insert_above_editor(self, part: QWidget) -> None:
        """Insert a widget above the editor."""
        self._input_column.insertWidget(self._input_column.indexOf(self.editor), part)

    def take_back_input(self) -> None:
        """Put the editor back into this panel."""
        self._column.addWidget(self.input_area)
        self.input_area.show()

    def set_text_unsupported(self, reason: str) -> None:
        """Disable the editor for a model without text input and show the reason; an empty reason enables it. The text
        stays.
        """
        self.editor.setEnabled(not reason)
        self.editor.setToolTip(tooltip(reason))

    def show_reuse(self, characters: int | None, text: str) -> None:
        """Shade the text after the first `characters` characters, which are already cached; None shades nothing."""
        marks = []
        if characters is not None:
            from PySide6.QtGui import QTextCharFormat  # import on demand: few prompts have a cached part

            mark = QTextEdit.ExtraSelection()
            style = QTextCharFormat()
            style.setBackground(self._reuse_color)
            cursor = self.editor.textCursor()
            cached = self.editor.toPlainText()[:characters]
            cursor.setPosition(len(cached.encode("utf-16-le")) // 2)
            cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
            mark.format, mark.cursor = style, cursor
            marks.append(mark)
        self.editor.setExtraSelections(marks)
        show_text(self.reuse_label, text)

    def show_token_count(self, text: str, explanation: str, is_too_long: bool = False) -> None:
        """Show the number of tokens beside the heading, as a warning if they are too many. A chat has its own meter."""
        text, explanation = ("", "") if self._is_chat else (text, explanation)
        self.count_label.setText(text)
        self.count_label.setToolTip(tooltip(explanation))
        self.count_label.setAccessibleDescription(explanation)
        set_role(self.count_label, "warning" if is_too_long else "muted")

    def set_chat_available(self, reason: str) -> None:
        """Enable chat, or disable it for a model without a chat template and show the reason."""
        button = self.mode.button("chat")
        button.setEnabled(not reason or self.is_chat)
        button.setToolTip(tooltip(reason or tr("Chat with the model, using its own chat template")))

    def restyle(self, theme: Theme) -> None:
        self.editor.setFont(theme.font(13))
        self.editor.setTabStopDistance(tab_distance(self.editor.font()))
        self.reuse_label.setFont(theme.font(12))
        self.count_label.setFont(theme.font(12, tabular=True))
        self._reuse_color = theme.color("tint")
        self.editor._on_size()

    def _score_button(self) -> QToolButton:
        """Create the button that scores the text without generating."""
        button = set_up(QToolButton(), name="scoreButton")
        button.setText(tr("Score this text"))
        button.setAccessibleName(tr("Score this text"))
        button.setToolTip(tr("Rate how likely each token is, without generating"))
        button.setPopupMode(QToolButton.ToolButtonPopupMode.MenuButtonPopup)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.setMenu(QMenu(button))
        button.menu().setToolTipsVisible(True)
        return button

    def _chip(self, number: int, example: ExamplePrompt) -> QPushButton:
        chip = set_up(QPushButton(tr(example.title)), name=f"example.{example.id}")
        chip.setProperty("role", "chip")
        chip.setProperty("number", number)
        chip.setToolTip(tr(example.about))
        chip.setAccessibleName(tr("Example: {title}").format(title=tr(example.title)))
        chip.setAccessibleDescription(tr(example.about))
        chip.setCursor(Qt.CursorShape.PointingHandCursor)
        chip.clicked.connect(self._on_chip)
        return chip

    def _more_chip(self) -> QPushButton:
        """Create the chip with the menu of all examples."""
        chip = set_up(QPushButton(tr("More…")), name="moreExamples", accessible_name=tr("More examples"), role="chip")
        menu = QMenu(chip)
        menu.setToolTipsVisible(True)
        for number, example in enumerate(self._examples):
            action = menu.addAction(tr(example.title))
            action.setToolTip(tr(example.about))
            action.setData(number)
        menu.triggered.connect(self._on_menu)
        chip.setMenu(menu)
        chip.setHidden(not self._examples)
        return chip

    def _lay_out(self) -> None:
        """Lay out the editor; the surrounding panel places `examples_row` below it."""
        heading = set_up(PlainLabel(tr("PROMPT")), role="heading")
        heading.setBuddy(self.editor)
        self.input_area = QWidget()
        self.input_area.setFocusProxy(self.editor)
        self._input_column = arrange(QVBoxLayout(self.input_area), self.editor, self.reuse_label, margins=0, spacing=6)
        top = arrange(QHBoxLayout(), heading, (self.count_label, 1), self.mode, spacing=6)
        self.examples_row = ExampleChips((self.score_button, *self._chips), self.more)
        self._column = arrange(QVBoxLayout(self), top, self.input_area, margins=(MARGIN, 0, MARGIN, 0), spacing=6)

    def _set_mode(self, is_chat: bool) -> None:
        was_chat = self._is_chat
        self.mode.set_value("chat" if is_chat else "text")
        if was_chat == is_chat:
            return
        self._is_chat = is_chat
        self._texts[was_chat] = self.editor.toPlainText()
        self.editor.setPlaceholderText(tr(CHAT_HINT if is_chat else TEXT_HINT))
        self.editor.setAccessibleName(tr("Message") if is_chat else tr("Prompt"))
        self.editor.set_line_range(CHAT_LINES if is_chat else TEXT_LINES)
        if self.examples_row.parentWidget() is not None:
            self.examples_row.setHidden(is_chat)
        self.show_token_count("", "")
        self.modeChanged.emit(is_chat)

    @Slot(str)
    def _on_mode(self, value: str) -> None:
        self.switch_mode(value == "chat")
        self.modeChosen.emit(value == "chat")

    @Slot(QAction)
    def _on_menu(self, action: QAction) -> None:
        self.exampleChosen.emit(self._examples[action.data()])

    @Slot()
    def _on_chip(self) -> None:
        self.exampleChosen.emit(self._examples[self.sender().property("number")])
