"""The reference of configuration keys: complete, each key described once, types and defaults as in the model."""

from __future__ import annotations

from pointsman.config.descriptions import DESCRIPTIONS, SECTIONS
from pointsman.config.model import Config
from pointsman.config.reference import markdown, reference


def by_key():
    return {f"{section.name}.{key.key}": key for section in reference() for key in section.keys}


def test_every_section_and_key_is_described():
    names = [section.name for section in reference()]
    assert set(names) == set(SECTIONS)
    assert names[0] == "database"
    assert {name.split(".")[0].removesuffix("[]") for name in names} == set(Config.model_fields)
    assert all(key.description and key.type for key in by_key().values())


def test_no_description_is_of_a_key_that_is_gone():
    described = {key for key in DESCRIPTIONS if not key.startswith("price.")}
    assert described <= set(by_key())
    assert {"price.input", "price.output", "price.cached_input"} <= set(DESCRIPTIONS)


def test_types_and_defaults_are_the_models():
    keys = by_key()
    shown = {
        name: (keys[name].type, keys[name].default)
        for name in (
            "gateway.workers", "gateway.grace", "router.chain", "router.base_url", "router.price", "router.rules",
            "log.store_text", "router.price.input", "workers[].name", "workers[].capabilities", "workers[].price",
        )
    }  # fmt: skip
    assert shown == {
        "gateway.workers": ("whole number", "1"),
        "gateway.grace": ("seconds", "20"),
        "router.chain": (
            'list of "learned" | "harness" | "classic" | "rule" | "default"',
            '["harness", "classic", "rule", "default"]',
        ),
        "router.base_url": ("http(s) address", ""),
        "router.price": ("table", ""),
        "router.rules": ("list of tables", "[]"),
        "log.store_text": ("true or false", "true"),
        "router.price.input": ("USD", None),
        "workers[].name": ("name", None),
        "workers[].capabilities": (
            'list of "tools" | "images" | "json_schema" | "logprobs" | "audio" | "reasoning" | "embeddings"',
            "[]",
        ),
        "workers[].price": ("table", ""),
    }


def test_headings_are_toml():
    headings = {section.name: section.heading for section in reference()}
    assert headings["workers[]"] == "[[workers]]"
    assert headings["workers[].endpoints[]"] == "[[workers.endpoints]]"
    assert headings["workers[].price"] == "[workers.price]"
    assert headings["router"] == "[router]"


def test_the_page_has_a_row_for_every_key():
    rows = [line for line in markdown().splitlines() if line.startswith("| `")]
    assert len(rows) == len([key for section in reference() for key in section.keys])
