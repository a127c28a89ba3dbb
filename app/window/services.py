"""What outlives the parts that are seen: those are made anew when the window speaks another language."""

from __future__ import annotations

from typing import NamedTuple

from app.control.history import History
from app.control.labs.lab_windows import LabWorks
from app.control.model_list import ModelList
from app.control.persistence import ChatSaver, SettingsSaver
from app.control.run_navigation import RunNavigation
from app.session.kernel_builder import KernelBuilder
from app.session.lazy_downloads import LateDownloads
from app.session.media_cache import MediaCache
from app.session.session import Session
from app.state.conversation import Conversation
from app.state.run_tree import Family
from app.storage.chat_file import ChatStore, claim_chat
from app.storage.settings_file import SettingsStore
from app.window.language_switch import LanguageSwitch


class AppServices(NamedTuple):
    """From the window's first assembly to its end: what runs, what is known, what is kept. None of it is drawn."""

    store: SettingsStore
    session: Session
    switch: LanguageSwitch
    keeper: SettingsSaver
    history: History
    steps: RunNavigation
    chats: ChatStore
    chat_keeper: ChatSaver
    conversation: Conversation
    family: Family
    models: ModelList
    downloads: LateDownloads
    media: MediaCache
    labs: LabWorks
    quickening: KernelBuilder


def begin(store: SettingsStore, session: Session, switch: LanguageSwitch) -> AppServices:
    """All of it, with the chat as it was left."""
    keeper, chats, conversation = SettingsSaver(store), claim_chat(store.folder), Conversation()
    chats.restore(conversation)
    history = History(session, lambda: store.data, store.settings.history, keeper)
    return AppServices(
        store=store,
        session=session,
        switch=switch,
        keeper=keeper,
        history=history,
        steps=RunNavigation(session, history),
        chats=chats,
        chat_keeper=ChatSaver(conversation, chats, keeper),
        conversation=conversation,
        family=Family(),
        models=ModelList(),
        downloads=LateDownloads(session),
        media=MediaCache(session),
        labs=LabWorks(lambda: store.data),
        quickening=KernelBuilder(session, lambda: store.settings.compute.quick_steps),
    )
