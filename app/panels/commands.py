"""Every command of the program in one table, used by the menu bar, the command palette and the list of keys."""

from __future__ import annotations

from typing import NamedTuple

from decodescope.app.theme.language import SYSTEM
from decodescope.app.theme.palettes import SCHEMES
from decodescope.resources.language import LANGUAGES, mark, tr

FILE, EDIT, VIEW = mark("&File"), mark("&Edit"), mark("&View")
RUN, TOOLS, HELP = mark("&Run"), mark("&Tools"), mark("&Help")
MENUS = (FILE, EDIT, VIEW, RUN, TOOLS, HELP)
TEXT_SIZE, EXPLANATIONS, LANGUAGE, GO_TO = mark("Text size"), mark("Explanations"), mark("Language"), mark("Go to")
QUESTIONS = mark("Questions about runs")


class Command(NamedTuple):
    """A command. Its action is the entry of the same name in `app.window.command_table`."""

    name: str
    title: str
    menu: str
    section: int
    """Commands of one menu with the same number are grouped; separators are drawn between groups."""
    keys: tuple[str, ...] = ()
    menu_title: str = ""
    """A shorter title for the menu; empty where it is the same."""
    submenu: str = ""
    shown_key: str = ""
    """Key that the focused widget handles itself; the menu shows it without binding it."""
    about: str = ""
    """Description shown in the command palette."""

    @property
    def short_title(self) -> str:
        """Title used in the menu."""
        return self.menu_title or self.title


