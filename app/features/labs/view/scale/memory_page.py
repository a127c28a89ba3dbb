"""The page for memory planning: the memory of each device for a model and cluster, whether it fits, and remedies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QComboBox, QPushButton, QWidget

from decodescope.app.features.labs.view.scale.device_bars import CAPACITY, PART_COLORS, DeviceBar, DeviceBars
from decodescope.app.features.labs.view.scale.scale_page import ScaleForm, ScalePage, parts_row
from decodescope.app.views.base import Table
from decodescope.app.widgets.building import STRETCH, arrange, set_up
from decodescope.app.widgets.file_dialogs import open_file_dialog
from decodescope.app.widgets.flow_layout import FlowRow
from decodescope.app.widgets.plain_text import PlainLabel, caption
from decodescope.core import catalog
from decodescope.core.errors import DecodescopeError
from decodescope.core.labs import scale
from decodescope.resources.language import join_sentences, mark, tr

_DEGREES = (1, 2, 4, 8, 16, 32, 64)
_PRECISIONS = {"mixed": mark("Mixed: 16 bits, Adam in 32"), "float32": mark("float32 throughout")}
_PURPOSES = {"train": mark("Training"), "write": mark("Inference")}
_SCHEME_SHORT_TITLES = {"ddp": "DDP", "zero1": "ZeRO-1", "zero2": "ZeRO-2", "zero3": "ZeRO-3"}
_BILLION = 1e9


class ScaleMemoryPage(ScalePage):
    """Settings on the left; the sentence, the bars and the remedies follow every change."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Model and devices"), parent)
        self._shapes = list(_known_shapes())
        self.estimate: scale.SetupEstimate | None = None
        self._remedies: tuple[scale.Remedy, ...] = ()
        self.bars = DeviceBars(self)
        self.remedies = set_up(FlowRow(self, 6), name="scaleRemedies")
        arrange(self.body, self.legend, self.bars, self.remedies)
        self._schemes_heading = PlainLabel(tr("The same training with each scheme").upper(), self)
        self._schemes_heading.setProperty("role", "heading")
        self.schemes = set_up(DeviceBars(self), name="scaleSchemes")
        arrange(self.body, self._schemes_heading, self.schemes, STRETCH)
        self._model = self._add_model(self.form)
        _add_cluster(self.form)
        _add_layout(self.form)
        _add_step(self.form)
        self.form.changed.connect(self.refresh)
        self.refresh()

    @property
    def shape(self) -> scale.Shape:
        """The chosen model."""
        return self._shapes[max(0, self._model.currentIndex())]

    @property
    def cluster(self) -> scale.Cluster:
        """The configured devices."""
        number = self.form.number_value
        return scale.Cluster(
            number("devices"), number("memory") * _BILLION, number("machine"),
            number("within") * _BILLION, number("between") * _BILLION,
        )  # fmt: skip

    @property
    def parallel_layout(self) -> scale.Layout:
        """The configured parallelism."""
        return scale.Layout(
            self.form.choice_value("scheme"),
            int(self.form.choice_value("tensor")),
            int(self.form.choice_value("pipeline")),
        )

    @property
    def training(self) -> scale.Training:
        """The configured training step."""
        form = self.form
        return scale.Training(
            form.number_value("batch"),
            form.number_value("length"),
            form.number_value("micro"),
            form.choice_value("precision"),
            form.is_checked("recompute"),
            form.choice_value("pipe"),
            form.choice_value("purpose"),
        )

    @Slot()
    def refresh(self) -> None:
        """Recalculate and rebuild all texts."""
        inputs = self.shape, self.cluster, self.parallel_layout, self.training
        try:
            self.estimate = found = scale.estimate_setup(*inputs)
            self._remedies = scale.remedies(*inputs)
        except DecodescopeError as error:
            self.estimate, self._remedies = None, ()
            self.bars.show_rows(())
            self.set_sentence(join_sentences(error.cause, error.remedy))
        else:
            self.bars.show_rows([*_stage_bars(found)], found.memory)
            self.set_sentence(scale.words.explain_estimate(found, self.parallel_layout, self.training))
        self._show_remedies()
        self._show_schemes()
        parts = [part for part in PART_COLORS if part in (*self.bars.parts, *self.schemes.parts)]
        self.legend.show_parts([*parts, CAPACITY] if parts else ())

    def wording_changed(self) -> None:
        """Rebuild all texts."""
        self.refresh()

    def export_table(self) -> Table:
        """Return one row per device of a stage: its bytes by part, the bytes sent by purpose, and the idle fraction."""
        found = self.estimate
        if found is None:
            return ()
        sent = found.traffic
        head = ["stage", *parts_row(None), "memory", "sent_data", "sent_tensor", "sent_pipeline", "seconds", "idle"]
        more = [found.memory, sent.data, sent.tensor, sent.pipeline, sent.seconds, found.idle]
        return [head, *([number, *parts_row(parts), *more] for number, parts in enumerate(found.stages, 1))]

    @Slot(str)
    def open_config(self, path: str) -> None:
        """Add the shape from a config.json file; show what is wrong with an invalid one."""
        try:
            shape = scale.shape_of(catalog.read_config(Path(path).parent), Path(path).parent.name)
        except DecodescopeError as error:
            self.set_sentence(join_sentences(error.cause, error.remedy))
            return
        self._shapes.append(shape)
        self._model.addItem(_shape_title(shape), shape.name)
        self._model.setCurrentIndex(self._model.count() - 1)

    def _add_model(self, form: ScaleForm) -> QComboBox:
        form.add_heading(tr("Model"))
        combo = form.add_choice("model", tr("Shape"), [(shape.name, _shape_title(shape)) for shape in self._shapes])
        combo.setCurrentIndex(next(n for n, shape in enumerate(self._shapes) if shape is scale.SHAPES[1]))
        button = set_up(QPushButton(tr("From config.json…"), self), name="scaleConfig", role="quiet")
        button.setAutoDefault(False)
        button.clicked.connect(self._choose_config)
        form.add_widget(button)
        return combo

    @Slot()
    def _choose_config(self) -> None:
        open_file_dialog(self, tr("Choose a model's config.json"), tr("Configurations (config.json)"), self.open_config)

    def _show_schemes(self) -> None:
        """Show the fullest device for every scheme, as in the first figure of the ZeRO paper."""
        is_training = self.estimate is not None and self.training.purpose == "train"
        rows = [*_scheme_bars(self.shape, self.cluster, self.parallel_layout, self.training)] if is_training else []
        self.schemes.show_rows(rows, self.cluster.memory)
        self._schemes_heading.setVisible(is_training)
        self.schemes.setVisible(is_training)

    def _show_remedies(self) -> None:
        for old in self.remedies.findChildren(QPushButton):
            old.deleteLater()
            old.hide()
        for number, remedy in enumerate(self._remedies):
            button = QPushButton(caption(scale.words.explain_remedy(remedy)), self.remedies)
            button.setObjectName(f"scaleRemedy{number}")
            button.setProperty("role", "chip")
            button.setAutoDefault(False)
            button.setAccessibleDescription(tr("Changes that make it fit"))
            button.clicked.connect(lambda _checked=False, chosen=remedy: self.apply_remedy(chosen))
            self.remedies.flow.addWidget(button)
            button.show()
        self.remedies.setVisible(bool(self._remedies))

    def apply_remedy(self, remedy: scale.Remedy) -> None:
        """Apply a remedy to the settings."""
        self.form.blockSignals(True)
        for name, value in (
            ("scheme", remedy.layout.scheme), ("tensor", str(remedy.layout.tensor)),
            ("pipeline", str(remedy.layout.pipeline)), ("devices", remedy.cluster.devices),
            ("recompute", remedy.training.recompute),
        ):  # fmt: skip
            self.form.set_value(name, value)
        self.form.blockSignals(False)
        self.refresh()


