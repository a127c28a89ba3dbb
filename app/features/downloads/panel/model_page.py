"""Page of the selected model: its facts, its files, the download's progress and the available actions."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QCheckBox, QFrame, QProgressBar, QPushButton, QScrollArea, QVBoxLayout, QWidget

from decodescope.app.state.worker_messages import DownloadStatus
from decodescope.app.widgets.banner import Banner
from decodescope.app.widgets.building import arrange, set_up, show_text
from decodescope.app.widgets.flow_layout import FlowRow
from decodescope.app.widgets.inputs import ComboBox
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import PlainLabel
from decodescope.core import catalog, words
from decodescope.resources.language import join_names, mark, tr, trn

_VARIANT_LENGTH = 12
"""Minimum width of the list of GGUF files, in characters."""
MAX_NAMES = 8
"""Number of files listed by name; the rest are counted."""


def facts_text(model: catalog.HubModel) -> str:
    """Return parameters, size, licence and downloads as one line."""
    parts = [
        model.architecture,
        words.magnitude(model.parameters) if model.parameters else "",
        words.size(model.size) if model.size else "",
        model.licence,
        trn("{count} download a month", "{count} downloads a month", model.downloads).format(
            count=words.magnitude(model.downloads)
        ),
        tr("gated") if model.gated else "",
        tr("private") if model.private else "",
    ]
    return " · ".join(part for part in parts if part)


def fit_text(model: catalog.HubModel) -> str:
    """Return whether the model fits this machine, as a sentence."""
    if not model.judged:
        return tr("Checking whether it fits…")
    if not model.needed:
        return model.why_not
    if model.fits_as:
        template = tr("Fits with {bits} weights (“Weights…” in the model list): {figures}.")
    else:
        template = tr("Fits: {figures}.") if model.fits else tr("Too large for this machine: {figures}.")
    return template.format(figures=model.figures, bits=_bits(model))


def short_facts_text(model: catalog.HubModel) -> str:
    """Return family, size and licence for a line of the list."""
    parts = [
        model.family,
        words.magnitude(model.parameters) if model.parameters else "",
        words.size(model.size) if model.size else "",
        model.licence,
    ]
    return " · ".join(part for part in parts if part)


def short_fit_text(model: catalog.HubModel) -> str:
    """Return whether the model fits this machine, for a line of the list."""
    if not model.needed:
        return fit_text(model)
    if model.fits_as:
        template = tr("Fits with {bits} weights: {needed} of {free} free")
    else:
        template = tr("Fits: {needed} of {free} free") if model.fits else tr("Does not fit: {needed} of {free} free")
    return template.format(needed=words.size(model.needed), free=words.size(model.free), bits=_bits(model))


def variant_text(variant: catalog.GgufVariant) -> str:
    """Return format, bits, size and fit of a GGUF model as one line."""
    count = len(variant.files)
    parts = [
        variant.format_name or variant.key,
        tr("{n}-bit").format(n=variant.bits) if variant.bits else "",
        words.size(variant.size),
        trn("{n} file", "{n} files", count).format(n=count) if count > 1 else "",
        "" if variant.fits is None else tr("fits") if variant.fits else tr("does not fit"),
    ]
    return " · ".join(part for part in parts if part)


def _bits(model: catalog.HubModel) -> str:
    """Return the weight precision with which the model fits."""
    return {"bfloat16": tr("16-bit"), "int8": tr("8-bit"), "int4": tr("4-bit")}.get(model.fits_as, "")


def progress_text(status: DownloadStatus) -> str:
    """Return the download's progress as one line; empty if unknown."""
    there = tr("{done} of {total}").format(done=words.size(status.done), total=words.size(status.total))
    match status.status:
        case "none":
            return ""
        case "paused":
            return tr("Paused: {there}").format(there=there)
        case "failed":
            return tr("Interrupted: {there}").format(there=there) if status.done else tr("Interrupted")
        case "stopping":
            return tr("Stopping…")
        case "whole":
            return _complete_text(status)
    return _transfer_text(status, there)


def _complete_text(status: DownloadStatus) -> str:
    if status.damaged is None:
        return tr("On this disk: {size}").format(size=words.size(status.total))
    if not status.damaged:
        return tr("On this disk; every file matches the hub")
    return tr("Damaged: {files}").format(files=join_names(status.damaged))


