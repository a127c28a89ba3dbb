"""The page on the picked model: what it is, which files are taken, how far they have come, and what can be done."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QCheckBox, QFrame, QProgressBar, QPushButton, QScrollArea, QVBoxLayout, QWidget

from app.panels.download import download_wording
from app.state.hub_models import DownloadStatus
from app.theme.theme import Theme
from app.widgets.banner import Banner
from app.widgets.flow_layout import FlowRow
from app.widgets.plain_text import PlainLabel
from app.widgets.wrapped_label import WrappedLabel
from core import catalog, words
from resources.language import mark, tr

FETCH, RESUME, PAUSE, DISCARD, USE, VERIFY, MEND, DELETE, SURELY = (
    "fetch", "resume", "pause", "discard", "use", "verify", "mend", "delete", "surely",
)  # fmt: skip
ACTIONS = {
    FETCH: mark("Download"),
    RESUME: mark("Go on"),
    PAUSE: mark("Pause"),
    DISCARD: mark("Cancel and delete what has come"),
    USE: mark("Use it"),
    VERIFY: mark("Verify"),
    MEND: mark("Fetch the damaged files again"),
    DELETE: mark("Delete…"),
    SURELY: mark("Delete it for good"),
}
_FIRST = (FETCH, RESUME, USE, MEND)
_OFFERED: dict[str, tuple[str, ...]] = {
    "none": (FETCH,),
    "fetching": (PAUSE, DISCARD),
    "stopping": (),
    "paused": (RESUME, DISCARD),
    "failed": (RESUME, DISCARD),
    "checking": (PAUSE,),
    "whole": (USE, VERIFY, DELETE),
}


class ModelPage(QScrollArea):
    """`actionWanted` with one of ACTIONS; `pickleAllowed` says whether pickles may be taken."""

    actionWanted = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(tr("The picked model"))
        self._status = ""
        self._make_words()
        self._make_buttons()
        self._lay_out()

    @property
    def allows_pickle(self) -> bool:
        """Whether pickled weights may be taken of the model that is shown."""
        return self.pickle.isChecked() and not self.pickle.isHidden()

    def show_model(self, name: str, model: catalog.HubModel | None, standing: DownloadStatus) -> None:
        """What is known of a model; all of it may be unknown but its name."""
        is_other = name != self.title.text()
        if is_other:
            self.pickle.setChecked(False)
        self.title.setText(name)
        for label, text in (
            (self.facts, download_wording.facts(model) if model is not None else ""),
            (self.verdict, download_wording.verdict(model) if model is not None else ""),
            (self.files, download_wording.files(model) if model is not None and model.files else ""),
        ):
            label.setText(text)
            label.setVisible(bool(text))
        self.taken.setVisible(not self.files.isHidden())
        if model is not None:
            self.taken.setText(tr("FILES TAKEN: {size}").format(size=words.size(model.size)))
        self.pickle.setVisible(model is not None and model.pickled and standing.status == "none")
        self._show_standing(standing, is_other)
        self._offer(model, standing, is_other)

    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes."""
        self.banner.set_theme(theme)

    def _make_words(self) -> None:
        self.title, self.facts, self.verdict, self.files, self.how = (WrappedLabel() for _ in range(5))
        self.title.setProperty("role", "title")
        self.facts.setProperty("role", "muted")
        self.files.setProperty("role", "muted")
        self.how.setObjectName("downloadHow")
        self.taken = PlainLabel()
        self.taken.setProperty("role", "heading")
        self.bar = QProgressBar(maximum=1000, textVisible=False)
        self.bar.setObjectName("downloadBar")
        self.bar.setAccessibleName(tr("How much of it is there"))
        self.banner = Banner("downloadBanner")
        self.pickle = QCheckBox(tr("Take pickled weights all the same"))
        self.pickle.setObjectName("allowPickle")

    def _make_buttons(self) -> None:
        self.buttons = {}
        for name, title in ACTIONS.items():
            button = QPushButton(tr(title))
            button.setObjectName(f"{name}Model")
            button.setAutoDefault(False)
            if name in _FIRST:
                button.setProperty("role", "primary")
            button.clicked.connect(lambda _checked=False, name=name: self._on_pressed(name))
            self.buttons[name] = button

    def _lay_out(self) -> None:
        page, row = QWidget(), FlowRow()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 8, 0)
        column.setSpacing(8)
        for button in self.buttons.values():
            row.flow.addWidget(button)
        for part in (self.title, self.facts, self.verdict, self.pickle, row, self.bar, self.how, self.banner,
                     self.taken, self.files):  # fmt: skip
            column.addWidget(part)
        column.addStretch(1)
        self.setWidget(page)

    def _show_standing(self, standing: DownloadStatus, is_other: bool) -> None:
        self.how.setText(download_wording.how(standing))
        self.how.setVisible(bool(self.how.text()))
        is_going = standing.is_busy or standing.status in ("paused", "failed")
        self.bar.setVisible(is_going and standing.total > 0)
        self.bar.setValue(round(1000 * standing.done / standing.total) if standing.total else 0)
        error = standing.error
        self.verdict.setVisible(bool(self.verdict.text()) and error is None)
        if error is None:
            self.banner.hide()
        elif is_other or self.banner.isHidden() or self.banner.told != error.title:
            self.banner.show_message(error.title, error.cause, error.remedy)

    def _offer(self, model: catalog.HubModel | None, standing: DownloadStatus, is_other: bool) -> None:
        """The buttons that make sense now; the focus goes to the first where its own is gone."""
        offered = _OFFERED[standing.status if standing.done or standing.is_busy else "none"]
        if standing.damaged:
            offered = (MEND, VERIFY, DELETE)
        if self._status == SURELY and not is_other and standing.status == "whole":
            offered = (*offered[:-1], SURELY)
        else:
            self._status = standing.status
        had_focus = any(button.hasFocus() for button in self.buttons.values())
        for name, button in self.buttons.items():
            button.setVisible(name in offered)
        self.buttons[FETCH].setEnabled(_can_be_fetched(model) or self.allows_pickle)
        if had_focus and offered and not any(self.buttons[name].hasFocus() for name in offered):
            self.buttons[offered[0]].setFocus()

    @Slot(str)
    def _on_pressed(self, name: str) -> None:
        if name != DELETE:
            self._status = ""
            self.actionWanted.emit(name)
            return
        self._status = SURELY
        self.buttons[SURELY].show()
        self.buttons[SURELY].setFocus()
        self.buttons[DELETE].hide()


def _can_be_fetched(model: catalog.HubModel | None) -> bool:
    """Not what could never be loaded; what does not fit here may be wanted for elsewhere."""
    return model is None or not model.judged or model.gated or model.private or bool(model.parameters)