def _known_shapes() -> Iterator[scale.Shape]:
    """Yield the bundled models with a readable shape, then the models of the papers."""
    for entry in catalog.bundled():
        try:
            yield replace(scale.shape_of(catalog.read_config(entry.path)), name=entry.title)
        except DecodescopeError:
            continue
    yield from scale.SHAPES


def _scheme_bars(
    shape: scale.Shape, cluster: scale.Cluster, layout: scale.Layout, training: scale.Training
) -> Iterator[DeviceBar]:
    for name, title in _SCHEME_SHORT_TITLES.items():
        found = scale.estimate_setup(shape, cluster, replace(layout, scheme=name), training)
        yield DeviceBar(title, found.fullest)


def _shape_title(shape: scale.Shape) -> str:
    return tr("{name} · {layers} × {width:,}").format(name=shape.name, layers=shape.layers, width=shape.width)


def _add_cluster(form: ScaleForm) -> None:
    form.add_heading(tr("Devices"))
    form.add_number("devices", tr("Count"), 64, 1, 65_536)
    form.add_number("memory", tr("Memory per device"), 80, 1, 1_000, " GB")
    form.add_number("machine", tr("Devices per machine"), 8, 1, 1_024)
    form.add_number("within", tr("Bandwidth within a machine"), 300, 1, 10_000, " GB/s")
    form.add_number("between", tr("Bandwidth between machines"), 25, 1, 10_000, " GB/s")


def _add_layout(form: ScaleForm) -> None:
    form.add_heading(tr("Parallelism"))
    titles = scale.words.SCHEME_TITLES
    form.add_choice("scheme", tr("Sharding across replicas"), [(name, tr(title)) for name, title in titles.items()])
    degrees = [(str(degree), str(degree)) for degree in _DEGREES]
    form.add_choice("tensor", tr("Tensor parallel size"), degrees)
    form.add_choice("pipeline", tr("Pipeline stages"), degrees)
    form.add_choice("pipe", tr("Pipeline schedule"), [(k, tr(title)) for k, title in scale.words.KIND_TITLES.items()])
    form.set_value("pipe", "1f1b")


def _add_step(form: ScaleForm) -> None:
    form.add_heading(tr("Training step"))
    form.add_choice("purpose", tr("Purpose"), [(name, tr(title)) for name, title in _PURPOSES.items()])
    form.add_choice("precision", tr("Precision"), [(name, tr(title)) for name, title in _PRECISIONS.items()])
    form.add_number("batch", tr("Batch size"), 1, 1, 4_096)
    form.add_number("length", tr("Tokens per sequence"), 2_048, 1, 1_000_000)
    form.add_number("micro", tr("Micro-batches"), 8, 1, 4_096)
    form.add_checkbox("recompute", tr("Recompute activations"))


def _stage_bars(estimate: scale.SetupEstimate) -> Iterator[DeviceBar]:
    """Yield one bar per stage, because all devices of a stage hold the same."""
    for number, parts in enumerate(estimate.stages):
        is_only = len(estimate.stages) == 1
        yield DeviceBar(tr("Each device") if is_only else tr("Stage {number}").format(number=number + 1), parts)
