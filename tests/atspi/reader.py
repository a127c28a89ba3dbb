"""A minimal screen reader, run by the system's Python: finds the program, presses Run, reads the text.

Prints a line of JSON: what it found on its way. Needs python3-gi and gir1.2-atspi-2.0, and a session with a screen.
"""

import json
import sys
import time

import gi

gi.require_version("Atspi", "2.0")
from gi.repository import Atspi, GLib  # noqa: E402

ROLES = Atspi.Role
TOKENS = 12
"""How many the run writes."""


def wait_for(what, seconds=60.0):
    """The first thing that `what` gives back; None when the time is over."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if found := what():
                return found
        except GLib.Error:
            pass  # it went away while it was looked at
        GLib.MainContext.default().iteration(False)
        time.sleep(0.2)  # constant requests would keep the program busy
    return None


def below(node, depth=40):
    """Everything in the tree below `node`, itself first."""
    yield node
    for number in range(node.get_child_count() if depth else 0):
        child = node.get_child_at_index(number)
        if child is not None:
            yield from below(child, depth - 1)


def find(root, role, name):
    """Return the first node of that role and name."""
    return next((n for n in below(root) if n.get_role() == role and n.get_name() == name), None)


def text_of(node):
    """Return the text of a node."""
    return Atspi.Text.get_text(node, 0, Atspi.Text.get_character_count(node))


def main():
    """Walk, press, read."""
    received = []
    listener = Atspi.EventListener.new(lambda event: received.append(str(event.any_data)))
    listener.register("object:announcement")
    desktop = Atspi.get_desktop(0)
    window = wait_for(lambda: find(desktop, ROLES.FRAME, "Decodescope"))
    run = wait_for(lambda: find(window, ROLES.PUSH_BUTTON, "Run"))
    page = wait_for(lambda: find(window, ROLES.TEXT, "Generated text"))
    before = text_of(page)
    Atspi.Action.do_action(run, 0)
    wait_for(lambda: page.get_child_count() == TOKENS and run.get_name() == "Run")
    written = text_of(page)
    named = {(node.get_role_name(), node.get_name()) for node in below(window)}
    strategy = find(window, ROLES.COMBO_BOX, "Strategy")
    word = Atspi.Text.get_string_at_offset(page, written.find("upon"), Atspi.TextGranularity.WORD).content
    wait_for(lambda: received, 3.0)
    print(json.dumps({
        "before": before, "written": written, "word": word, "tokens": page.get_child_count(), "heard": received,
        "first": page.get_child_at_index(0).get_name() if page.get_child_count() else "",
        "strategy": strategy is not None, "nodes": len(named),
    }))  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
