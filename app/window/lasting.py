"""What outlives the parts that are seen: those are made anew when the window speaks another language."""

from __future__ import annotations

from typing import NamedTuple

from app.control.history import History
from app.control.keeping import ChatKeeper, Keeper
from app.control.labs.opening import LabWorks
from app.control.model_list import ModelList
from app.control.steps import Steps
from app.session.late_downloads import LateDownloads
from app.session.media import MediaShelf
from app.session.quickening import Quickening
from app.session.session import Session
from app.state.conversation import Conversation
from app.state.family import Family
from app.storage.chat_file import ChatStore, claim_chat
from app.storage.settings_file import SettingsStore
from app.window.switch import LanguageSwitch


class Lasting(NamedTuple):
    """From the window's first assembly to its end: what runs, what is known, what is kept. None of it is drawn."""

    store: SettingsStore
    session: Session
    switch: LanguageSwitch
    keeper: Keeper
    history: History
    steps: Steps
    chats: ChatStore
    chat_keeper: ChatKeeper
    conversation: Conversation
    family: Family
    models: ModelList
    downloads: LateDownloads
    media: MediaShelf
    labs: LabWorks
    quickening: Quickening


def begin(store: SettingsStore, session: Session, switch: LanguageSwitch) -> Lasting:
    """All of it, with the chat as it was left."""
    keeper, chats, conversation = Keeper(store), claim_chat(store.folder), Conversation()
    chats.restore(conversation)
    history = History(session, lambda: store.data, store.settings.history, keeper)
    return Lasting(
        store=store,
        session=session,
        switch=switch,
        keeper=keeper,
        history=history,
        steps=Steps(session, history),
        chats=chats,
        chat_keeper=ChatKeeper(conversation, chats, keeper),
        conversation=conversation,
        family=Family(),
        models=ModelList(),
        downloads=LateDownloads(session),
        media=MediaShelf(session),
        labs=LabWorks(lambda: store.data),
        quickening=Quickening(session, lambda: store.settings.compute.quick_steps),
    )
