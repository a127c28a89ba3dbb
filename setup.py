"""The build step that pyproject.toml cannot describe: compile the translation catalogues."""

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).resolve().parent))

from resources.catalogs import compile_catalogs


class BuildWithCatalogs(build_py):
    """Compile the catalogues before the package's data files are listed."""

    def run(self) -> None:
        compile_catalogs()
        super().run()


setup(cmdclass={"build_py": BuildWithCatalogs})
