"""From what a router LLM wrote to the worker it meant: option letters, names, and aliases of names.

An alias differs from a name in the case of ASCII letters and in its separators (`worker_a`, `WORKER A`
for `worker-a`). Look-alikes of other scripts, numbers of positions and workers that are not offered
name nobody.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property

_SEPARATORS = r"[-_.:/\s]+"
_SEPARATOR = re.compile(_SEPARATORS)
_MAX_VALUE = 200  # longer is no value but running text
_SHORT_NAME = 2  # such names are words of running text too: there they count only when quoted
_WRAPPING = " \t\r\n\"'`*_“”‘’«»"
_LABEL = re.compile(
    r"(?i:(?:the\s+)?(?:(?:final|best|my)\s+)?(?:option|answer|choice|worker|letter|pick)"
    r"(?:\s+is\s+|\s*[:=]\s*|\s+))(?=\S)"
)
_BETWEEN = re.compile(r"\s*[,;/|&]\s*|\s+(?:or|and)\s+", re.IGNORECASE)
_IN_PROSE = re.compile(
    r"(?i:\b(?:option|answer|choice|letter|worker|pick|choose|select)\b)[\s:=]*(?:(?i:is)\b)?[\s:=\"'`*(\[]*([A-Z])(?![\w'’])"
    r"|\*\*([A-Z])\*\*|`([A-Z])`|\"([A-Z])\"|\(([A-Z])\)|\[([A-Z])\]"
    r"|^[ \t]*([A-Z])(?:[).:]|[ \t]*$)",
    re.MULTILINE,
)


class Offered:
    """The workers offered in one prompt, findable by what a router LLM may call them."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = options
        self.names = frozenset(options.values())

    @cached_property
    def _aliases(self) -> dict[str, set[str]]:
        aliases: dict[str, set[str]] = {}
        for name in self.names:
            aliases.setdefault(_alias(name), set()).add(name)
        return aliases

    @cached_property
    def _in_text(self) -> re.Pattern[str]:
        # Longest first, so that a name which begins another never takes its place.
        bodies = [_body(form) for form in sorted(self._aliases, key=len, reverse=True)]
        return re.compile(rf"(?<!\w)(?<![\w][-_.:/])(?:{'|'.join(bodies)})(?!\w)(?![-_.:/]+\w)")

    def resolve(self, value: str) -> set[str]:
        """The workers that `value`, a short text that should be one option or name, may mean."""
        text = value.strip()
        if len(text) > _MAX_VALUE:
            return set()
        if found := self._of_labelled(text):
            return found
        several = [self._of_labelled(piece) for piece in _BETWEEN.split(text)]
        return set().union(*several) if all(several) else set()

    def mentioned(self, text: str) -> set[str]:
        """The workers named in running text, and the options that are spelt out as such in it."""
        found: set[str] = set()
        rest = text
        for match in self._in_text.finditer(text):
            found |= self._aliases[_alias(match.group())]
        if found:
            rest = self._in_text.sub(" ", text)
        for match in _IN_PROSE.finditer(rest):
            letter = next(group for group in match.groups() if group)
            if letter in self.options:
                found.add(self.options[letter])
        return found

    def _of_labelled(self, text: str) -> set[str]:
        label = _LABEL.match(text.strip(_WRAPPING))
        unlabelled = text.strip(_WRAPPING)[label.end() :] if label else ""
        return self._of_wrapped(text) or self._of_wrapped(unlabelled)

    def _of_wrapped(self, text: str) -> set[str]:
        inner = text.strip(_WRAPPING)
        forms = (text, inner, inner.rstrip(".,;!" + _WRAPPING), inner.strip(".,;:!()[]{}<>" + _WRAPPING))
        return next((found for form in forms if (found := self._of_form(form))), set())

    def _of_form(self, text: str) -> set[str]:
        if text in self.options:
            return {self.options[text]}
        if text in self.names:
            return {text}
        if named := self._aliases.get(_alias(text)):
            return named
        letters = [letter for letter in (text.upper(), text.lower()) if letter in self.options and text.isascii()]
        return {self.options[letter] for letter in letters}


def _body(alias: str) -> str:
    pattern = r"[-_.:/]".join(re.escape(piece) for piece in alias.split("-"))
    return rf"(?ai:{pattern})" if len(alias) > _SHORT_NAME else rf"(?<=[\"'`*])(?ai:{pattern})(?=[\"'`*])"


def _alias(name: str) -> str:
    """A form shared by a name and its aliases. Only ASCII is folded, so no other script can match."""
    folded = "".join(char.lower() if char.isascii() else char for char in name)
    return _SEPARATOR.sub("-", folded)
