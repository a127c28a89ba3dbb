"""The chat's turns: what is sent, what an answer cost, what goes when the context is full."""

from __future__ import annotations

import pytest

from app.chat import ANEW, Conversation
from app.requests import Outcome, RunRequest
from app.run import Run
from core.events import Prefilled, PromptToken, RunStarted
from tests.ui.fake_engine import chosen


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def answer(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def say(talk: Conversation, text: str, reply: str = "Yes", prompt: int = 10, reused: int = 0, room: int = 0) -> Run:
    """One message and its answer of one token a character."""
    run = Run(RunRequest("m", talk.plan([user(text)], room).messages))
    talk.begin(run)
    tokens = tuple(PromptToken(n, "x") for n in range(prompt))
    started = RunStarted("greedy", "m", "cpu", "float32", "dynamic", 0, tokens, (), 1, 100, 512)
    run.apply([started, Prefilled(prompt, 0.1, reused), *(chosen(n, c) for n, c in enumerate(reply))])
    run.outcome = Outcome("completed")
    talk.finish(run)
    return run


def test_an_answer_joins_the_turns_and_tells_its_cost() -> None:
    talk = Conversation()
    say(talk, "Hi", "Hello", prompt=12, reused=9)
    assert [turn.message for turn in talk.turns] == [user("Hi"), answer("Hello")]
    assert talk.turns[-1].cost == "9 tokens reused · 3 computed · 5 written"
    assert talk.used == 17
    assert talk.plan([user("So?")]).messages == (user("Hi"), answer("Hello"), user("So?"))


def test_nothing_is_sent_without_a_message() -> None:
    talk = Conversation()
    assert talk.plan([]).messages == ()
    say(talk, "Hi")
    assert talk.plan([]).messages == ()


def test_an_answer_under_way_is_open() -> None:
    talk = Conversation()
    run = Run(RunRequest("m", (user("Hi"),)))
    assert talk.begin(run) == (user("Hi"),)
    assert talk.is_open
    assert (talk.can_edit, talk.can_regenerate) == (False, False)
    run.apply([chosen(0, "He")])
    run.outcome = Outcome("stopped")
    talk.finish(run)
    assert talk.turns[-1].content == "He"
    assert (talk.is_open, talk.can_edit, talk.can_regenerate) == (False, True, True)


def test_a_failed_answer_leaves_the_question_to_be_sent_again() -> None:
    talk = Conversation()
    run = Run(RunRequest("m", (user("Hi"),)))
    talk.begin(run)
    run.outcome = Outcome("failed")
    talk.finish(run)
    assert talk.plan([]).messages == (user("Hi"),)
    assert talk.begin(Run(RunRequest("m", (user("Hi"),)))) == ()


def test_regenerating_replaces_the_answer() -> None:
    talk = Conversation()
    say(talk, "Hi", "One")
    say(talk, "And", "Two")
    run = Run(RunRequest("m", talk.without_answer()))
    assert talk.begin(run) == ()
    assert [turn.content for turn in talk.turns] == ["Hi", "One", "And", ""]
    assert all(turn.held for turn in talk.turns)


def test_editing_takes_the_last_message_back() -> None:
    talk = Conversation()
    say(talk, "Hi")
    say(talk, "And")
    assert talk.take_back() == "And"
    assert [turn.content for turn in talk.turns] == ["Hi", "Yes"]


def test_a_full_context_drops_the_oldest_turns_and_no_more() -> None:
    talk = Conversation(context=55)
    say(talk, "a" * 10, "b" * 10, prompt=14)
    say(talk, "c" * 10, "d" * 10, prompt=40)
    plan = talk.plan([user("e" * 5)])
    assert plan.dropped == 2
    assert [message["content"][0] for message in plan.messages] == ["c", "d", "e"]
    talk.begin(Run(RunRequest("m", plan.messages)))
    assert [turn.held for turn in talk.turns] == [False, False, True, True, True, True]


def test_a_full_context_can_start_anew() -> None:
    talk = Conversation(context=52, when_full=ANEW)
    say(talk, "a" * 10, "b" * 10, prompt=14)
    say(talk, "c" * 10, "d" * 10, prompt=40)
    assert talk.plan([user("e")]).messages == (user("e"),)


def test_what_the_system_said_stays() -> None:
    talk = Conversation(context=60)
    rules = {"role": "system", "content": "Be kind"}
    run = Run(RunRequest("m", (rules, user("Hi"))))
    talk.begin(run)
    run.outcome = Outcome("stopped")
    run.apply([chosen(0, "Yes")])
    talk.finish(run)
    say(talk, "c" * 20, "d" * 20, prompt=30)
    plan = talk.plan([user("e" * 9)])
    assert plan.messages[0] == rules
    assert user("Hi") not in plan.messages
    talk.begin(Run(RunRequest("m", plan.messages)))
    assert [turn.held for turn in talk.turns[:3]] == [True, False, False]


@pytest.mark.parametrize("room", [0, 30])
def test_room_for_the_answer_is_kept_free(room: int) -> None:
    talk = Conversation(context=60)
    say(talk, "a" * 10, "b" * 10, prompt=14)
    assert talk.plan([user("c" * 10)], room).dropped == (2 if room else 0)
