"""A session of many rounds in one window, which prints after each round what its process holds.

`python -m tests.ui.soak_session FOLDER MINUTES` writes its files into FOLDER. Each line is a JSON object: the sample
after a round, and at last what there is more of than after the first third of the rounds.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from tests.ui.scripted_user import ScriptedUser

MIN_ROUNDS = 6
"""Rounds of a session, however short: fewer say nothing."""
ALLOWED_GROWTH = {"memory": 0.03, "Python objects": 0.01, "QObjects": 0.005}
"""Growth between the second and the last third of a session that is no leak, as a share; of all else nothing is."""
DEAD = "dead wrappers"
Sample = Mapping[str, int]


def growth(samples: Sequence[Sample]) -> dict[str, tuple[float, float]]:
    """Return what grows: its median over the second third of the samples, and over the last one.

    The first third, in which caches fill and modules are imported, is left out. A median ignores single peaks, such as
    a thread that is just ending.
    """
    third = len(samples) // 3
    parts = samples[third : 2 * third], samples[2 * third :]
    found = {}
    for name in samples[0]:
        before, after = (statistics.median(sample[name] for sample in part) for part in parts)
        if after > before * (1 + ALLOWED_GROWTH.get(name, 0.0)):
            found[name] = (before, after)
    return found


def take_sample() -> dict[str, int]:
    """Return what a process could run out of."""
    process, objects, widgets = psutil.Process(), python_objects(), qobjects()
    return {
        "memory": process.memory_info().rss,
        "Python objects": sum(objects.values()) - objects[DEAD],
        "QObjects": sum(widgets.values()),
        "threads": threading.active_count(),
        "native threads": process.num_threads(),
        "descriptors": process.num_handles() if sys.platform == "win32" else process.num_fds(),
        "temporary files": len(os.listdir(tempfile.gettempdir())),
    }


def qobjects() -> Counter[str]:
    """Return the number of living QObjects with a Python object, by class: all widgets, controllers, models, timers."""
    from PySide6.QtCore import QObject
    from shiboken6 import isValid

    return Counter(type(found).__name__ for found in gc.get_objects() if isinstance(found, QObject) and isValid(found))


def python_objects() -> Counter[str]:
    """Return the number of Python objects that the garbage collector tracks, by class.

    PySide keeps the empty shells of widgets that Qt itself had created and deleted, as the parts of an editor.
    A change of the language, which builds the window again, leaves some hundred of them; they are counted as `DEAD`.
    """
    from PySide6.QtCore import QObject
    from shiboken6 import isValid

    return Counter(
        DEAD if isinstance(found, QObject) and not isValid(found)
        else f"{type(found).__module__}.{type(found).__qualname__}"
        for found in gc.get_objects()
    )  # fmt: skip


def use_round(user: ScriptedUser, number: int) -> Iterator[str]:
    """Use every feature once, with other caches in each round."""
    from decodescope import core

    caches = list(core.caches.registry)
    place = number % len(caches)
    yield from user.run_all([*caches[place:], *caches[:place]])
    yield from user.run("sampling")
    yield from user.look_at_the_run()
    yield from user.export()
    yield from user.replay()
    yield from user.branch()
    yield from user.score()
    yield from user.guess()
    yield from user.stop_a_run()
    yield from user.chat()
    yield from user.switch_models()
    yield from user.use_plugins()
    yield from user.receive_live_run()
    yield from user.use_the_core()
    yield from user.open_dialogs()
    yield from user.change_appearance()
    yield from user.search_history()


def main() -> int:
    """Run the session and return 0; an exception ends it."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    folder, minutes = Path(sys.argv[1]), float(sys.argv[2])
    (folder / "temporary").mkdir(parents=True)
    tempfile.tempdir = str(folder / "temporary")  # other programs write into the system's
    from tests.ui.scripted_user import ScriptedUser

    user, end, rounds = ScriptedUser(folder), time.monotonic() + 60 * minutes, 0
    objects, widgets = Counter[str](), Counter[str]()
    began = time.monotonic()
    while time.monotonic() < end or rounds < MIN_ROUNDS:
        done = Counter(use_round(user, rounds))
        rounds += 1
        user.settle()
        print(json.dumps({"sample": take_sample(), "done": len(done)}), flush=True)
        if time.monotonic() - began <= 60 * minutes / 3 or rounds <= MIN_ROUNDS // 3:
            objects, widgets = python_objects(), qobjects()
    more = {name: count for name, count in (python_objects() - objects).most_common(25) if count > 1}
    print(json.dumps({"done": sorted(done), "more Python objects": more, "more QObjects": qobjects() - widgets}))
    user.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
