"""The recipe's modules are found through their folder: `packaging` is no package."""

import sys
from pathlib import Path

RECIPE = Path(__file__).resolve().parents[2] / "packaging" / "recipe"
if str(RECIPE) not in sys.path:
    sys.path.append(str(RECIPE))
