"""Arguments of a wrong kind to a lab's public functions raise an error of core.errors that names them, before a process
is started or a file is written.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from decodescope import core
from decodescope.core.errors import ParameterError
from decodescope.core.labs import preference as p
from decodescope.core.labs import scale as s
from decodescope.core.labs import speed as v
from decodescope.core.labs.preference import training_loop
from decodescope.core.labs.preference.model_saving import save_model
from decodescope.core.labs.preference.reward_model import new_reward_model
from decodescope.core.labs.processes import lab_processes
from decodescope.core.labs.scale.ranks.rank_messages import StepMemory
from decodescope.core.labs.scale.ranks.residual_memory import ResidualEstimate
from decodescope.core.models.loaded_model import LoadedModel
from tests.core.invalid_arguments import ODD, ODDER, Calls, consumed, pass_odd_values

STOP = threading.Event()
STOP.set()
RANKINGS = [p.ranked([f"{name} played.", f"{name} slept."], "A fox. ") for name in ("Mia", "Leo")]
EXAMPLES = [p.Example("Who?", "Mia."), p.Example("Where?", "Here.")]
PROMPTS = ["A fox. ", "A cat. "]
SMALL = s.Shape("tiny", 4, 8, 2, 2, 4, 32, 16)
CLUSTER, LAYOUT, TRAINING = s.Cluster(), s.Layout(), s.Training()
PARTS = (s.Parts(1, 1, 1), s.Parts(1, 1, 1))
STEP = StepMemory(1, 2, 3, 4.0, [])
RESIDUAL = s.Residual(
    (STEP,),
    (STEP,),
    ResidualEstimate(1, 2, 3),
    ResidualEstimate(1, 2, 3),
    0.0,
    (s.arena([]), s.arena([])),
)
COUNTED = s.RankMeasurement("ddp", PARTS, PARTS, (8, 8), 8, 8, (1.0,), (1.0,), 0.1)
BOXES = s.schedule(2, 2)
ROW = v.Row("batch", "1")
TIMED = [v.RowMeasurement(ROW, (2.0,), 8, 4.0), v.RowMeasurement(v.Row("batch", "2"), (3.0,), 8, 4.0)]
MISSING = Path("none.jsonl")


@pytest.fixture(scope="module")
def training(tiny: LoadedModel) -> Calls:
    """Functions that train, draw or score; those that can be stopped end at once."""
    judge = new_reward_model(tiny)
    about = {"model": tiny, "folder": Path("kept"), "steps": 1, "seed": 0, "rate": 1e-3, "cancel": STOP}
    drawn = {"longest": 2, "seed": 0, "cancel": STOP}
    settings = asdict(p.PpoSettings(steps=1, texts=2, longest=2, checked=2, compared=1))
    tuned = {"reward": judge, "model": tiny, "folder": Path("kept"), "prompts": PROMPTS, "cancel": STOP}
    both = {"model": tiny, "prompt": "A fox. "}
    return {
        "train_reward": (p.train_reward, {"rankings": RANKINGS, **about}),
        "sft": (p.sft, {"examples": EXAMPLES, **about}),
        "Example": (lambda **given: p.sft([p.Example(**given)], **about), {"prompt": "Who?", "completion": "Mia."}),
        "ppo": (p.ppo, {**tuned, "settings": p.PpoSettings(**settings)}),
        "PpoSettings": (lambda **given: p.ppo(**tuned, settings=p.PpoSettings(**given)), settings),
        "best_of": (p.best_of, {**both, "judge": judge, "counts": [1, 2], "texts": 2, **drawn}),
        "completions": (p.completions, {**both, "count": 2, "temperature": 1.0, **drawn}),
        "load_reward_model": (p.load_reward_model, {"folder": MISSING}),
        "score_tokens": (p.score_tokens, {"model": judge, "prompt": "A fox. ", "completion": "It slept."}),
        "rank_completions": (p.rank_completions, {"model": judge, "prompt": "A fox.", "completions": ["So.", "No."]}),
    }


TRAINING_NAMES = (
    "train_reward", "sft", "Example", "ppo", "PpoSettings", "best_of", "completions", "load_reward_model",
    "score_tokens", "rank_completions",
)  # fmt: skip
CALLS: Calls = {
    "Ranking": (p.Ranking, {"prompt": "", "completions": ("a", "b"), "ranks": (1, 2)}),
    "pairs": (p.pairs, {"ranking": ["a", ["b", "c"]]}),
    "ranked": (p.ranked, {"groups": ["a", ["b", "c"]], "prompt": ""}),
    "kl_bound": (p.kl_bound, {"n": 2}),
    "judge": (p.judge, {"prompt": "A fox.", "completion": "It slept."}),
    "rank_by_rule": (p.rank_by_rule, {"prompt": "A fox.", "completions": ["It slept.", "It ran."]}),
    "bundled_rankings": (p.bundled_rankings, {}),
    "read_rankings": (p.read_rankings, {"path": MISSING}),
    "read_examples": (p.read_examples, {"path": MISSING}),
    "write_rankings": (p.write_rankings, {"path": Path("new.jsonl"), "rankings": RANKINGS}),
    "write_pairs": (p.write_pairs, {"path": Path("new.jsonl"), "rankings": RANKINGS}),
    "arena": (s.arena, {"blocks": [s.Block(0, 1, 8), s.Block(1, 2, 8)], "apart": True}),
    "Block": (lambda **given: s.arena([s.Block(**given), s.Block(0, 2, 8)]),
              {"start": 0, "stop": 1, "bytes": 8, "kind": "gradient"}),
    "decimal_bytes": (s.decimal_bytes, {"count": 8}),
    "plan": (s.plan, {"parameters": 8, "devices": 2, "scheme": "zero1", "precision": "mixed"}),
    "traffic": (s.traffic, {"parameters": 8, "devices": 2, "scheme": "zero1"}),
    "shape_of": (s.shape_of, {"config": {"n_layer": 2, "n_embd": 8, "n_head": 2, "vocab_size": 16}, "name": ""}),
    "estimate_setup": (s.estimate_setup, {"shape": SMALL, "cluster": CLUSTER, "layout": LAYOUT, "training": TRAINING}),
    "remedies": (s.remedies, {"shape": SMALL, "cluster": CLUSTER, "layout": LAYOUT, "training": TRAINING}),
    "Shape": (lambda **given: s.estimate_setup(s.Shape(**given), CLUSTER, LAYOUT, TRAINING), asdict(SMALL)),
    "Cluster": (lambda **given: s.remedies(SMALL, s.Cluster(**given), LAYOUT, TRAINING), asdict(CLUSTER)),
    "Layout": (lambda **given: s.remedies(SMALL, CLUSTER, s.Layout(**given), TRAINING), asdict(LAYOUT)),
    "Training": (lambda **given: s.remedies(SMALL, CLUSTER, LAYOUT, s.Training(**given)), asdict(TRAINING)),
    "schedule": (s.schedule, {"stages": 2, "micro_batches": 2, "kind": "gpipe", "forward": 1, "backward": 2,
                              "update": 0, "hop": 0, "weights": "stashed"}),
    "idle_share": (s.idle_share, {"boxes": BOXES, "since": 0, "until": 3.0}),
    "Box": (lambda **given: s.idle_share([s.Box(**given)]), asdict(BOXES[0])),
    "ring": (s.ring, {"kind": "all_reduce", "tensors": [[1.0, 2.0], [3.0, 4.0]]}),
    "explain_ring": (s.explain_ring, {"kind": "all_reduce", "step": s.RingStep((), ((),), (0,)), "whole": 8}),
    "explain_hand": (s.explain_hand, {"hand": s.Hand(0, 1, 0, True)}),
    "explain_measured": (s.explain_measured, {"found": COUNTED}),
    "explain_residual": (s.explain_residual, {"found": RESIDUAL}),
    "explain_progress": (s.explain_progress, {"progress": s.RankProgress(0, "step", 1, 3, 77)}),
    "RankProgress": (lambda **given: s.explain_progress(s.RankProgress(**given)),
                     asdict(s.RankProgress(0, "step", 1, 3, 77))),
    "explain_estimate": (s.words.explain_estimate, {"estimate": s.estimate_setup(SMALL, CLUSTER, LAYOUT, TRAINING),
                                                      "layout": LAYOUT, "training": TRAINING}),
    "explain_remedy": (s.words.explain_remedy,
                       {"remedy": s.Remedy("recompute", "", CLUSTER, LAYOUT, TRAINING, 8)}),
    "explain_idle": (s.words.explain_idle, {"kind": "gpipe", "stages": 2, "count": 4, "share": 0.2,
                                            "sends_at_once": True}),
    "explain_box": (s.words.explain_box, {"box": BOXES[0]}),
    "explain_waiting": (s.words.explain_waiting, {"device": 0, "time": 1.0, "is_done": False}),
    "explain_reference": (v.explain_reference, {"reference": v.SpeedReference("tiny", "cpu", "float32", 8, 9.0, 1, 4)}),
    "explain_way": (v.explain_way, {"way": "batch", "found": TIMED}),
    "row_title": (v.row_title, {"row": ROW}),
    "Row": (lambda **given: v.row_title(v.Row(**given)), {"way": "drafts", "name": "plain"}),
    "speed_words": (v.speed_words, {"speed": 1.5}),
    "times": (v.times, {"ratio": 1.5}),
}  # fmt: skip
STARTING: Calls = {
    "measure": (s.measure, {"model_name": "storyteller", "scheme": "ddp", "processes": 2, "port": 0,
                            "options": s.Options()}),
    "measuring": (s.measuring, {"model_name": "storyteller", "scheme": "gpipe", "processes": 2, "port": 0,
                                "options": s.Options(), "cancel": None}),
    "Options": (lambda **given: s.measuring("storyteller", "pipedream", options=s.Options(**given)),
                asdict(s.Options())),
    "measuring_memory": (s.measuring_memory, {"model_name": "storyteller", "processes": 2, "port": 0, "cancel": None}),
    "the speed lab's measuring": (v.measuring, {"asked": v.MeasurementRequest("storyteller"), "cancel": None}),
    "MeasurementRequest": (lambda **given: v.measuring(v.MeasurementRequest(**given)),
                           asdict(v.MeasurementRequest("storyteller"))),
}  # fmt: skip
RESULT_CLASSES = {
    "Arena", "BestOf", "Chunk", "Hand", "MeasurementFinished", "Pair", "Parts", "PpoChecked", "PpoStep",
    "RankMeasurement", "Remedy", "Residual", "RewardChecked", "RewardModel", "RewardStep", "RingStep",
    "RowMeasurement", "RowPlan", "RowStarted", "SetupEstimate", "SftChecked", "SftStep", "SkippedRow",
    "SpeedReference", "TextComparison", "TokenReward", "Traffic", "TrainingSaved", "TrainingStarted",
    "TrainingStopped", "Verdict",
}  # fmt: skip
"""Classes of results and events of a lab, which callers do not construct."""


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep all files, the user's data included, in the temporary folder of the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    before = _files(Path.home())
    yield
    assert _files(Path.home()) == before


def _files(folder: Path) -> set[Path]:
    return {Path(at) / name for at, _, names in os.walk(folder) for name in names}


@pytest.mark.parametrize("name", CALLS)
def test_wrong_argument_types_raise_core_errors(name: str) -> None:
    function, right = CALLS[name]
    if MISSING not in right.values():
        consumed(function(**right))
    pass_odd_values(function, right, (*ODD, *ODDER))


@pytest.mark.parametrize("name", TRAINING_NAMES)
def test_wrong_training_argument_types_raise_core_errors(training: Calls, name: str) -> None:
    function, right = training[name]
    if MISSING not in right.values():
        consumed(function(**right))
    pass_odd_values(function, right, (*ODD, *ODDER))


@pytest.mark.parametrize("name", STARTING)
def test_invalid_arguments_start_no_process(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Accepted arguments reach the start of the first process, refused ones do not."""
    begun: list[object] = []

    def start(command: object, **_: object) -> object:
        begun.append(command)
        raise OSError(1, "none is started here")

    monkeypatch.setattr(lab_processes.subprocess, "Popen", start)
    function, right = STARTING[name]
    with pytest.raises(core.errors.ScaleError, match="permission denied"):
        consumed(function(**right))
    pass_odd_values(function, right, (*ODD, *ODDER))
    begun.clear()
    for argument in right:
        with pytest.raises(core.errors.DecodescopeError):
            consumed(function(**{**right, argument: object()}))
    assert not begun


