"""What commands print: amounts, times, texts from a log."""

from __future__ import annotations

from decimal import Decimal

import pytest

from pointsman.commands.output import cell, milliseconds, print_json, shortened, usd, visible


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (None, None),
        (Decimal(0), "$0.00"),
        (Decimal("12.3456"), "$12.35"),
        (Decimal("1"), "$1.00"),
        ("0.5", "$0.500"),
        (Decimal("0.000063849"), "$0.0000638"),
        (1.5e-7, "$0.000000150"),
    ],
)
def test_amounts_keep_the_digits_that_count(amount, shown):
    assert usd(amount) == shown


@pytest.mark.parametrize(("value", "shown"), [(None, None), (3.4, "3 ms"), (999.4, "999 ms"), (2449, "2.4 s")])
def test_times(value, shown):
    assert milliseconds(value) == shown


def test_unknown_is_a_dash_and_never_zero():
    assert cell(None).plain == "–"
    assert cell(0).plain == "0"


def test_a_logged_text_cannot_move_the_cursor_or_colour_the_terminal():
    assert visible("a\x1b[2Jb\x07\r\nc") == "a\\x1b[2Jb\\x07\\x0d\nc"
    assert cell("[red]x[/red]").plain == "[red]x[/red]"


def test_long_texts_are_shortened_on_one_line():
    assert shortened("a\n b\t c", 20) == "a b c"
    assert shortened("x" * 30, 10) == "x" * 9 + "…"
    assert shortened(None, 10) is None


def test_json_is_one_value_and_a_line_end(capsys):
    print_json({"cost": Decimal("0.10"), "text": "ü"})
    assert capsys.readouterr().out == '{\n  "cost": "0.10",\n  "text": "ü"\n}\n'