COMMANDS = (
    Command("new_text", mark("New text"), FILE, 0, ("Ctrl+N",),
            about=mark("Clears the prompt, or starts a new chat. Undo restores the prompt.")),
    Command("open_run", mark("Open recording…"), FILE, 1, ("Ctrl+Shift+O",)),
    Command("open_folder", mark("Open model folder…"), FILE, 1, ("Ctrl+O",)),
    Command("open_gguf", mark("Open GGUF file…"), FILE, 1),
    Command("add_adapter", mark("Add adapter…"), FILE, 1,
            about=mark("Adds a LoRA adapter saved by PEFT to the selected model.")),
    Command("add_gguf_adapter", mark("Add GGUF adapter…"), FILE, 1,
            about=mark("Adds a LoRA adapter of llama.cpp to the selected model.")),
    Command("open_preset", mark("Open settings file…"), FILE, 1),
    Command("import_chats", mark("Import chats…"), FILE, 1,
            about=mark("Opens chats of other programs: files of OpenAI, ShareGPT or ChatGPT's export.")),
    Command("save_run", mark("Save recording…"), FILE, 2, ("Ctrl+Shift+R",)),
    Command("save_preset", mark("Save settings as a preset…"), FILE, 2, ("Ctrl+S",)),
    Command("save_page", mark("Save the run as a web page…"), FILE, 2, menu_title=mark("Web page…"),
            about=mark("Saves the run as one page for any browser: the text, and why each token was chosen.")),
    Command("save_picture", mark("Export…"), FILE, 2, ("Ctrl+Shift+S",),
            about=mark("Saves or copies the run or a view as a web page, an image or a table.")),
    Command("export_chat", mark("Export this chat…"), FILE, 2,
            about=mark("Writes the open chat as JSON, with all answers and tokens, or as Markdown.")),
    Command("export_gguf", mark("Export model as GGUF…"), FILE, 2,
            about=mark("Writes the selected model as one file for llama.cpp, LM Studio or Ollama.")),
    Command("open_settings", mark("Settings…"), FILE, 3, ("Ctrl+,",)),
    Command("quit", mark("Quit"), FILE, 4, ("Ctrl+Q",)),
    Command("previous_run", mark("Undo"), EDIT, 0, ("Ctrl+Z",), about=mark("Goes back to the previous run.")),
    Command("next_run", mark("Redo"), EDIT, 0, ("Ctrl+Y", "Ctrl+Shift+Z"), about=mark("Goes to the next run.")),
    Command("cut", mark("Cut"), EDIT, 1, shown_key="Ctrl+X"),
    Command("copy", mark("Copy"), EDIT, 1, shown_key="Ctrl+C"),
    Command("paste", mark("Paste"), EDIT, 1, shown_key="Ctrl+V"),
    Command("select_all", mark("Select all"), EDIT, 1, shown_key="Ctrl+A"),
    Command("copy_text", mark("Copy text"), EDIT, 2, ("Ctrl+Shift+X",)),
    Command("copy_coloured", mark("Copy the text with colours"), EDIT, 2, ("Ctrl+Shift+H",)),
    Command("copy_picture", mark("Copy the view as an image"), EDIT, 2, ("Ctrl+Shift+P",)),
    Command("copy_code", mark("Copy as code…"), EDIT, 2, ("Ctrl+Shift+C",)),
    Command("open_palette", mark("Find a command…"), EDIT, 3, ("Ctrl+K",)),
    Command("find_run", mark("Find a past run…"), EDIT, 3, ("Ctrl+F",)),
    Command("split_views", mark("Show two views side by side"), VIEW, 1, menu_title=mark("Two views side by side")),
    Command("toggle_setup", mark("Show or hide prompt and parameters"), VIEW, 2, ("Ctrl+B",),
            mark("Prompt and parameters")),
    Command("toggle_inspector", mark("Show or hide the inspector"), VIEW, 2, ("Ctrl+I",), mark("Inspector")),
    Command("toggle_timeline", mark("Show or hide the timeline"), VIEW, 2, ("Ctrl+T",), mark("Timeline")),
    Command("enlarge_text", mark("Larger text"), VIEW, 3, ("Ctrl++", "Ctrl+="), submenu=TEXT_SIZE),
    Command("reduce_text", mark("Smaller text"), VIEW, 3, ("Ctrl+-",), submenu=TEXT_SIZE),
    Command("reset_text", mark("Normal text size"), VIEW, 3, ("Ctrl+0",), submenu=TEXT_SIZE),
    Command("plain_words", mark("Explain in plain words"), VIEW, 3, ("F7",), mark("Plain words"), EXPLANATIONS),
    Command("usual_words", mark("Explain in standard terms"), VIEW, 3, ("F8",), mark("Standard terms"),
            EXPLANATIONS),
    Command("exact_words", mark("Explain exactly, with all numbers"), VIEW, 3, ("F9",), mark("Exact terms"),
            EXPLANATIONS),
    Command("speak_as_system", mark("System language"), VIEW, 3, menu_title=mark("Follow the system"),
            submenu=LANGUAGE),
    Command("speak_english", mark("English"), VIEW, 3, submenu=LANGUAGE),
    Command("speak_chinese", mark("Chinese: 简体中文"), VIEW, 3, menu_title="简体中文", submenu=LANGUAGE),
    Command("next_room", mark("Next part of the window"), VIEW, 4, ("F6",), submenu=GO_TO),
    Command("previous_room", mark("Previous part of the window"), VIEW, 4, ("Shift+F6",), submenu=GO_TO),
    Command("open_menu", mark("Context menu of the selected token or node"), VIEW, 4, ("Shift+F10",), submenu=GO_TO),
    Command("full_screen", mark("Full screen"), VIEW, 5, ("F11",)),
    Command("present", mark("Present: one view, large, step by step"), VIEW, 5, ("F5",), mark("Presentation")),
    Command("run", mark("Run"), RUN, 0, ("Ctrl+Return", "Ctrl+Enter")),
    Command("escape", mark("Stop the run, or close what is open"), RUN, 0, ("Esc",), mark("Stop")),
    Command("run_again", mark("Run again with the same settings"), RUN, 0, ("Ctrl+R",), mark("Run again")),
    Command("branch", mark("Branch at the selected token…"), RUN, 1,
            about=mark("Continues the run with another word in place of the selected token.")),
    Command("score_text", mark("Score this text"), RUN, 1, ("Ctrl+Shift+E",),
            about=mark("Shows how likely the model finds the prompt text, without generating.")),
    Command("next_doubt", mark("Next uncertain step"), RUN, 1, ("Ctrl+J",)),
    Command("open_used_settings", mark("Settings used by this run…"), RUN, 1),
    Command("lock_seed", mark("Lock or unlock the seed"), RUN, 2, ("Ctrl+L",), mark("Lock seed")),
    Command("focus_prompt", mark("Go to the prompt"), RUN, 2, ("Ctrl+E",)),
    Command("choose_model", mark("Choose a model"), RUN, 2, ("Ctrl+M",)),
    Command("choose_strategy", mark("Choose a strategy"), RUN, 2, ("Ctrl+D",)),
    Command("choose_cache", mark("Choose a cache"), RUN, 2),
    Command("get_model", mark("Download a model…"), TOOLS, 0, ("Ctrl+Shift+M",)),
    Command("find_engines", mark("Find engines on this computer"), TOOLS, 0),
    Command("connect_engine", mark("Connect to an engine…"), TOOLS, 0),
    Command("serve_model", mark("Serve this model…"), TOOLS, 0,
            about=mark("Lets other programs on this computer use the model through the API of OpenAI.")),
    Command("toggle_history", mark("Show or hide the history"), TOOLS, 1, ("Ctrl+H",), mark("History")),
    Command("compare", mark("Compare strategies"), TOOLS, 1),
    Command("compare_temperatures", mark("Two temperatures side by side"), TOOLS, 1,
            about=mark("Runs the prompt twice with the same seed: once cautious, once adventurous.")),
    Command("guess_first", mark("Guess first: which word comes next?"), TOOLS, 1, ("Ctrl+G",), mark("Guess first")),
    Command("explain_difference", mark("Why do they differ?…"), TOOLS, 2,
            submenu=QUESTIONS,
            about=mark("Finds the first difference of two runs and its cause, step by step.")),
    Command("open_setting_effects", mark("What did each setting do?"), TOOLS, 2,
            submenu=QUESTIONS,
            about=mark("Says what each setting of the shown run removed, and how many words would differ without it.")),
    Command("open_atlas", mark("Atlas: all texts of one seed…"), TOOLS, 2,
            submenu=QUESTIONS,
            about=mark("Shows every text that a seed gives while temperature or another setting changes.")),
    Command("open_twin", mark("Twin: change one thing, keep the noise…"), TOOLS, 2,
            submenu=QUESTIONS,
            about=mark("Repeats the shown run with one change and the same random numbers: which words did it cause?")),
    Command("open_likelihood", mark("How likely is that? Probability of an answer"), TOOLS, 2,
            menu_title=mark("How likely is that?…"),
            submenu=QUESTIONS,
            about=mark("Computes sure bounds on the probability that the answer matches a text or a pattern.")),
    Command("open_setting_posterior", mark("Which settings wrote this text?"), TOOLS, 2,
            menu_title=mark("Which settings wrote this?…"),
            submenu=QUESTIONS,
            about=mark("Finds temperature, top-k, top-p and min-p of a text, as far as it can tell.")),
    Command("open_claims", mark("Claim cards: what papers say, tested on this model"), TOOLS, 2,
            menu_title=mark("Claim cards…"),
            submenu=QUESTIONS,
            about=mark("Tests published claims about strategies, filters and caches on the selected model.")),
    Command("open_studies", mark("Studies…"), TOOLS, 2,
            submenu=QUESTIONS,
            about=mark("Runs many prompts with many settings and seeds, and shows which did it and how sure that is.")),
    Command("open_scale", mark("Scale lab: one model on many devices"), TOOLS, 3, menu_title=mark("Scale lab…")),
    Command("open_preference_lab", mark("Preference lab…"), TOOLS, 3),
    Command("open_speed", mark("Speed lab: measure ways to lower latency"), TOOLS, 3,
            menu_title=mark("Speed lab…")),
    Command("open_plugins", mark("Plug-ins…"), TOOLS, 4,
            about=mark("Lists your own strategies and processors, and creates new ones.")),
    Command("record_demo", mark("Record a demo…"), TOOLS, 4,
            about=mark("Records the shown run as an animation, a video or a folder of images.")),
    Command("open_help", mark("Help"), HELP, 0, ("F1",)),
    Command("open_documentation", mark("Documentation"), HELP, 0,
            about=mark("Opens the guide, tutorials and reference. They are on this computer.")),
    Command("open_lessons", mark("Lessons…"), HELP, 0, ("Ctrl+Shift+L",),
            about=mark("Six lessons of ten minutes, alone or with a class, and a sheet to print.")),
    Command("choose_tour", mark("Guided tours…"), HELP, 0, ("Ctrl+Shift+T",)),
    Command("show_welcome", mark("Show the welcome page"), HELP, 0, menu_title=mark("Welcome page")),
    Command("open_shortcuts", mark("Keyboard shortcuts"), HELP, 1, ("Ctrl+/",)),
    Command("open_glossary", mark("Glossary of technical terms"), HELP, 1, ("Shift+F1",), mark("Glossary")),
    Command("copy_diagnostics", mark("Copy diagnostics"), HELP, 2,
            about=mark("Copies versions, system, model and settings as text for a bug report. Nothing is sent.")),
    Command("about", mark("About Decodescope"), HELP, 3),
)  # fmt: skip
"""All commands, in menu order. No key has Ctrl and Alt: on Windows AltGr is both, and writes letters with them."""


