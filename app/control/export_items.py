"""Everything that can be exported: pictures, tables, the run as a page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PySide6.QtCore import QSize
from PySide6.QtGui import QImage

from decodescope import core
from decodescope.app.panels.centre import Centre
from decodescope.app.panels.export_dialog import HTML, PNG, SVG, TRACE, ExportTarget
from decodescope.app.panels.view_column import ViewColumn
from decodescope.app.session.session import Session
from decodescope.app.storage.exported_files import CSV, JSON, write_table
from decodescope.app.views import VIEWS
from decodescope.app.views.base import Table, View
from decodescope.app.views.inspector.panel import Inspector
from decodescope.app.views.timeline import Timeline
from decodescope.app.widgets import widget_pictures
from decodescope.app.widgets.widget_pictures import PictureOptions, PictureSubject, render_view, save_view_picture
from decodescope.core.system.file_writing import atomic_write
from decodescope.resources.language import tr

RUN, WINDOW = "run", "window"
_PICTURES, _FIGURES = (PNG, SVG), (CSV, JSON)


class ExportItems:
    """Exports views by name, panels as `inspector` and `timeline`, the whole window as `window` and the run as
    `run`.
    """

    def __init__(self, centre: Centre, inspector: Inspector, timeline: Timeline, session: Session) -> None:
        self._centre, self._session = centre, session
        self._panels: dict[str, tuple[str, View]] = {
            "inspector": (tr("Inspector"), inspector), "timeline": (tr("Timeline"), timeline),
        }  # fmt: skip

    def add_lab(self, name: str, title: str, view: View) -> None:
        """Offer the view of an open lab like a panel."""
        self._panels[name] = (title, view)

    def remove_lab(self, name: str) -> None:
        """Stop offering it."""
        self._panels.pop(name, None)

    def offers(self) -> list[ExportTarget]:
        """Return the exportable items: the run if there is one, front views, other views, panels, and the window."""
        in_front = [column.current_name for column in self._centre.columns]
        names = dict.fromkeys([*in_front, *self._centre.columns[0].available_names, *self._panels])
        offers = [self._offer(name) for name in names]
        offers.append(ExportTarget(WINDOW, tr("Whole window"), _PICTURES, self._centre.window().size(), is_fixed=True))
        run = self._session.run
        if run is None or run.started is None:
            return offers
        kinds = (HTML, TRACE) if run.outcome is not None else (HTML,)
        return [ExportTarget(RUN, tr("Full run"), kinds, QSize(), is_fixed=True), *offers]

    def front_offer(self) -> ExportTarget:
        """Return the item of the view in front."""
        return self._offer(self._centre.columns[0].current_name)

    def _offer(self, name: str) -> ExportTarget:
        kinds = _PICTURES + (_FIGURES if self.figures(name) else ())
        if name in self._panels:
            title, panel = self._panels[name]
            return ExportTarget(name, title, kinds, panel.size())
        return ExportTarget(name, _title(name), kinds, self._column(name).stack.size())

    def figures(self, name: str) -> Table:
        """Return the table shown by a view or panel; empty if it has none."""
        return self._view(name).current_table()

    def image(self, name: str, options: PictureOptions) -> QImage:
        """Return a picture in pixels. Raises OSError if it is too large."""
        if name == WINDOW:
            return widget_pictures.render_widget(self._centre.window(), scale=options.scale)
        with self._subject(name) as subject:
            return render_view(subject, options)

    def save(self, name: str, path: Path, options: PictureOptions) -> None:
        """Write the item in the format of the path's suffix. Raises OSError."""
        with atomic_write(path) as part:
            self._write(name, part, options)

    def _write(self, name: str, path: Path, options: PictureOptions) -> None:
        kind = path.suffix.lower().removeprefix(".")
        if kind == HTML:
            self._save_page(path)
        elif kind in _FIGURES:
            write_table(self.figures(name), path, options.guard_formulas)
        elif name == WINDOW:
            widget_pictures.save_picture(self._centre.window(), path, scale=options.scale)
        else:
            with self._subject(name) as subject:
                save_view_picture(subject, path, options)

    def _save_page(self, path: Path) -> None:
        run = self._session.run
        assert run is not None, "a page is offered where there is a run"
        path.write_text(core.page_text(run.events), encoding="utf-8", errors="replace", newline="\n")

    @contextmanager
    def _subject(self, name: str) -> Iterator[PictureSubject]:
        """Bring the view to the front while its picture is taken, without repainting the window."""
        if name in self._panels:
            title, panel = self._panels[name]
            panel.bring_up_to_date()  # it may be hidden
            yield PictureSubject(title, panel, "panel")
            return
        column = self._column(name)
        before = column.current_name
        column.show_view(name)
        try:
            yield PictureSubject(_title(name), column.current_view)
        finally:
            column.show_view(before)

    def _column(self, name: str) -> ViewColumn:
        """Return the column that shows this view, else the first."""
        return next((column for column in self._centre.columns if column.current_name == name), self._centre.columns[0])

    def _view(self, name: str) -> View:
        return self._panels[name][1] if name in self._panels else self._column(name).view(name)


def _title(name: str) -> str:
    return tr(next(spec.title for spec in VIEWS if spec.name == name))