def _transfer_text(status: DownloadStatus, progress_text: str) -> str:
    now = status.progress
    if now is None:
        return tr("Contacting the hub…") if status.status == "fetching" else tr("Reading…")
    if now.state == "waiting":
        return tr("Rate limited by the hub: resuming in {time}").format(time=words.rounded_duration(now.left or 0))
    if now.state == "verifying":
        return (
            tr("Checking {file}: {there}").format(file=now.file, there=progress_text) if now.file else tr("Checking…")
        )
    speed = tr("{size}/s").format(size=words.size(now.speed)) if now.speed else ""
    left = tr("{time} left").format(time=words.rounded_duration(now.left)) if now.left is not None else ""
    return " · ".join(part for part in (progress_text, speed, left) if part)


def files_text(model: catalog.HubModel) -> str:
    """Return the files a download includes, and how many stay on the hub."""
    taken = _file_list([f"{file.path} ({words.size(file.size)})" for file in reversed(model.files)])
    if not model.left_out:
        return taken
    left = trn("{n} other file is not downloaded.", "{n} other files are not downloaded.", len(model.left_out))
    return f"{taken}\n{left.format(n=len(model.left_out))}"


def _file_list(names: list[str]) -> str:
    more = len(names) - MAX_NAMES
    if more <= 0:
        return join_names(names)
    return trn("{names} and {n} more", "{names} and {n} more", more).format(names=join_names(names[:MAX_NAMES]), n=more)


FETCH, RESUME, PAUSE, DISCARD, USE, VERIFY, REPAIR, DELETE, CONFIRM_DELETE = (
    "fetch", "resume", "pause", "discard", "use", "verify", "mend", "delete", "surely",
)  # fmt: skip
ACTIONS = {
    FETCH: mark("Download"),
    RESUME: mark("Resume"),
    PAUSE: mark("Pause"),
    DISCARD: mark("Cancel and delete partial files"),
    USE: mark("Use"),
    VERIFY: mark("Verify"),
    REPAIR: mark("Download damaged files again"),
    DELETE: mark("Delete…"),
    CONFIRM_DELETE: mark("Delete permanently"),
}
_PRIMARY_ACTIONS = (FETCH, RESUME, USE, REPAIR)
_ACTIONS_BY_STATUS: dict[str, tuple[str, ...]] = {
    "none": (FETCH,),
    "fetching": (PAUSE, DISCARD),
    "stopping": (),
    "paused": (RESUME, DISCARD),
    "failed": (RESUME, DISCARD),
    "checking": (PAUSE,),
    "whole": (USE, VERIFY, DELETE),
}


