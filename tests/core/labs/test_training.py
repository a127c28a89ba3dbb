"""The three trainings on a tiny random model: formulas, events, Stop, resuming, and the saved files."""

from __future__ import annotations

import itertools
import json
import math
import random
import threading
from pathlib import Path

import pytest
import torch

from decodescope import core
from decodescope.core.errors import ParameterError, PreferenceError
from decodescope.core.labs.preference import (
    PpoChecked,
    PpoSettings,
    PpoStep,
    RewardChecked,
    RewardStep,
    SftChecked,
    TextComparison,
    TrainingSaved,
    TrainingStarted,
    TrainingStopped,
    best_of,
    kl_bound,
    load_reward_model,
    ppo,
    rank_completions,
    ranked,
    score_tokens,
    sft,
    train_reward,
)
from decodescope.core.labs.preference.completion_sampling import answer_logits, expected_best, sample_batch
from decodescope.core.labs.preference.fine_tuning import BUNDLED_CHATS, Example, read_examples
from decodescope.core.labs.preference.model_comparison import kl_divergence
from decodescope.core.labs.preference.ppo_training import generalized_advantages, token_rewards
from decodescope.core.labs.preference.reward_model import RewardModel, new_reward_model, pairwise_loss
from decodescope.core.labs.preference.tokenized_texts import chat_ids, prompt_ids, text_ids
from decodescope.core.models.loaded_model import LoadedModel

NAMES = ("Fern", "Max", "Mia", "Leo", "Tom", "Sam")
RANKINGS = [
    ranked([f"{name} played.", [f"{name} slept.", "So."], "The end"], f"A fox named {name}. ") for name in NAMES
]
SMALL = PpoSettings(steps=3, texts=4, longest=6, checked=4, compared=2, rate=1e-2)


@pytest.fixture(scope="module")
def judge(tiny: LoadedModel) -> RewardModel:
    return new_reward_model(tiny, seed=3)


def test_the_loss_is_that_of_the_paper() -> None:
    better, worse = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 2.0])
    by_hand = (math.log(1 + math.exp(-1)) + math.log(1 + math.exp(2))) / 2
    assert pairwise_loss(better, worse).item() == pytest.approx(by_hand)


def test_shared_prompt_rewards_equal_those_of_separate_texts(tiny: LoadedModel, judge: RewardModel) -> None:
    prompt = prompt_ids(tiny, RANKINGS[0].prompt)
    texts = [text_ids(tiny, RANKINGS[0].prompt, text) for text in RANKINGS[0].completions]
    shared = judge.shared_rewards(prompt, [text[len(prompt) :] for text in texts])
    assert shared.tolist() == pytest.approx(judge.score(texts), abs=1e-5)
    assert shared.requires_grad


def test_reward_of_a_text_is_that_of_its_last_token(tiny: LoadedModel, judge: RewardModel) -> None:
    prompt, text = RANKINGS[0].prompt, RANKINGS[0].completions[0]
    reported = score_tokens(judge, prompt, text)
    assert "".join(token.text for token in reported) == text
    assert reported[-1].reward == pytest.approx(judge.score([text_ids(tiny, prompt, text)])[0], abs=1e-5)


def test_completions_are_ranked_by_their_rewards(tiny: LoadedModel, judge: RewardModel) -> None:
    ranking = rank_completions(judge, RANKINGS[0].prompt, RANKINGS[0].completions)
    rewards = judge.score([text_ids(tiny, ranking.prompt, text) for text in ranking.completions])
    assert [rewards[ranking.ranks.index(rank)] for rank in (1, 2, 3, 4)] == sorted(rewards, reverse=True)


def test_reward_training_reports_steps_and_saves_the_model(tiny: LoadedModel, tmp_path: Path) -> None:
    before = {name: value.clone() for name, value in tiny.model.state_dict().items()}
    begun, *middle, stored = list(train_reward(RANKINGS, model=tiny, folder=tmp_path, steps=12, rate=1e-2))
    steps = [event for event in middle if isinstance(event, RewardStep)]
    checks = [event for event in middle if isinstance(event, RewardChecked)]
    assert isinstance(begun, TrainingStarted)
    assert (begun.examples, begun.held_out) == (5, 1)
    assert [event.step for event in steps] == list(range(1, 13))
    assert steps[0].pairs == 2 * 5, "two rankings of four with a tie"
    assert steps[-1].loss < 0.3 < steps[0].loss
    assert checks[-1].accuracy == 1.0
    assert isinstance(stored, TrainingSaved)
    assert f"{checks[-1].accuracy:.1%}" in (tmp_path / "README.md").read_text()
    assert not (tmp_path / "training.safetensors").exists()
    assert all(torch.equal(value, before[name]) for name, value in tiny.model.state_dict().items())
    again = load_reward_model(tmp_path)
    ranking = rank_completions(again, RANKINGS[4].prompt, RANKINGS[4].completions)
    assert ranking.groups[0] == RANKINGS[4].groups[0], "what was held out is ranked as it should be"


