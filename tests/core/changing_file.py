"""Load models and run them until an error ends it, while another process changes their files.

Each line of the input is a JSON list: the file, the number of threads, the format of the weights, the number of runs.
Each line of the output is a word and a JSON value.
"""

from __future__ import annotations

import json
import sys
import time

import torch

from decodescope import core
from decodescope.core.errors import DecodescopeError
from decodescope.core.events.tokens import TokenChosen

NEW_TOKENS = 8


def say(word: str, value: object) -> None:
    print(word, json.dumps(value), flush=True)


def use(file: str, threads: int, weights: str, runs: int) -> None:
    torch.set_num_threads(threads)
    written: list[int] = []
    begun = time.perf_counter()
    say("loading", file)
    try:
        model = core.load(file, device="cpu", weights=weights)
        say("loaded", time.perf_counter() - begun)
        settings = {"max_new_tokens": NEW_TOKENS, "min_new_tokens": NEW_TOKENS, "do_sample": False}
        for _ in range(runs):
            written = []
            for event in core.stream(model, core.Request("Once upon", settings)):
                if isinstance(event, TokenChosen):
                    written.append(event.id)
        say("written", written)
    except DecodescopeError as error:
        say("error", [type(error).__name__, error.cause, error.remedy, written])


if __name__ == "__main__":
    for line in sys.stdin:
        use(*json.loads(line))
