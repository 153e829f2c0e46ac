"""The compiler: sentinels, refusals, the command, and that the template that ships is what dspy makes."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from harness.optimise.compile import DEFAULT_FILE, as_text, compile_default, compile_programs, difference, main
from harness.optimise.program import RouterProgram, default_instructions
from harness.routing.template import default_template, template_of
from pointsman.errors import UserError


def run(*argv: str) -> tuple[int, str]:
    out = io.StringIO()
    return main(argv, Console(file=out, width=200)), out.getvalue()


def test_the_template_that_ships_is_what_dspy_makes() -> None:
    assert difference(DEFAULT_FILE.read_text(encoding="utf-8"), as_text(compile_default())) == ""
    assert default_template().instructions == default_instructions()


def test_check_tells_a_changed_template_and_writing_mends_it(tmp_path: Path) -> None:
    file = tmp_path / "template.json"
    assert run("--check", "--file", str(file))[0] == 1
    file.write_text(DEFAULT_FILE.read_text(encoding="utf-8").replace("the letter of", "one letter of"))
    code, out = run("--check", "--file", str(file))
    assert code == 1
    assert "one letter of" in out and "+++ compiled" in out
    assert run("--file", str(file)) == (0, "wrote template.json\n")
    assert run("--check", "--file", str(file))[0] == 0
    assert file.read_bytes() == DEFAULT_FILE.read_bytes()


def test_another_release_of_dspy_that_formats_alike_is_no_difference() -> None:
    compiled = compile_default()
    assert difference(as_text({**compiled, "dspy": "3.4.9"}), as_text(compiled)) == ""
    assert difference(as_text({**compiled, "adapter": "XMLAdapter"}), as_text(compiled)) != ""


def test_two_compilations_have_one_hash_and_other_instructions_another() -> None:
    first, second = template_of(compile_default()), template_of(compile_default())
    assert first.hash == second.hash
    assert len(first.hash) == 64
    assert template_of(compile_default("Choose.")).hash != first.hash


def test_a_sentinel_in_the_instructions_does_no_harm_but_in_a_demo_is_refused() -> None:
    template_of(compile_default("Mind @pointsman-slot-request@."))
    demo = {"request": "@pointsman-slot-request@", "context": "", "workers": "[]", "option": "A"}
    with pytest.raises(UserError, match="option: the place of `request` stands 2 times in the prompt, expected once"):
        compile_default(demos={"option": [demo]})


def test_a_marker_of_custom_types_in_a_demo_is_refused() -> None:
    text = '<<CUSTOM-TYPE-START-IDENTIFIER>>[{"type": "text", "text": "x"}]<<CUSTOM-TYPE-END-IDENTIFIER>>'
    demo = {"request": text, "context": "", "workers": "[]", "option": "A"}
    with pytest.raises(UserError, match="option: a demo holds DSPy's marker of a custom type, expected plain text"):
        compile_default(demos={"option": [demo]})


def test_programs_must_be_one_per_mode_and_share_instructions() -> None:
    option, scores = RouterProgram("option", "One."), RouterProgram("scores", "Two.")
    with pytest.raises(UserError, match="one program per mode"):
        compile_programs([option, scores])
    with pytest.raises(UserError, match="one program per mode"):
        compile_programs([option])


def test_the_file_is_readable_json_of_the_stated_shape() -> None:
    raw = json.loads(DEFAULT_FILE.read_text(encoding="utf-8"))
    assert raw["format"] == 1 and raw["adapter"] == "ChatAdapter" and raw["dspy"].startswith("3.4.")
    roles = {mode: [message["role"] for message in messages] for mode, messages in raw["modes"].items()}
    assert roles == {"option": ["system", "user"], "scores": ["system", "user"]}
