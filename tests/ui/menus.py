"""Find faults of menus: useless separators and entries without text."""

from __future__ import annotations

from itertools import pairwise

from PySide6.QtWidgets import QMenu


def menu_faults(menu: QMenu) -> list[str]:
    """Sentences on what is wrong with the menu and its submenus, as they would be shown."""
    shown = [action for action in menu.actions() if action.isVisible()]
    name = menu.objectName() or menu.title() or "a menu"
    found = []
    if not shown:
        return []
    if shown[0].isSeparator():
        found.append(f"{name} begins with a separator")
    if shown[-1].isSeparator():
        found.append(f"{name} ends with a separator")
    if any(one.isSeparator() and other.isSeparator() for one, other in pairwise(shown)):
        found.append(f"{name} has two separators in a row")
    found += [f"{name} has a line without text" for line in shown if not line.isSeparator() and not line.text().strip()]
    for line in shown:
        submenu = line.menu()
        if isinstance(submenu, QMenu):
            found += menu_faults(submenu)
    return found
