"""Saving what is shown: asks what and how, where to, and writes it."""

from __future__ import annotations

import csv
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Slot

from app.panels.centre import Centre
from app.panels.export_dialog import CSV, ExportDialog, Offer
from app.theme.theme import Theme, theme_for
from app.views.inspector.panel import Inspector
from app.views.shared.portrait import Pose, Subject, take
from app.views.timeline import Timeline
from app.widgets.ask_file import ask_where_to_save
from app.widgets.not_saved import tell_not_saved

_KINDS = {"png": "Pictures (*.png)", "svg": "Pictures (*.svg)", "csv": "Tables (*.csv)"}


class ExportController(QObject):
    """One way to files for every view, the inspector and the timeline."""

    def __init__(self, centre: Centre, inspector: Inspector, timeline: Timeline) -> None:
        super().__init__(centre)
        self._centre, self._inspector, self._timeline = centre, inspector, timeline
        self._theme = theme_for("light")

    @Slot(object)
    def set_theme(self, theme: Theme) -> None:
        """This is the shown one."""
        self._theme = theme

    def subjects(self) -> list[Subject]:
        """What can be saved: the views that are in front, then the panels."""
        views = [Subject(column.title, column.shown, column.shown) for column in self._centre.columns]
        return [*views, Subject("Inspector", self._inspector, self._inspector, "panel"),
                Subject("Timeline", self._timeline, self._timeline, "panel")]  # fmt: skip

    @Slot()
    def ask(self) -> None:
        """Ask what to save, and how."""
        subjects = self.subjects()
        views = [column.shown for column in self._centre.columns]
        offers = [Offer(s.title, s.widget.size(), n < len(views) and bool(views[n].figures()))
                  for n, s in enumerate(subjects)]  # fmt: skip
        dialog = ExportDialog(offers, self._centre.window())
        dialog.chosen.connect(self._ask_where)
        dialog.open()

    @Slot(int, str, object)
    def _ask_where(self, number: int, kind: str, pose: Pose) -> None:
        subject = self.subjects()[number]
        save = partial(self.save_figures, number) if kind == CSV else partial(self.save_picture, number, pose)
        name = f"{subject.title.lower().replace(' ', '-')}.{kind}"
        ask_where_to_save(self._centre, f"Save {subject.title}", name, _KINDS[kind], save)

    def save_picture(self, number: int, pose: Pose, path: str) -> None:
        """Write a subject's picture; a failure is told."""
        try:
            take(self.subjects()[number], Path(path), pose, self._theme)
        except OSError as error:
            tell_not_saved(self._centre, path, error)

    def save_figures(self, number: int, path: str) -> None:
        """Write a view's figures, a head first; a failure is told."""
        rows = self._centre.columns[number].shown.figures()
        try:
            with Path(path).open("w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows(rows)
        except OSError as error:
            tell_not_saved(self._centre, path, error)
