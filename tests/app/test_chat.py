"""The turns of a chat: what is sent, what an answer costs, what is dropped when the context is full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from decodescope.app.state.conversation import DROP, RESTART, Conversation, ConversationTurn, TurnToken, trim
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import Outcome, RunRequest
from decodescope.core.events import Prefilled, PromptToken, RunStarted
from tests.ui.fake_engine import chosen


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def answer(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def say(talk: Conversation, text: str, reply: str = "Yes", prompt: int = 10, reused: int = 0) -> Run:
    """Append a message and its answer, with one token per character."""
    run = Run(RunRequest(talk.with_turns([user(text)])))
    talk.start_answer(run)
    tokens = tuple(PromptToken(n, "x") for n in range(prompt))
    started = RunStarted("greedy", "m", "cpu", "float32", "dynamic", 0, tokens, (), 1, 100, 512)
    run.apply([started, Prefilled(prompt, 0.1, reused), *(chosen(n, c) for n, c in enumerate(reply))])
    run.outcome = Outcome("completed")
    talk.finish_answer(run)
    return run


def test_finished_answer_is_appended_with_its_cost() -> None:
    talk = Conversation()
    say(talk, "Hi", "Hello", prompt=12, reused=9)
    assert [turn.message for turn in talk.turns] == [user("Hi"), answer("Hello")]
    assert talk.turns[-1].cost_text == "9 tokens reused · 3 computed · 5 written"
    assert talk.used_tokens == 17
    assert talk.with_turns([user("So?")]) == (user("Hi"), answer("Hello"), user("So?"))


def test_with_turns_without_new_message_is_empty() -> None:
    talk = Conversation()
    assert talk.with_turns([]) == ()
    say(talk, "Hi")
    assert talk.with_turns([]) == ()


def test_unfinished_answer_is_open_and_cannot_be_regenerated() -> None:
    talk = Conversation()
    run = Run(RunRequest((user("Hi"),)))
    assert talk.start_answer(run) == (user("Hi"),)
    assert talk.is_open
    assert not talk.can_regenerate
    run.apply([chosen(0, "He")])
    run.outcome = Outcome("stopped")
    talk.finish_answer(run)
    assert talk.turns[-1].content == "He"
    assert (talk.is_open, talk.can_regenerate) == (False, True)


def test_failed_answer_keeps_question_for_retry() -> None:
    talk = Conversation()
    run = Run(RunRequest((user("Hi"),)))
    talk.start_answer(run)
    run.outcome = Outcome("failed")
    talk.finish_answer(run)
    assert talk.with_turns([]) == (user("Hi"),)
    assert talk.start_answer(Run(RunRequest((user("Hi"),)))) == ()


def test_regenerating_adds_answer_beside_old_one() -> None:
    talk = Conversation()
    say(talk, "Hi", "One")
    say(talk, "And", "Two")
    old = talk.turns[-1]
    run = Run(RunRequest(talk.messages_before(old)))
    assert talk.start_answer(run) == ()
    assert [turn.content for turn in talk.turns] == ["Hi", "One", "And", ""]
    assert (talk.turns[-1].number, len(old.siblings)) == (2, 2)
    assert talk.show_sibling(talk.turns[-1], -1) is old
    assert talk.turns[-1] is old
    assert talk.show_sibling(old, -1) is old
    assert all(turn.is_in_context for turn in talk.turns)


def test_failed_version_is_removed_and_old_one_is_shown() -> None:
    talk = Conversation()
    say(talk, "Hi", "One")
    run = Run(RunRequest(talk.messages_before(talk.turns[-1])))
    talk.start_answer(run)
    run.outcome = Outcome("failed")
    talk.finish_answer(run)
    assert [turn.content for turn in talk.turns] == ["Hi", "One"]
    assert len(talk.turns[-1].siblings) == 1


def test_answer_to_earlier_message_starts_branch_there() -> None:
    talk = Conversation()
    for text, reply in (("a", "A"), ("b", "B"), ("c", "C")):
        say(talk, text, reply)
    talk.start_answer(Run(RunRequest(talk.messages_before(talk.turns[3]))))
    assert [turn.content for turn in talk.turns] == ["a", "A", "b", ""]
    talk.show_sibling(talk.turns[3], -1)
    assert [turn.content for turn in talk.turns] == ["a", "A", "b", "B", "c", "C"]


def test_system_prompt_comes_first_and_is_no_turn() -> None:
    talk = Conversation(system="Be kind")
    say(talk, "Hi")
    assert [turn.role for turn in talk.turns] == ["user", "assistant"]
    assert talk.with_turns([user("So?")])[0] == {"role": "system", "content": "Be kind"}
    assert talk.messages_before(talk.turns[1]) == ({"role": "system", "content": "Be kind"}, user("Hi"))


def tokens(*texts: str) -> tuple[TurnToken, ...]:
    return tuple(TurnToken(100 + n, text) for n, text in enumerate(texts))


@pytest.mark.parametrize(
    ("pieces", "text", "expected"),
    [
        (("Yes", ",", " it"), "Yes, it", (100, 101, 102)),
        (("Yes", ",", " it"), "Yes, i", (100, 101, " i")),
        (("Yes", ",", " it"), "Yes, it was", (100, 101, 102, " was")),
        (("Yes", ",", " it"), "No", ("No",)),
        (("Yes", ",", " it"), "", ()),
        (("Hi", "", "", "é", "!"), "Hié", (100, 101, 102, 103)),
        (("Hi", "", "", "é", "!"), "Hi!", (100, "!")),
        (("Hi", ""), "Hi", (100,)),
        (("", "Hi", " you"), "Hi there", (100, 101, " there")),
        ((), "Hi", ("Hi",)),
    ],
)
def test_edited_answer_keeps_tokens_that_spell_its_beginning(
    pieces: tuple[str, ...], text: str, expected: tuple[int | str, ...]
) -> None:
    turn = ConversationTurn("assistant", "".join(pieces), restored_tokens=tokens(*pieces))
    assert turn.beginning_for(text) == expected
    assert turn.beginning_for(text, is_same_model=False) == ((text,) if text else ())


def test_remaining_end_token_is_left_out_when_answer_continues() -> None:
    talk = Conversation()
    run = say(talk, "Hi", "Yes")
    assert talk.turns[-1].beginning_for("Yes") == tuple(token.id for token in run.tokens)


def test_answer_cost_counts_given_beginning_as_read() -> None:
    talk = Conversation()
    say(talk, "Hi", "Yes", prompt=10)
    assert talk.used_tokens == 13


def test_title_is_beginning_of_first_message() -> None:
    talk = Conversation()
    assert talk.name == "New chat"
    say(talk, "  Tell me\n a story  " + "x" * 200)
    assert talk.name.startswith("Tell me a story x")
    assert len(talk.name) <= 60
    talk.title = "Foxes"
    assert talk.name == "Foxes"


def count(messages: Sequence[Mapping[str, str]]) -> int:
    """A character is a token, and each turn is framed by two."""
    return sum(len(message["content"]) + 2 for message in messages)


LONG = (user("a" * 10), answer("b" * 10), user("c" * 10), answer("d" * 10), user("e" * 5))


def names(messages: Sequence[Mapping[str, str]]) -> str:
    return "".join(message["content"][0] for message in messages)


@pytest.mark.parametrize(
    ("context", "room", "policy", "kept"),
    [
        (55, 0, DROP, "abcde"),
        (54, 0, DROP, "cde"),
        (55, 1, DROP, "cde"),
        (31, 0, DROP, "cde"),
        (30, 0, DROP, "e"),
        (54, 0, RESTART, "e"),
        (3, 0, DROP, "e"),
    ],
)
def test_full_context_drops_only_oldest_turns(context: int, room: int, policy: str, kept: str) -> None:
    assert names(trim(LONG, context, room, policy, count)) == kept


@pytest.mark.parametrize("policy", [DROP, RESTART])
def test_system_turn_is_kept_when_trimming(policy: str) -> None:
    rules = {"role": "system", "content": "Be kind"}
    assert names(trim((rules, *LONG), 54, 0, policy, count)) == {"drop": "Bcde", "anew": "Be"}[policy]


def test_trimmed_turns_are_marked_out_of_context() -> None:
    talk = Conversation()
    say(talk, "a" * 10, "b" * 10)
    say(talk, "c" * 10, "d" * 10)
    run = Run(RunRequest(talk.with_turns([user("e" * 5)])))
    talk.start_answer(run)
    run.request = replace(run.request, prompt=trim(run.request.prompt, 40, 0, DROP, count))
    talk.mark_trimmed(run)
    assert [turn.is_in_context for turn in talk.turns] == [False, False, True, True, True, True]
    run.apply([chosen(0, "z")])
    run.outcome = Outcome("completed")
    talk.finish_answer(run)
    assert names(talk.with_turns([user("f")])) == "cdezf"


def test_system_turn_stays_in_context_after_trimming() -> None:
    talk = Conversation()
    rules = {"role": "system", "content": "Be kind"}
    run = Run(RunRequest((rules, user("Hi"))))
    talk.start_answer(run)
    run.outcome = Outcome("stopped")
    run.apply([chosen(0, "Yes")])
    talk.finish_answer(run)
    run = Run(RunRequest(talk.with_turns([user("So")])))
    talk.start_answer(run)
    run.request = replace(run.request, prompt=(rules, user("So")))
    talk.mark_trimmed(run)
    assert [turn.is_in_context for turn in talk.turns] == [True, False, False, True, True]
