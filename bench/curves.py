#!/usr/bin/env python3
"""Draws curves as an SVG, with no package: python3 bench/curves.py text|images result.json picture.svg

The input is a file of train_text.py or train_images.py. A line is the mean of the steps around, the faint one below it
every step's own loss."""
import json
import sys

WIDE, HIGH, LEFT, TOP, RIGHT, BOTTOM = 860, 400, 62, 46, 20, 46
COLOURS = ("#1f5fa8", "#d9822b", "#2f8f4e", "#9c3a8c")


def smooth(points, reach):
    """The mean of the points at most `reach` places away."""
    values = [value for _, value in points]
    found = []
    for i, (at, _) in enumerate(points):
        near = values[max(0, i - reach):i + reach + 1]
        found.append((at, sum(near) / len(near)))
    return found


def ticks(low, high):
    """About six round numbers from low to high."""
    size = 10 ** len(str(int(high - low))) / 1000
    step = next(size * by for by in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if (high - low) / (size * by) <= 7)
    first = -(-low // step)
    return [round((first + i) * step, 6) for i in range(8) if (first + i) * step <= high * (1 + 1e-9)]


class Picture:
    """A plot with x from `left` to `right` and y from `low` to `high`."""

    def __init__(self, title, x, y, left, right, low, high):
        self.left, self.right, self.low, self.high = left, right, low, high
        self.named = 0
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}" font-family="sans-serif"'
                      ' font-size="12">', f'<rect width="{WIDE}" height="{HIGH}" fill="white"/>',
                      self.text(LEFT, 20, title, "start", 'font-size="15" font-weight="bold"')]
        for value in ticks(left, right):
            at = self.x(value)
            self.parts += [f'<line x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{HIGH - BOTTOM}" stroke="#eee"/>',
                           self.text(at, HIGH - BOTTOM + 16, f"{value:g}")]
        for value in ticks(low, high):
            at = self.y(value)
            self.parts += [f'<line x1="{LEFT}" y1="{at:.1f}" x2="{WIDE - RIGHT}" y2="{at:.1f}" stroke="#eee"/>',
                           self.text(LEFT - 6, at + 4, f"{value:g}", "end")]
        self.parts += [f'<rect x="{LEFT}" y="{TOP}" width="{WIDE - LEFT - RIGHT}" height="{HIGH - TOP - BOTTOM}"'
                       ' fill="none" stroke="#888"/>', self.text((LEFT + WIDE - RIGHT) / 2, HIGH - 10, x),
                       self.text(LEFT, TOP - 8, y, "start")]

    def x(self, value):
        return LEFT + (value - self.left) / (self.right - self.left) * (WIDE - LEFT - RIGHT)

    def y(self, value):
        return HIGH - BOTTOM - (value - self.low) / (self.high - self.low) * (HIGH - TOP - BOTTOM)

    @staticmethod
    def text(x, y, words, anchor="middle", more=""):
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{words}</text>'

    def name(self, words, colour, dash=""):
        at = TOP + 20 + 18 * self.named
        self.named += 1
        self.parts += [f'<line x1="{WIDE - 330}" y1="{at - 4}" x2="{WIDE - 304}" y2="{at - 4}" stroke="{colour}"'
                       f' stroke-width="2" {dash}/>', self.text(WIDE - 298, at, words, "start")]

    def line(self, words, points, colour, dashed=False, faint=()):
        dash = 'stroke-dasharray="6 4"' if dashed else ""
        for row, width, opacity in ((faint, 1, 0.18), (points, 2, 1)):
            if row:
                path = " ".join(f"{self.x(a):.1f},{self.y(min(max(b, self.low), self.high)):.1f}" for a, b in row)
                self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"'
                                  f' stroke-opacity="{opacity}" {dash if width == 2 else ""}/>')
        self.name(words, colour, dash)

    def dots(self, words, points, colour):
        for a, b in points:
            self.parts.append(f'<circle cx="{self.x(a):.1f}" cy="{self.y(b):.1f}" r="4" fill="{colour}"/>')
        self.name(words, colour)

    def mark(self, at, words):
        self.parts += [f'<line x1="{self.x(at):.1f}" y1="{TOP}" x2="{self.x(at):.1f}" y2="{HIGH - BOTTOM}" '
                       f'stroke="#b00"'
                       ' stroke-dasharray="2 3"/>',
                       self.text(self.x(at) + 4, HIGH - BOTTOM - 8, words, "start", 'fill="#b00"')]

    def save(self, path):
        with open(path, "w") as file:
            file.write("\n".join(self.parts + ["</svg>"]) + "\n")


def series(found):
    return sorted((int(step), value) for step, value in found.items())


def text(result, path):
    ours, theirs, held = series(result["par"]), series(result["torch"]), series(result["held"])
    steps = ours[-1][0]
    top = max(value for _, value in ours)
    picture = Picture("A GPT of %.1f M parameters learns the Jargon File: pp 2 x dp 2" % (result["parameters"] / 1e6),
                      "step", "loss, nats a byte", 0, steps, 1 if min(v for _, v in ours) > 1 else 0, top)
    reach = max(1, steps // 100)
    picture.line("Par, four ranks", smooth(ours, reach), COLOURS[0], faint=ours)
    if theirs:
        picture.line(f"PyTorch, same weights and data, {len(theirs)} steps", smooth(theirs, reach), COLOURS[1], True)
    picture.dots("Par on text held out", held, COLOURS[2])
    picture.mark(result["killed"], "killed; resumed from step %d" % result["resumed_from"])
    picture.save(path)


def images(result, path):
    rows = {name: series(found) for name, found in result["losses"].items()}
    steps = max(row[-1][0] for row in rows.values())
    top = max(row[0][1] for row in rows.values())
    picture = Picture("A convolutional net with batch norm learns handwritten digits", "step", "loss", 0, steps, 0, top)
    for i, (name, row) in enumerate(rows.items()):
        words = f"{name}: {result['correct'][name]} of {result['held']} held out right"
        picture.line(words, smooth(row, max(1, steps // 100)), COLOURS[i], i > 0)
    picture.save(path)


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("text", "images"):
        sys.exit(__doc__)
    with open(sys.argv[2]) as file:
        (text if sys.argv[1] == "text" else images)(json.load(file), sys.argv[3])


if __name__ == "__main__":
    main()