class ModelPage(QScrollArea):
    """Page of the selected model. Emits `actionRequested` with one of `ACTIONS`, and `variantPicked(key)` when the user
    chooses a GGUF model of a repository.
    """

    actionRequested = Signal(str)
    variantPicked = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(tr("Selected model"))
        self._status = ""
        self._make_labels()
        self._make_buttons()
        self._lay_out()

    @property
    def allows_pickle(self) -> bool:
        """Whether pickled weights may be downloaded for the shown model."""
        return self.pickle.isChecked() and not self.pickle.isHidden()

    def show_model(self, name: str, model: catalog.HubModel | None, status: DownloadStatus) -> None:
        """Show a model; everything but its name may be unknown."""
        is_other = name != self.title.text()
        if is_other:
            self.pickle.setChecked(False)
        self.title.setText(name)
        for label, text in (
            (self.facts, facts_text(model) if model is not None else ""),
            (self.verdict, fit_text(model) if model is not None else ""),
            (self.files, files_text(model) if model is not None and model.files else ""),
        ):
            show_text(label, text)
        self.files_heading.setVisible(not self.files.isHidden())
        if model is not None:
            self.files_heading.setText(tr("FILES: {size}").format(size=words.size(model.size)))
        self.pickle.setVisible(model is not None and model.pickled and status.status == "none")
        self._show_variants(model if model is not None and name == model.name else None)
        self._show_status(status, is_other)
        self._show_buttons(model, status, is_other)

    def _show_variants(self, model: catalog.HubModel | None) -> None:
        """List the GGUF models of a repository, the chosen one selected."""
        lines = [(variant_text(one), one.key) for one in model.variants] if model is not None else []
        if lines != [
            (self.variants.itemText(row), self.variants.itemData(row)) for row in range(self.variants.count())
        ]:
            self.variants.clear()
            for text, key in lines:
                self.variants.addItem(text, key)
        if model is not None:
            self.variants.setCurrentIndex(self.variants.findData(model.variant))
        for part in (self.variants_heading, self.variants):
            part.setVisible(bool(lines))

    @Slot(int)
    def _on_variant(self, index: int) -> None:
        self.variantPicked.emit(str(self.variants.itemData(index)))

    def _make_labels(self) -> None:
        self.title, self.facts, self.verdict, self.files, self.progress_label = (WrappedLabel() for _ in range(5))
        self.title.setProperty("role", "title")
        self.facts.setProperty("role", "muted")
        self.files.setProperty("role", "muted")
        self.progress_label.setObjectName("downloadHow")
        self.files_heading = set_up(PlainLabel(), role="heading")
        self.bar = QProgressBar(maximum=1000, textVisible=False)
        self.bar.setObjectName("downloadBar")
        self.bar.setAccessibleName(tr("Download progress"))
        self.banner = Banner("downloadBanner")
        self.pickle = set_up(QCheckBox(tr("Download pickled weights anyway")), name="allowPickle")
        self.variants = set_up(ComboBox(), name="ggufVariants", accessible_name=tr("GGUF file"))
        self.variants.activated.connect(self._on_variant)
        self.variants.setSizeAdjustPolicy(ComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.variants.setMinimumContentsLength(_VARIANT_LENGTH)
        self.variants_heading = set_up(PlainLabel(tr("GGUF file").upper()), role="heading")

    def _make_buttons(self) -> None:
        self.buttons = {}
        for name, title in ACTIONS.items():
            button = set_up(QPushButton(tr(title)), name=f"{name}Model")
            button.setAutoDefault(False)
            if name in _PRIMARY_ACTIONS:
                button.setProperty("role", "primary")
            button.clicked.connect(lambda _checked=False, name=name: self._on_pressed(name))
            self.buttons[name] = button

    def _lay_out(self) -> None:
        page, row = QWidget(), FlowRow()
        column = arrange(QVBoxLayout(page), margins=(0, 0, 8, 0), spacing=8)
        for button in self.buttons.values():
            row.flow.addWidget(button)
        for part in (self.title, self.facts, self.variants_heading, self.variants, self.verdict, self.pickle, row,
                     self.bar, self.progress_label, self.banner, self.files_heading, self.files):  # fmt: skip
            column.addWidget(part)
        column.addStretch(1)
        self.setWidget(page)

    def _show_status(self, status: DownloadStatus, is_other: bool) -> None:
        show_text(self.progress_label, progress_text(status))
        is_going = status.is_busy or status.status in ("paused", "failed")
        self.bar.setVisible(is_going and status.total > 0)
        self.bar.setValue(round(1000 * status.done / status.total) if status.total else 0)
        error = status.error
        self.verdict.setVisible(bool(self.verdict.text()) and error is None)
        if error is None:
            self.banner.hide()
        elif is_other or self.banner.isHidden() or self.banner.last_title != error.title:
            self.banner.show_message(error.title, error.cause, error.remedy)

    def _show_buttons(self, model: catalog.HubModel | None, status: DownloadStatus, is_other: bool) -> None:
        """Show the buttons that apply now. Move the focus to the first one if the focused button disappears."""
        offered = _ACTIONS_BY_STATUS[status.status if status.done or status.is_busy else "none"]
        if status.damaged:
            offered = (REPAIR, VERIFY, DELETE)
        if self._status == CONFIRM_DELETE and not is_other and status.status == "whole":
            offered = (*offered[:-1], CONFIRM_DELETE)
        else:
            self._status = status.status
        had_focus = any(button.hasFocus() for button in self.buttons.values())
        for name, button in self.buttons.items():
            button.setVisible(name in offered)
        self.buttons[FETCH].setEnabled(_is_downloadable(model) or self.allows_pickle)
        if had_focus and offered and not any(self.buttons[name].hasFocus() for name in offered):
            self.buttons[offered[0]].setFocus()

    @Slot(str)
    def _on_pressed(self, name: str) -> None:
        if name != DELETE:
            self._status = ""
            self.actionRequested.emit(name)
            return
        self._status = CONFIRM_DELETE
        self.buttons[CONFIRM_DELETE].show()
        self.buttons[CONFIRM_DELETE].setFocus()
        self.buttons[DELETE].hide()


def _is_downloadable(model: catalog.HubModel | None) -> bool:
    """Return whether the model could be loaded on some machine; one that is too large for this machine may be
    downloaded for another.
    """
    is_usable = model is not None and bool(model.parameters or (model.variants and model.needed))
    return model is None or not model.judged or model.gated or model.private or is_usable
