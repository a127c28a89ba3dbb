"""Files of studies for tests of the window, with results that no model had to compute."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

from decodescope.core.studies import read_study
from decodescope.core.studies.study_file import plan_jobs

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "tests" / "fuzz" / "corpus" / "recordings" / "valid-sampling.decodescope"
ANIMALS = ("dog", "cat", "bird", "fish")
NAMES = ("Lily", "Tom", "Mia", "Ben", "Sam", "Max", "Sue", "Ann", "Joe", "Kim")
STUDY = """
title = "Temperature and top-p"
seeds = 3
baseline = {{ temperature = 1.0, top_p = 1.0 }}
measures = ["length", "log_probability", "distinct_2", "exact_match"]
best_of = "log_probability"

[prompts]
items = [{items}]
template = "{{name}} has a {{animal}}. One day, the"

[answers]
pattern = "(dog|cat|bird|fish)"

[settings]
do_sample = true
max_new_tokens = 20

[grid]
temperature = [0.5, 1.0, 1.5]
top_p = [0.8, 1.0]
"""


def write_study(folder: Path, prompts: int = 8, text: str = STUDY) -> Path:
    """Write a study of animals and return its path."""
    items = ", ".join(
        f'{{ name = "{NAMES[number % len(NAMES)]}", animal = "{animal}", answer = "{animal}" }}'
        for number, animal in zip(range(prompts), ANIMALS * prompts, strict=False)
    )
    path = folder / "animals.toml"
    path.write_text(text.format(items=items), "utf-8")
    return path


def write_results(path: Path, failed: int = 0, left: int = 0, has_recording: bool = True) -> Path:
    """Write results of all runs but the last `left` ones, of which `failed` failed, and return their folder."""
    plan, chance = read_study(path), random.Random(3)
    folder = path.with_name(f"{path.stem}-results")
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    jobs = plan_jobs(plan)
    lines = []
    for number, job in enumerate(jobs[: len(jobs) - left]):
        heat = float(str(job.cell.settings.get("temperature", 1.0)))
        animal = job.prompt.variables["animal"] if chance.random() > heat / 2 else chance.choice(ANIMALS)
        length = 12 + chance.randrange(9)
        text = (
            f" {animal} ran away and {job.prompt.variables['name']} went to look for it" + " very" * chance.randrange(3)
        )
        entry = {
            "key": job.key, "group": job.group, "cell": dict(job.cell.factors), "model": "storyteller",
            "cache_choice": "dynamic", "prompt_id": job.prompt.id, "prompt": job.content, "seed": job.seed,
            "uses_seed": True, "vocabulary": 2048, "metrics": {"seconds": 0.2}, "model_name": "storyteller",
            "texts": [{
                "text": text, "tokens": length, "finish": "max_new_tokens",
                "ids": [chance.randrange(40) for _ in range(length)],
                "log_probability": -0.6 - heat - chance.random() / 2, "entropy": heat,
            }],
            "recording": None,
        }  # fmt: skip
        if number < failed:
            entry = {**entry, "texts": [], "error": "The prompt is longer than the context. Shorten it."}
        elif has_recording and number == failed:
            name = f"{job.key}.decodescope"
            shutil.copy(RECORDING, folder / "runs" / name)
            entry["recording"] = f"runs/{name}"
        lines.append(json.dumps(entry))
    (folder / "results.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    return folder
