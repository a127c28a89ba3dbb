"""Documentation window: guide, tutorials and reference, read from this computer without a browser or a network."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from PySide6.QtCore import QByteArray, Qt, QUrl, Slot
from PySide6.QtGui import (
    QColor,
    QDesktopServices,
    QImage,
    QPalette,
    QResizeEvent,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextFormat,
)
from PySide6.QtWidgets import (
    QDialogButtonBox,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QTextBrowser,
    QVBoxLayout,
    QWidget,
)

from decodescope.app.state import guide_pages
from decodescope.app.theme.theme import Theme
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.dialog import BaseDialog
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import as_plain_text
from decodescope.resources.language import tr

_WIDTH, _HEIGHT = 1000, 700
_MAX_PICTURE_WIDTH, _PICTURE_MARGIN = 620, 30
"""Width of a picture on a page, and its margin, in pixels."""
_PARAGRAPH_MARGIN = 7
"""Pixels below a paragraph, which Qt's Markdown reader leaves out."""
_SECTIONS = ("guide", "tutorials", "guide/strategies", "guide/caches", "guide/views", "")
"""Folders of the pages, in the order of the list."""
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_PAGE, _TEXT = Qt.ItemDataRole.UserRole, Qt.ItemDataRole.UserRole + 1


def documentation_pages(folder: Path, language: str) -> list[Path]:
    """Return the pages in a language, the first page of the guide first; those that have no translation in English.

    `folder` is `docs` of a checkout, or its copy in an installed program.
    """
    found: list[Path] = []
    for section in _SECTIONS:
        written = {page.relative_to(folder).as_posix() for page in (folder / section).glob("*.md")}
        generated = {name for name in guide_pages.entry_pages() if PurePosixPath(name).parent.as_posix() == section}
        names = sorted(written | generated, key=lambda name: (not name.endswith("README.md"), name))
        shown = (guide_pages.find_page(folder, guide_pages.localized_name(name, language)) for name in names)
        found += [folder / name for name in shown]
    return [page for page in found if not page.name.startswith("faults-")]