class Shortcut(NamedTuple):
    """Keyboard shortcut; `action` is the command's name (`app.panels.commands`), or empty for a view's own keys."""

    keys: tuple[str, ...]
    title: str
    group: str
    action: str = ""

    @property
    def label(self) -> str:
        """The keys as displayed; alternative names of the same key are left out."""
        names = (tr(key).replace("Return", "Enter") for key in self.keys if key not in _ALTERNATIVE_KEYS)
        return tr(" or ").join(names)


_ALTERNATIVE_KEYS = ("Ctrl+Enter", "Ctrl+=")
_MENU_GROUPS = {FILE: mark("File"), EDIT: mark("Edit"), VIEW: mark("View"), RUN: mark("Run"), TOOLS: mark("Tools"),
                   HELP: mark("Help")}  # fmt: skip
_COMMANDS = tuple(
    Shortcut(command.keys or tuple(filter(None, (command.shown_key,))), command.title, _MENU_GROUPS[command.menu],
             command.name)
    for command in COMMANDS
)  # fmt: skip
SHORTCUTS = (
    *_COMMANDS,
    Shortcut(("Ctrl+1 … Ctrl+9",), mark("Show view by number"), mark("Views")),
    Shortcut(("Left", "Right"), mark("Previous or next token"), mark("Views")),
    Shortcut(("Home", "End"), mark("First and last token"), mark("Views")),
    Shortcut((mark("Shift+Arrow keys"),), mark("Select text token by token"), mark("Views")),
    Shortcut((mark("Arrow keys"),), mark("In a tree: parent, child, sibling"), mark("Views")),
    Shortcut(("Return",), mark("In a tree: fold or unfold"), mark("Views")),
    Shortcut(("+", "-"), mark("In a tree: zoom"), mark("Views")),
    Shortcut(("Space",), mark("Play and pause the timeline"), mark("Views")),
    Shortcut(("Space",), mark("Play and pause"), mark("Presenting")),
    Shortcut(("PgDown", "PgUp"), mark("One step forward or back; also with a clicker"), mark("Presenting")),
    Shortcut(("+", "-"), mark("Faster, slower"), mark("Presenting")),
    Shortcut(("P",), mark("Presenter window: notes, next step, time"), mark("Presenting")),
    Shortcut(("Ctrl+PgDown", "Ctrl+PgUp"), mark("Next or previous view"), mark("Presenting")),
    Shortcut(("0 … 9", "Return"), mark("When a question is open: hands for a choice, next choice"), mark("Presenting")),
    Shortcut(("A … D",), mark("When a question is open: go to a choice"), mark("Presenting")),
)
MAX_VIEW_KEYS = 9


def key_of(action: str) -> str:
    """Return the first key of a command, for menus and tooltips; empty if it has none."""
    return next((command.keys[0] for command in COMMANDS if command.name == action and command.keys), "")


def scheme_titles() -> tuple[tuple[str, str], ...]:
    """Return (choice, English title) of every theme."""
    return tuple(zip(SCHEMES, (mark("Follow the system"), mark("Light"), mark("Dark")), strict=True))


def language_titles() -> tuple[tuple[str, str], ...]:
    """Return (choice, title) of every language, each in its own language so that its speakers recognise it."""
    return ((SYSTEM, mark("Follow the system")), *LANGUAGES.items())
