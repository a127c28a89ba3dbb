"""Every key in one table: the window binds those with an action, the list of shortcuts shows all."""

from __future__ import annotations

from typing import NamedTuple

from resources.language import mark, tr


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
        names = (tr(key).replace("Return", "Enter") for key in self.keys if key not in _SECOND_NAMES)
        return tr(" or ").join(names)


_SECOND_NAMES = ("Ctrl+Enter", "Ctrl+=")
SHORTCUTS = (
    Shortcut(("Ctrl+Return", "Ctrl+Enter"), mark("Run"), mark("Run"), "run"),
    Shortcut(("Esc",), mark("Close what is open, or stop the run"), mark("Run"), "escape"),
    Shortcut(("Ctrl+R",), mark("Run the same again"), mark("Run"), "run_again"),
    Shortcut(("Ctrl+Shift+E",), mark("Score this text"), mark("Run"), "score_text"),
    Shortcut(("Ctrl+Z",), mark("Back to the previous run"), mark("Run"), "previous_run"),
    Shortcut(("Ctrl+Y", "Ctrl+Shift+Z"), mark("On to the next run"), mark("Run"), "next_run"),
    Shortcut(("Ctrl+L",), mark("Lock or unlock the seed"), mark("Run"), "lock_seed"),
    Shortcut(("Ctrl+K",), mark("Find and do anything…"), mark("Go to"), "open_palette"),
    Shortcut(("Ctrl+Shift+T",), mark("Guided tours…"), mark("Go to"), "choose_tour"),
    Shortcut(("Ctrl+G",), mark("Guess first: which word comes next?"), mark("Go to"), "guess_first"),
    Shortcut(("Ctrl+J",), mark("On to the next of the most doubtful steps"), mark("Go to"), "next_doubt"),
    Shortcut(("F6",), mark("On to the next part of the window"), mark("Go to"), "next_room"),
    Shortcut(("Shift+F6",), mark("Back to the part before"), mark("Go to"), "previous_room"),
    Shortcut(("Ctrl+E",), mark("Go to the prompt"), mark("Go to"), "focus_prompt"),
    Shortcut(("Ctrl+M",), mark("Choose a model"), mark("Go to"), "choose_model"),
    Shortcut(("Ctrl+D",), mark("Choose a strategy"), mark("Go to"), "choose_strategy"),
    Shortcut(("Ctrl+Shift+M",), mark("Get a model…"), mark("Go to"), "get_model"),
    Shortcut((), mark("Connect to an engine…"), mark("Go to"), "connect_engine"),
    Shortcut((), mark("Preference lab…"), mark("Go to"), "open_preference_lab"),
    Shortcut(("Ctrl+O",), mark("Open a model folder…"), mark("Go to"), "open_folder"),
    Shortcut(("Ctrl+Shift+O",), mark("Open a recorded run…"), mark("Go to"), "open_run"),
    Shortcut(("Ctrl+Shift+R",), mark("Save this run…"), mark("Go to"), "save_run"),
    Shortcut(("Ctrl+S",), mark("Save the settings as a preset…"), mark("Go to"), "save_preset"),
    Shortcut((), mark("Scale lab: a model on many devices"), mark("Go to"), "open_scale"),
    Shortcut((), mark("Speed lab: the ways to lower latency, measured"), mark("Go to"), "open_speed"),
    Shortcut(("Ctrl+H",), mark("Show or hide the history"), mark("Window"), "toggle_history"),
    Shortcut(("Ctrl+Shift+S",), mark("Save or copy what is shown…"), mark("Take along"), "save_picture"),
    Shortcut(("Ctrl+Alt+P",), mark("Copy a picture of the view"), mark("Take along"), "copy_picture"),
    Shortcut(("Ctrl+Alt+C",), mark("Copy the text"), mark("Take along"), "copy_text"),
    Shortcut(("Ctrl+Alt+Shift+C",), mark("Copy the text with its colours"), mark("Take along"), "copy_coloured"),
    Shortcut(("Ctrl+Shift+C",), mark("Copy the run as code…"), mark("Take along"), "copy_code"),
    Shortcut(("Ctrl+B",), mark("Show or hide prompt and parameters"), mark("Window"), "toggle_setup"),
    Shortcut(("Ctrl+I",), mark("Show or hide the inspector"), mark("Window"), "toggle_inspector"),
    Shortcut(("Ctrl+T",), mark("Show or hide the timeline"), mark("Window"), "toggle_timeline"),
    Shortcut(("F5",), mark("Present: one view, large, step by step"), mark("Window"), "present"),
    Shortcut(("Ctrl++", "Ctrl+="), mark("Larger text"), mark("Window"), "enlarge_text"),
    Shortcut(("Ctrl+-",), mark("Smaller text"), mark("Window"), "reduce_text"),
    Shortcut(("Ctrl+0",), mark("Text at its normal size"), mark("Window"), "reset_text"),
    Shortcut(("Ctrl+Alt+1",), mark("Explain in plain words"), mark("Window"), "plain_words"),
    Shortcut(("Ctrl+Alt+2",), mark("Explain in the usual words"), mark("Window"), "usual_words"),
    Shortcut(("Ctrl+Alt+3",), mark("Explain exactly, with every figure"), mark("Window"), "exact_words"),
    Shortcut(("Ctrl+,",), mark("Settings…"), mark("Window"), "open_settings"),
    Shortcut((), mark("Settings used by this run…"), mark("Window"), "open_used_settings"),
    Shortcut((), mark("The language of the system"), mark("Window"), "speak_as_system"),
    Shortcut((), mark("English"), mark("Window"), "speak_english"),
    Shortcut((), mark("Chinese: 简体中文"), mark("Window"), "speak_chinese"),
    Shortcut(("Shift+F1",), mark("Glossary: the words of the field"), mark("Window"), "open_glossary"),
    Shortcut((), mark("Record a demo…"), mark("Window"), "record_demo"),
    Shortcut((), mark("Show the first page"), mark("Window"), "show_welcome"),
    Shortcut(("F1",), mark("This list"), mark("Window"), "open_shortcuts"),
    Shortcut(("Ctrl+Q",), mark("Quit"), mark("Window"), "quit"),
    Shortcut(("Ctrl+1 … Ctrl+9",), mark("Show that view"), mark("Views")),
    Shortcut(("Left", "Right"), mark("Walk along the tokens"), mark("Views")),
    Shortcut(("Home", "End"), mark("First and last token"), mark("Views")),
    Shortcut((mark("Shift+Arrow keys"),), mark("Select text along the tokens"), mark("Views")),
    Shortcut(("Ctrl+C",), mark("Copy the selected text, or the picked token"), mark("Views")),
    Shortcut((mark("Arrow keys"),), mark("In a tree: parent, child, sibling"), mark("Views")),
    Shortcut(("Return",), mark("In a tree: fold or unfold"), mark("Views")),
    Shortcut(("+", "-"), mark("In a tree: zoom"), mark("Views")),
    Shortcut(
        ("Shift+F10",), mark("The menu of the picked token or node, as by the Menu key"), mark("Views"), "open_menu"
    ),
    Shortcut(("Space",), mark("Play and pause the timeline"), mark("Views")),
    Shortcut(("Space",), mark("Play and pause"), mark("Presenting")),
    Shortcut(("PgDown", "PgUp"), mark("A step on, a step back; a clicker's keys"), mark("Presenting")),
    Shortcut(("+", "-"), mark("Faster, slower"), mark("Presenting")),
    Shortcut(("P",), mark("The presenter's page: notes, what comes next, the time"), mark("Presenting")),
    Shortcut(("Ctrl+PgDown", "Ctrl+PgUp"), mark("The next view, the one before"), mark("Presenting")),
)
MOST_VIEW_KEYS = 9


def key_of(action: str) -> str:
    """The first key of a window's action, for menus and tooltips; empty when it has none."""
    return next((shortcut.keys[0] for shortcut in SHORTCUTS if shortcut.action == action and shortcut.keys), "")
