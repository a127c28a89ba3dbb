"""Every key in one table: the window binds those with an action, the list of shortcuts shows all."""

from __future__ import annotations

from typing import NamedTuple

from resources.language import mark


class Shortcut(NamedTuple):
    """`action` is the name of an action (`app.window.actions`); empty for a view's own keys. An action without keys is
    found in the command palette by its title."""

    keys: tuple[str, ...]
    title: str
    group: str
    action: str = ""

    @property
    def label(self) -> str:
        """The keys as people read them; second names of the same key are left out."""
        return " or ".join(key.replace("Return", "Enter") for key in self.keys if key not in _SECOND_NAMES)


_SECOND_NAMES = ("Ctrl+Enter", "Ctrl+=")
SHORTCUTS = (
    Shortcut(("Ctrl+Return", "Ctrl+Enter"), "Run", "Run", "run"),
    Shortcut(("Esc",), "Close what is open, or stop the run", "Run", "escape"),
    Shortcut(("Ctrl+R",), "Run the same again", "Run", "run_again"),
    Shortcut(("Ctrl+Shift+E",), "Score this text", "Run", "score_text"),
    Shortcut(("Ctrl+Z",), "Back to the previous run", "Run", "previous_run"),
    Shortcut(("Ctrl+Y", "Ctrl+Shift+Z"), "On to the next run", "Run", "next_run"),
    Shortcut(("Ctrl+L",), "Lock or unlock the seed", "Run", "lock_seed"),
    Shortcut(("Ctrl+K",), mark("Find and do anything…"), "Go to", "open_palette"),
    Shortcut(("Ctrl+E",), "Go to the prompt", "Go to", "focus_prompt"),
    Shortcut(("Ctrl+M",), "Choose a model", "Go to", "choose_model"),
    Shortcut(("Ctrl+D",), "Choose a strategy", "Go to", "choose_strategy"),
    Shortcut(("Ctrl+O",), "Open a model folder…", "Go to", "open_folder"),
    Shortcut(("Ctrl+Shift+O",), "Open a recorded run…", "Go to", "open_run"),
    Shortcut(("Ctrl+Shift+R",), "Save this run…", "Go to", "save_run"),
    Shortcut(("Ctrl+S",), "Save the settings as a preset…", "Go to", "save_preset"),
    Shortcut(("Ctrl+H",), "Show or hide the history", "Window", "toggle_history"),
    Shortcut(("Ctrl+Shift+S",), "Save or copy what is shown…", "Take along", "save_picture"),
    Shortcut(("Ctrl+Alt+P",), "Copy a picture of the view", "Take along", "copy_picture"),
    Shortcut(("Ctrl+Alt+C",), "Copy the text", "Take along", "copy_text"),
    Shortcut(("Ctrl+Alt+Shift+C",), "Copy the text with its colours", "Take along", "copy_coloured"),
    Shortcut(("Ctrl+Shift+C",), "Copy the run as code…", "Take along", "copy_code"),
    Shortcut(("Ctrl+B",), "Show or hide prompt and parameters", "Window", "toggle_setup"),
    Shortcut(("Ctrl+I",), "Show or hide the inspector", "Window", "toggle_inspector"),
    Shortcut(("Ctrl+T",), "Show or hide the timeline", "Window", "toggle_timeline"),
    Shortcut(("F5",), "Present: one view, large, step by step", "Window", "present"),
    Shortcut(("Ctrl++", "Ctrl+="), "Larger text", "Window", "enlarge_text"),
    Shortcut(("Ctrl+-",), "Smaller text", "Window", "reduce_text"),
    Shortcut(("Ctrl+0",), "Text at its normal size", "Window", "reset_text"),
    Shortcut(("Ctrl+Alt+1",), "Explain in plain words", "Window", "plain_words"),
    Shortcut(("Ctrl+Alt+2",), "Explain in the usual words", "Window", "usual_words"),
    Shortcut(("Ctrl+Alt+3",), "Explain exactly, with every figure", "Window", "exact_words"),
    Shortcut(("Ctrl+,",), "Settings…", "Window", "open_settings"),
    Shortcut((), mark("Settings used by this run…"), "Window", "open_used_settings"),
    Shortcut((), mark("The language of the system"), "Window", "speak_as_system"),
    Shortcut((), mark("English"), "Window", "speak_english"),
    Shortcut((), mark("Chinese: 简体中文"), "Window", "speak_chinese"),
    Shortcut(("Shift+F1",), mark("Glossary: the words of the field"), "Window", "open_glossary"),
    Shortcut((), mark("Show the first page"), "Window", "show_welcome"),
    Shortcut(("F1",), "This list", "Window", "open_shortcuts"),
    Shortcut(("Ctrl+Q",), "Quit", "Window", "quit"),
    Shortcut(("Ctrl+1 … Ctrl+9",), "Show that view", "Views"),
    Shortcut(("Left", "Right"), "Walk along the tokens", "Views"),
    Shortcut(("Home", "End"), "First and last token", "Views"),
    Shortcut(("Shift+Arrow keys",), "Select text along the tokens", "Views"),
    Shortcut(("Ctrl+C",), "Copy the selected text, or the picked token", "Views"),
    Shortcut(("Arrow keys",), "In a tree: parent, child, sibling", "Views"),
    Shortcut(("Return",), "In a tree: fold or unfold", "Views"),
    Shortcut(("+", "-"), "In a tree: zoom", "Views"),
    Shortcut(("Space",), "Play and pause the timeline", "Views"),
    Shortcut(("Space",), "Play and pause", "Presenting"),
    Shortcut(("PgDown", "PgUp"), "A step on, a step back; a clicker's keys", "Presenting"),
    Shortcut(("+", "-"), "Faster, slower", "Presenting"),
    Shortcut(("P",), "The presenter's page: notes, what comes next, the time", "Presenting"),
    Shortcut(("Ctrl+PgDown", "Ctrl+PgUp"), "The next view, the one before", "Presenting"),
)
MOST_VIEW_KEYS = 9


def key_of(action: str) -> str:
    """The first key of a window's action, for menus and tooltips; empty when it has none."""
    return next((shortcut.keys[0] for shortcut in SHORTCUTS if shortcut.action == action and shortcut.keys), "")
