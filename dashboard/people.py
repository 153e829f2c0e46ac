"""Who is looking, with which role: the account of this machine, a name that was typed, or a verified address.

With `auth = "oidc"` roles stand in the secrets file under `[pointsman.roles]` (address or `@domain` = role); who may
enter and is not named there only looks. Else the role is `[dashboard] role`, and the name is what a person says it is:
with one password for all, names tell colleagues apart and prove nothing.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping, Sequence
from typing import cast

import streamlit as st

from pointsman.actions.actor import Actor
from pointsman.config import Config
from pointsman.ids import new_id
from pointsman.words import ActorRole, members

NAME = "person"
SESSION = "session_token"


def visitor(config: Config) -> Actor:
    """The person of this session. In the sidebar, where there is no better proof of a name, it can be changed."""
    if config.dashboard.auth == "oidc":
        email = str(st.user.to_dict().get("email") or "").lower()
        return Actor(email, role_of(email, st.secrets["pointsman"].get("roles", {})))
    if NAME not in st.session_state:
        st.session_state[NAME] = account()
    st.session_state[NAME] = st.session_state[NAME]  # kept while the page that draws the field is another
    named = st.sidebar.text_input("Your name", key=NAME, max_chars=100, help="Stands with what you do here.").strip()
    return Actor(named or account(), config.dashboard.role)


def role_of(email: str, roles: Mapping[str, str]) -> ActorRole:
    """The role of an address, or of its domain; `viewer` where neither is named, or the word is no role."""
    named = {entry.lower(): role for entry, role in roles.items()}
    role = named.get(email, named.get(f"@{email.rpartition('@')[2]}", "viewer"))
    return cast(ActorRole, role) if role in members(ActorRole) else "viewer"


def projects_of(config: Config, actor: Actor) -> frozenset[str] | None:
    """The names of the projects that this person may see; None: all of them.

    With OIDC they stand under `[pointsman.projects]` of the secrets file (address or `@domain` = a list of names);
    where that table is, whoever is not in it sees none. Else they are `[dashboard] projects`, empty for all.
    """
    if config.dashboard.auth != "oidc":
        return frozenset(config.dashboard.projects) or None
    table = st.secrets["pointsman"].get("projects")
    return None if table is None else named_for(actor.name, table)


def named_for(email: str, table: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """What a table by address or `@domain` has for an address, both together."""
    known = {entry.lower(): names for entry, names in table.items()}
    return frozenset([*known.get(email, ()), *known.get(f"@{email.rpartition('@')[2]}", ())])


def may(actor: Actor, role: ActorRole) -> bool:
    """Whether a button for `role` is worth offering; the action itself checks again."""
    order = members(ActorRole)
    return order.index(actor.role) >= order.index(role)


def session() -> str:
    """A token of this browser session: what is locked by a person is locked in one of their windows."""
    if SESSION not in st.session_state:
        st.session_state[SESSION] = new_id()
    return str(st.session_state[SESSION])


def account() -> str:
    """The account that runs the dashboard."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"
