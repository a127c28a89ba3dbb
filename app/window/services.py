"""What outlives the parts that are seen: those are made anew when the window speaks another language."""

from __future__ import annotations

from typing import NamedTuple

from app.control.history import History
from app.control.labs.lab_windows import LabJobs
from app.control.model_list import ModelList
from app.control.persistence import ChatSaver, SettingsSaver
from app.control.run_navigation import RunNavigation
from app.session.kernel_builder import KernelBuilder
from app.session.lazy_downloads import LazyDownloads
from app.session.media_cache import MediaCache
from app.session.session import Session
from app.state.conversation import Conversation
from app.state.run_tree import RunTrees
from app.storage.chat_file import ChatStore, claim_chat
from app.storage.settings_file import SettingsStore
from app.window.language_switch import LanguageSwitch


class AppServices(NamedTuple):
    """From the window's first assembly to its end: what runs, what is known, what is kept. None of it is drawn."""

    store: SettingsStore
    session: Session
    language_switch: LanguageSwitch
    settings_saver: SettingsSaver
    history: History
    run_navigation: RunNavigation
    chat_store: ChatStore
    chat_saver: ChatSaver
    conversation: Conversation
    family: RunTrees
    models: ModelList
    downloads: LazyDownloads
    media: MediaCache
    labs: LabJobs
    kernel_builder: KernelBuilder


def create_services(store: SettingsStore, session: Session, switch: LanguageSwitch) -> AppServices:
    """All of it, with the chat as it was left."""
    keeper, chats, conversation = SettingsSaver(store), claim_chat(store.folder), Conversation()
    chats.restore(conversation)
    history = History(session, lambda: store.data_folder, store.settings.history, keeper)
    return AppServices(
        store=store,
        session=session,
        language_switch=switch,
        settings_saver=keeper,
        history=history,
        run_navigation=RunNavigation(session, history),
        chat_store=chats,
        chat_saver=ChatSaver(conversation, chats, keeper),
        conversation=conversation,
        family=RunTrees(),
        models=ModelList(),
        downloads=LazyDownloads(session),
        media=MediaCache(session),
        labs=LabJobs(lambda: store.data_folder),
        kernel_builder=KernelBuilder(session, lambda: store.settings.compute.quick_steps),
    )