@pytest.mark.parametrize("lab", [p, s, v], ids=["preference", "scale", "speed"])
def test_every_public_lab_function_is_covered(lab: Any) -> None:
    known = {*CALLS, *TRAINING_NAMES, *STARTING, *RESULT_CLASSES}
    assert {name for name in lab.__all__ if isinstance(getattr(lab, name), (type, FunctionType))} <= known


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: s.ring("all_reduce", [[1.0]] * 65), "65 devices are too many to show"),
        (lambda: s.ring("all_reduce", ["ab", "cd"]), "tensors is 'ab'"),
        (
            lambda: s.estimate_setup(SMALL, s.Cluster(10**30), LAYOUT, TRAINING),
            "devices is 10+. It must be an integer",
        ),
        (lambda: s.estimate_setup(SMALL, CLUSTER, "zero1", TRAINING), r"Pass a decodescope\.labs\.scale\.Layout"),
        (lambda: p.kl_bound(0), "n is 0. It must be an integer from 1 to 1,000,000"),
        (
            lambda: v.measuring(v.MeasurementRequest("storyteller", ways=("x",))),
            "ways is 'x'. Choose one of: batch, weights",
        ),
    ],
)
def test_parameter_error_names_cause_and_remedy(call: Callable[[], object], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        consumed(call())


def test_rankings_at_an_unwritable_path_raise_file_not_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in ("", tmp_path / "file" / "new.jsonl", "a\0b", tmp_path):
        with pytest.raises(core.errors.FileNotWrittenError):
            p.write_rankings(path, RANKINGS)
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_training_into_a_file_is_refused(tiny: LoadedModel, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(core.errors.PreferenceError, match="is a file"):
        consumed(p.sft(EXAMPLES, model=tiny, folder=tmp_path / "file", steps=1))


@pytest.mark.parametrize("name", ["train_reward", "sft", "ppo"])
def test_training_into_an_unwritable_folder_does_not_start(training: Calls, tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    function, right = training[name]
    with pytest.raises(core.errors.FileNotWrittenError):
        next(iter(function(**{**right, "folder": tmp_path / "file" / "kept"})))


def test_full_disk_during_training_raises_file_not_written(
    training: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(training_loop, "save_file", full)
    function, right = training["sft"]
    with pytest.raises(core.errors.FileNotWrittenError, match="no space left"):
        consumed(function(**{**right, "folder": tmp_path / "kept"}))


def test_corrupt_reward_model_raises_preference_error(tiny: LoadedModel, tmp_path: Path) -> None:
    save_model(new_reward_model(tiny).classifier, tiny.tokenizer, tmp_path, "")
    (tmp_path / "model.safetensors").write_bytes(b"no weights at all")
    with pytest.raises(core.errors.PreferenceError, match="no readable reward model"):
        p.load_reward_model(tmp_path)


@pytest.mark.parametrize("folder", ["a\0b", "~nobody-of-that-name/kept"])
def test_invalid_folder_argument_raises_parameter_error(tiny: LoadedModel, folder: str) -> None:
    with pytest.raises(ParameterError, match="Give a folder path"):
        consumed(p.sft(EXAMPLES, model=tiny, folder=folder, steps=1))
