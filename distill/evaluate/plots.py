"""Plots as PNG, drawn with Pillow: dots with intervals, one line for each thing compared, and a curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

WIDTH, LEFT, RIGHT, ROW, TOP = 900, 300, 40, 34, 60
INK, FAINT, MARK = (30, 30, 30), (210, 210, 210), (20, 90, 160)


@dataclass(frozen=True)
class Dot:
    """A value with its interval; both ends equal where there is none."""

    name: str
    value: float
    low: float
    high: float


def dots(title: str, lines: Sequence[Dot], unit: str, zero: float | None = None) -> bytes:
    """A row for each dot; `zero` draws a vertical line, such as no difference."""
    ends = [end for line in lines for end in (line.low, line.high)] + ([] if zero is None else [zero])
    scale = _Scale(min(ends), max(ends), LEFT, WIDTH - RIGHT)
    height = TOP + ROW * len(lines) + 50
    image, draw = _canvas(title, height)
    _axis(draw, scale, height - 40, unit)
    if zero is not None:
        draw.line([(scale.at(zero), TOP - 8), (scale.at(zero), height - 40)], fill=INK)
    for number, line in enumerate(lines):
        y = TOP + ROW * number + ROW // 2
        draw.text((12, y - 8), line.name[:40], fill=INK, font=_font(15))
        draw.line([(scale.at(line.low), y), (scale.at(line.high), y)], fill=MARK, width=3)
        x = scale.at(line.value)
        draw.ellipse([(x - 5, y - 5), (x + 5, y + 5)], fill=MARK)
    return _png(image)


def curve(title: str, points: Sequence[tuple[float, float]], across: str, up: str) -> bytes:
    """Points joined from left to right."""
    ordered = sorted(points)
    height = 460
    xs = _Scale(ordered[0][0], ordered[-1][0], 90, WIDTH - RIGHT)
    ys = _Scale(min(y for _, y in ordered), max(y for _, y in ordered), height - 60, TOP)
    image, draw = _canvas(title, height)
    _axis(draw, xs, height - 40, across)
    for tick in ys.ticks():
        draw.line([(90, ys.at(tick)), (WIDTH - RIGHT, ys.at(tick))], fill=FAINT)
        draw.text((12, ys.at(tick) - 8), f"{tick:.3g}", fill=INK, font=_font(13))
    draw.text((12, TOP - 24), up, fill=INK, font=_font(13))
    path = [(xs.at(x), ys.at(y)) for x, y in ordered]
    draw.line(path, fill=MARK, width=2)
    for x, y in path:
        draw.ellipse([(x - 3, y - 3), (x + 3, y + 3)], fill=MARK)
    return _png(image)


class _Scale:
    """From values to pixels, with a twentieth of the range free at both ends."""

    def __init__(self, low: float, high: float, first: float, last: float) -> None:
        room = (high - low) * 0.05 or max(abs(high), 1.0) * 0.05
        self.low, self.high, self.first, self.last = low - room, high + room, first, last

    def at(self, value: float) -> float:
        return self.first + (value - self.low) / (self.high - self.low) * (self.last - self.first)

    def ticks(self) -> list[float]:
        return [self.low + (self.high - self.low) * part / 5 for part in range(1, 5)]


def _canvas(title: str, height: int) -> tuple[Any, Any]:
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (WIDTH, height), "white")
    draw = ImageDraw.Draw(image)
    draw.text((12, 12), title, fill=INK, font=_font(18))
    return image, draw


def _axis(draw: Any, scale: _Scale, y: float, unit: str) -> None:
    for tick in scale.ticks():
        draw.line([(scale.at(tick), TOP - 8), (scale.at(tick), y)], fill=FAINT)
        draw.text((scale.at(tick) - 16, y + 4), f"{tick:.3g}", fill=INK, font=_font(13))
    draw.text((12, y + 4), unit, fill=INK, font=_font(13))


def _font(size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size)


def _png(image: Any) -> bytes:
    target = BytesIO()
    image.save(target, "PNG", optimize=True)
    return target.getvalue()