class DocumentationBrowser(QTextBrowser):
    """Shows Markdown pages below a folder. Nothing is loaded from elsewhere; web links open in the browser."""

    def __init__(self, folder: Path, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._folder = folder.resolve()
        self.setOpenLinks(False)
        flags = Qt.TextInteractionFlag  # Tab goes on to the buttons, not through all links: the list has every page
        self.setTextInteractionFlags(
            flags.TextSelectableByMouse | flags.TextSelectableByKeyboard | flags.LinksAccessibleByMouse
        )
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)  # pictures are as wide as the rest
        self.anchorClicked.connect(self.follow)
        self.sourceChanged.connect(self.style_page)
        self.setAccessibleName(tr("Documentation"))

    @property
    def page(self) -> Path:
        """The page that is shown."""
        return Path(self.source().toLocalFile())

    def show_page(self, page: Path) -> None:
        """Show a page from its top."""
        if page != self.page:
            self.setSource(QUrl.fromLocalFile(str(page)))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the pictures into the new width."""
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width() and not self.source().isEmpty():
            position = self.verticalScrollBar().value()
            self.reload()
            self.style_page()
            self.verticalScrollBar().setValue(position)

    @Slot()
    def style_page(self) -> None:
        """Put space between paragraphs, and colour links as everywhere in the window."""
        cursor, space, link = QTextCursor(self.document()), QTextBlockFormat(), QTextCharFormat()
        space.setBottomMargin(_PARAGRAPH_MARGIN)
        link.setForeground(self.palette().color(QPalette.ColorRole.Link))
        block = self.document().begin()
        while block.isValid():
            if not block.blockFormat().hasProperty(QTextFormat.Property.BlockCodeFence):
                cursor.setPosition(block.position())
                cursor.mergeBlockFormat(space)
            for start, length in _links_of(block):
                cursor.setPosition(start)
                cursor.setPosition(start + length, QTextCursor.MoveMode.KeepAnchor)
                cursor.mergeCharFormat(link)
            block = block.next()

    @Slot(QUrl)
    def follow(self, link: QUrl) -> None:
        """Open a link of the page: another page, or an address in the browser."""
        if link.scheme() in ("http", "https"):
            QDesktopServices.openUrl(link)
            return
        page = self._file_of(link)
        if page is not None and page.suffix == ".md":
            self.setSource(QUrl.fromLocalFile(str(page)))

    def loadResource(self, kind: int, address: QUrl | str) -> object:
        """Return a page or a picture below the folder, and nothing for any other address."""
        file = self._file_of(QUrl(address))
        if file is None:
            return QByteArray()
        if file.suffix == ".md":
            return QByteArray(_without_comments(self.page_text(file)).encode())
        image, width = QImage(str(file)), min(_MAX_PICTURE_WIDTH, self.viewport().width() - _PICTURE_MARGIN)
        if image.width() <= width:
            return image
        return image.scaledToWidth(width, Qt.TransformationMode.SmoothTransformation)

    def page_text(self, page: Path) -> str:
        """Return the Markdown of a page below the folder, which may be generated."""
        return guide_pages.page_text(self._folder, page.resolve().relative_to(self._folder).as_posix())

    def _file_of(self, address: QUrl) -> Path | None:
        """Return the file that an address on the page names; None if it lies outside the folder or does not exist.

        A page without a translation is the English one. That of a strategy or cache exists without a file.
        """
        path = Path(self.source().resolved(address).toLocalFile()).resolve()
        if not path.is_relative_to(self._folder):
            return None
        if path.suffix != ".md":
            return path if path.is_file() else None
        name = guide_pages.find_page(self._folder, path.relative_to(self._folder).as_posix())
        return self._folder / name if name else None


def _links_of(block: QTextBlock) -> list[tuple[int, int]]:
    """Return position and length of each link in a paragraph."""
    found, parts = [], block.begin()
    while not parts.atEnd():
        part = parts.fragment()
        if part.charFormat().isAnchor():
            found.append((part.position(), part.length()))
        parts += 1
    return found


def _without_comments(text: str) -> str:
    """Return Markdown without HTML comments, which Qt would show."""
    return re.sub(r"<!--.*?-->\n?", "", text, flags=re.DOTALL)


class DocumentationDialog(BaseDialog):
    """The list of pages, those that contain the words of the search field, and the page that is selected."""

    def __init__(self, folder: Path, language: str, parent: QWidget | None = None) -> None:
        super().__init__(parent, "documentation", tr("Documentation"))
        self.field = set_up(QLineEdit(self), name="documentationField", accessible_name=tr("Search the documentation"))
        self.field.setPlaceholderText(tr("Words on a page"))
        self.field.setClearButtonEnabled(True)
        self.list = set_up(QListWidget(self), name="documentationList", accessible_name=tr("Pages"))
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setWordWrap(True)
        self.list.setSpacing(2)  # so that wrapped titles stay apart
        self.no_matches = set_up(WrappedLabel(tr("No matches. Try a shorter search."), self), role="muted")
        self.no_matches.hide()
        self.browser = DocumentationBrowser(folder, self)
        self._back = QPushButton(tr("Back"), self)
        self._back.setAutoDefault(False)
        self._back.setEnabled(False)
        for page in documentation_pages(folder, language):
            self._add(page)
        self._lay_out()
        self.field.textChanged.connect(self._search)
        self.list.currentItemChanged.connect(self._show_selected)
        self._back.clicked.connect(self.browser.backward)
        self.browser.backwardAvailable.connect(self._back.setEnabled)
        self.browser.sourceChanged.connect(self._select_shown)
        self.list.setCurrentRow(0)

    def restyle(self, theme: Theme) -> None:
        """Use the theme's font and colour of links for the pages."""
        palette = self.browser.palette()
        palette.setColor(QPalette.ColorRole.Link, QColor(theme.accent))
        self.browser.setPalette(palette)
        self.browser.document().setDefaultFont(theme.font(15))
        self.browser.reload()
        self.browser.style_page()

    def _add(self, page: Path) -> None:
        text = self.browser.page_text(page)
        title = _TITLE.search(text)
        item = QListWidgetItem(as_plain_text(title[1] if title else page.stem))
        item.setData(_PAGE, str(page))
        item.setData(_TEXT, text.casefold())
        self.list.addItem(item)

    def _lay_out(self) -> None:
        buttons = QDialogButtonBox(self)
        buttons.addButton(self._back, QDialogButtonBox.ButtonRole.ActionRole)
        buttons.addButton(QDialogButtonBox.StandardButton.Close).setAutoDefault(False)
        buttons.rejected.connect(self.close)
        left = arrange(QVBoxLayout(), self.field, (self.list, 1), self.no_matches)
        both = arrange(QHBoxLayout(), (left, 1), (self.browser, 3), spacing=18)
        arrange(QVBoxLayout(self), (both, 1), buttons, margins=(20, 16, 20, 16), spacing=12)
        self.resize(_WIDTH, _HEIGHT)

    @Slot(str)
    def _search(self, text: str) -> None:
        """List the pages that contain every word, and show the first of them."""
        words = text.casefold().split()
        rows = [self.list.item(row) for row in range(self.list.count())]
        for item in rows:
            item.setHidden(not all(word in item.data(_TEXT) for word in words))
        shown = [item for item in rows if not item.isHidden()]
        self.no_matches.setVisible(not shown)
        if shown and self.list.currentItem() not in shown:
            self.list.setCurrentItem(shown[0])

    @Slot()
    def _show_selected(self) -> None:
        item = self.list.currentItem()
        if item is not None:
            self.browser.show_page(Path(item.data(_PAGE)))

    @Slot(QUrl)
    def _select_shown(self, source: QUrl) -> None:
        """Select the page in the list that a link or the Back button has opened."""
        for row in range(self.list.count()):
            if self.list.item(row).data(_PAGE) == source.toLocalFile():
                self.list.setCurrentRow(row)
