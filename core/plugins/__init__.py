"""Plug-ins: strategies, processors, caches, drafters and measures from files and installed packages.

    decodescope.plugins.use("ban_vowels.py")                          # or a LogitsProcessor class, or a registry entry
    decodescope.plugins.use("my_decoding")                            # a folder with custom_generate/generate.py
    decodescope.plugins.install(decodescope.plugins.PluginFolder().load())   # what is switched on in the window

Code of a plug-in runs with the rights of the program. Its errors do not end the program: they are raised as
`PluginError` with file and line.
"""

from decodescope.core.plugins.generate_folder import find_generate_folder
from decodescope.core.plugins.installation import install, installed, use, used_plugins
from decodescope.core.plugins.plugin import Plugin, PluginEntry
from decodescope.core.plugins.plugin_folder import PluginFolder, TemplateKind

__all__ = [
    "Plugin", "PluginEntry", "PluginFolder", "TemplateKind", "find_generate_folder", "install", "installed", "use",
    "used_plugins",
]  # fmt: skip