def test_killed_training_resumes_to_the_same_loss(tiny: LoadedModel, tmp_path: Path) -> None:
    whole = list(train_reward(RANKINGS, model=tiny, folder=tmp_path / "a", steps=4, rate=1e-2))
    cut = train_reward(RANKINGS, model=tiny, folder=tmp_path / "b", steps=4, rate=1e-2)
    list(itertools.takewhile(lambda event: getattr(event, "step", 0) < 2, cut))
    cut.close()  # type: ignore[attr-defined]  # the generator is left where it is, as by a kill
    rest = list(train_reward(RANKINGS, model=tiny, folder=tmp_path / "b", steps=4, rate=1e-2))
    assert isinstance(rest[0], TrainingStarted)
    assert rest[0].step == 2
    last = [[event for event in events if isinstance(event, RewardChecked)][-1] for events in (whole, rest)]
    assert last[0].loss == pytest.approx(last[1].loss, abs=1e-6)
    other = next(iter(train_reward(RANKINGS, model=tiny, folder=tmp_path / "b", steps=5, rate=1e-2)))
    assert isinstance(other, TrainingStarted)
    assert other.step == 0, "another plan begins anew"


def test_training_with_a_damaged_state_resumes_or_restarts(tiny: LoadedModel, tmp_path: Path) -> None:
    """Change bytes of its header, or truncate it: no raw exception, and no partly read state."""
    cancel, file = threading.Event(), tmp_path / "training.safetensors"
    for event in train_reward(RANKINGS, model=tiny, folder=tmp_path, steps=9, cancel=cancel):
        if isinstance(event, RewardStep):
            cancel.set()
    whole, luck = file.read_bytes(), random.Random(7)
    head = int.from_bytes(whole[:8], "little") + 8
    begun = []
    for cut in (0, 8, head, len(whole) // 2, *[None] * 40):
        content = bytearray(whole[:cut])
        for _ in range(0 if cut is not None else 3):
            content[luck.randrange(head)] = luck.randrange(32, 127)
        file.write_bytes(content)
        events = train_reward(RANKINGS, model=tiny, folder=tmp_path, steps=9, cancel=cancel)
        begun += [event.step for event in events if isinstance(event, TrainingStarted)]
    assert len(begun) == 44
    assert set(begun) <= {0, 1}
    assert begun[:4] == [0, 0, 0, 0]
    file.write_bytes(whole)
    (first, *_) = train_reward(RANKINGS, model=tiny, folder=tmp_path, steps=9, cancel=cancel)
    assert isinstance(first, TrainingStarted)
    assert first.step == 1


def test_stop_leaves_only_the_training_state(tiny: LoadedModel, tmp_path: Path) -> None:
    cancel = threading.Event()
    found = []
    for event in train_reward(RANKINGS, model=tiny, folder=tmp_path, steps=9, cancel=cancel):
        found.append(event)
        if isinstance(event, RewardStep):
            cancel.set()
    assert found[-1] == TrainingStopped("reward", 1, 9)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["training.safetensors"]


def test_ppo_stopped_before_the_first_round_reports_stopped(
    tiny: LoadedModel, judge: RewardModel, tmp_path: Path
) -> None:
    cancel = threading.Event()
    cancel.set()
    events = list(ppo(judge, model=tiny, folder=tmp_path, prompts=["A"], settings=SMALL, cancel=cancel))
    assert events[-1] == TrainingStopped("ppo", 0, SMALL.steps)


def test_training_into_a_bundled_folder_is_refused(tiny: LoadedModel) -> None:
    bundled = core.catalog.BUNDLED
    for make in (
        train_reward(RANKINGS, model=tiny, folder=bundled / "storyteller" / "reward"),
        ppo(new_reward_model(tiny), model=tiny, folder=bundled / "tuned", prompts=["A"]),
    ):
        with pytest.raises(PreferenceError, match="ships with the program"):
            next(iter(make))


def test_unusable_training_input_raises_an_error(tiny: LoadedModel, tmp_path: Path) -> None:
    ids_only = LoadedModel(tiny.model, None, "tiny")
    with pytest.raises(PreferenceError, match="cannot continue a text"):
        list(train_reward(RANKINGS, model=ids_only, folder=tmp_path))
    with pytest.raises(PreferenceError, match="at most"):
        list(train_reward([ranked(["a b " * 400, "b"], "p")], model=tiny, folder=tmp_path))
    with pytest.raises(PreferenceError, match="no pair"):
        list(train_reward([ranked([["a", "b"]], "p")], model=tiny, folder=tmp_path))
    with pytest.raises(PreferenceError, match="no readable reward model"):
        list(ppo(tmp_path, model=tiny))


def test_the_penalty_and_the_score_reach_the_tokens() -> None:
    written = torch.tensor([[True, True, False], [True, True, True]])
    ratio = torch.tensor([[1.0, 2.0, 9.0], [0.0, -1.0, 0.0]])
    spread = token_rewards(torch.tensor([5.0, 7.0]), ratio, written, beta=0.5)
    assert spread.tolist() == [[-0.5, 4.0, 0.0], [0.0, 0.5, 7.0]]


def test_generalized_advantages_match_a_manual_computation() -> None:
    written = torch.tensor([[True, True, False]])
    rewards, values = torch.tensor([[1.0, 2.0, 0.0]]), torch.tensor([[0.5, 0.25, 8.0]])
    last = 2.0 - 0.25
    first = 1.0 + 0.25 - 0.5 + 0.95 * last
    found, returns = generalized_advantages(rewards, values, written)
    assert found[0].tolist() == pytest.approx([first, last, 0.0])
    assert returns[0].tolist() == pytest.approx([first + 0.5, last + 0.25, 0.0])


def test_sampled_batch_has_the_logits_of_single_texts(tiny: LoadedModel) -> None:
    prompts = [prompt_ids(tiny, text) for text in ("A fox", "Once upon a time, there was")]
    drawn = sample_batch(tiny.model, prompts, frozenset({2}), 5, torch.Generator().manual_seed(1), threading.Event())
    assert drawn is not None
    with torch.no_grad():
        logits = answer_logits(tiny.model, drawn)
        for row, prompt in enumerate(prompts):
            before, after = drawn.token_ids(row)
            assert before == prompt
            alone = tiny.model(torch.tensor([[*before, *after]])).logits[0, len(before) - 1 : -1]
            assert torch.allclose(logits[row, : len(after)], alone, atol=1e-5), "padding changes nothing"
    assert kl_divergence(tiny.model, tiny.model, drawn).abs().max() < 1e-6


@pytest.fixture(scope="module")
def tuned(tiny: LoadedModel, judge: RewardModel, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[object], Path]:
    folder = tmp_path_factory.mktemp("ppo")
    prompts = [one.prompt for one in RANKINGS]
    return list(ppo(judge, model=tiny, folder=folder, prompts=prompts, settings=SMALL)), folder


def test_ppo_reports_every_round_and_saves_the_model(tuned: tuple[list[object], Path]) -> None:
    events, folder = tuned
    steps = [event for event in events if isinstance(event, PpoStep)]
    assert [event.step for event in steps] == [1, 2, 3]
    assert steps[0].kl == pytest.approx(0, abs=1e-5), "it begins from the model itself"
    assert 0 < steps[1].kl < steps[2].kl
    assert 0 < steps[0].entropy < math.log(2048) + 1e-3
    checked, *shown, stored = events[4:]
    assert isinstance(checked, PpoChecked)
    assert checked.texts == SMALL.checked
    assert all(isinstance(one, TextComparison) and one.prompt == RANKINGS[4].prompt for one in shown)
    assert isinstance(stored, TrainingSaved)
    entry = core.catalog.inspect(folder)
    assert entry.problem is None
    assert core.load(folder).vocabulary == 2048
    assert json.loads((folder / "config.json").read_text())["architectures"] == ["LlamaForCausalLM"]


def test_ppo_resumes_at_the_saved_step(
    tuned: tuple[list[object], Path], tiny: LoadedModel, judge: RewardModel, tmp_path: Path
) -> None:
    prompts = [one.prompt for one in RANKINGS]
    for event in (cut := ppo(judge, model=tiny, folder=tmp_path, prompts=prompts, settings=SMALL)):
        if isinstance(event, PpoStep):
            break
    cut.close()  # type: ignore[attr-defined]
    rest = list(ppo(judge, model=tiny, folder=tmp_path, prompts=prompts, settings=SMALL))
    assert isinstance(rest[0], TrainingStarted)
    assert rest[0].step == 1
    whole = [event for event in tuned[0] if isinstance(event, PpoStep)]
    again = [event for event in rest if isinstance(event, PpoStep)]
    assert again[-1].kl == pytest.approx(whole[-1].kl, rel=1e-3)
    assert again[-1].text == whole[-1].text


def test_expected_best_matches_a_manual_result_and_the_bound() -> None:
    assert kl_bound(1) == 0
    assert kl_bound(4) == pytest.approx(math.log(4) - 0.75)
    reward, bound, nats = expected_best([(0.0, 0.5), (1.0, 0.5)], 2)
    assert reward == pytest.approx(0.75)
    assert nats == pytest.approx(0.25 * math.log(0.5) + 0.75 * math.log(1.5))
    assert nats < bound
    fine = expected_best([(float(place), 1 / 4096) for place in range(4096)], 4)
    assert fine[2] == pytest.approx(fine[1], abs=2e-3), "it is met where no two texts are the same"


def test_best_of_more_texts_has_higher_reward_and_kl(tiny: LoadedModel, judge: RewardModel) -> None:
    found = list(best_of(tiny, judge, "A fox", counts=(1, 2, 8), texts=12, longest=3))
    assert [one.reward for one in found] == sorted(one.reward for one in found)
    assert all(one.kl <= one.bound + 1e-9 for one in found)
    assert found[0].kl == pytest.approx(0)


def test_fine_tuning_lowers_the_loss_of_the_answers(tiny: LoadedModel, tmp_path: Path) -> None:
    examples = [Example(f"Who is {name}? ", "A fox.") for name in NAMES]
    events = list(sft(examples, model=tiny, folder=tmp_path, steps=10, rate=3e-2))
    before, after = (event for event in events if isinstance(event, SftChecked))
    assert after.loss < 0.5 * before.loss
    assert isinstance(events[-1], TrainingSaved)
    assert core.load(tmp_path).name


@pytest.mark.fuzz
def test_fine_tuned_storyteller_thanks_for_held_out_questions(tmp_path: Path) -> None:
    """The claim of the lab about the bundled chats; takes about a minute."""
    list(sft(folder=tmp_path))
    tuned, thanks = core.load(tmp_path), 0
    for example in read_examples(BUNDLED_CHATS)[4::5]:
        request = core.Request(list(example.prompt), {"max_new_tokens": 60, "do_sample": False})
        text = tuned.tokenizer.decode(core.run(tuned, request).sequences[0], skip_special_tokens=True)
        thanks += text.strip().endswith("Thank you for asking!")
    assert thanks >= 8, "of 12"


@pytest.mark.parametrize("line", ['{"prompt": "a"}', '{"messages": []}', '{"messages": [{"role": "user"}]}', "["])
def test_invalid_example_is_named_with_its_line(tiny: LoadedModel, tmp_path: Path, line: str) -> None:
    good = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
    (tmp_path / "mine.jsonl").write_text(f"{json.dumps(good)}\n{line}\n")
    with pytest.raises(PreferenceError, match=r"Line 2 of mine\.jsonl"):
        next(iter(sft(tmp_path / "mine.jsonl", model=tiny, folder=tmp_path / "tuned")))


def test_bundled_chats_are_encoded_with_the_chat_template(tiny: LoadedModel) -> None:
    chat = read_examples(BUNDLED_CHATS)[0]
    requested = chat_ids(tiny, chat.prompt)
    whole = chat_ids(tiny, (*chat.prompt, {"role": "assistant", "content": chat.completion}), with_answer=True)
    assert whole[: len(requested)] == requested
    assert tiny.tokenizer.decode(whole[len(requested) :]) == chat.completion + "<|end|>"


def test_a_training_of_no_steps_is_refused(tiny: LoadedModel, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"steps is -3\. It must be an integer from 1"):
        next(iter(sft([Example("a", "b")] * 6, model=tiny, folder=tmp_path, steps=-3)))
