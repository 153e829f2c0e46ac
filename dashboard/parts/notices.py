"""What a reader must know before the numbers."""

from __future__ import annotations

import streamlit as st

from pointsman.config import Config


def sandbox_banner(config: Config) -> None:
    """Says that the workers are simulated, where they are."""
    if config.sandbox is not None:
        st.warning(
            "Simulated workers: this pool is the sandbox; nothing here is a claim about real models.",
            icon=":material/science:",
        )
