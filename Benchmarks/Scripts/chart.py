"""Draws charts as SVG, by the standard library alone.

    chart.py curve TITLE X-TITLE Y-TITLE CSV SVG [NAME=Y ...]

`curve` draws each column of the CSV after the first over the first, from nought, and a level line for each NAME=Y.
"""

import csv
import html
import math
import sys

COLOURS = ["#3b6fb6", "#d1742b", "#4c9a5f", "#8a5fb0", "#b04a5a", "#6b7280"]
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#1f2933}.title{font-size:15px;font-weight:600}"
    ".small{font-size:11px;fill:#52606d}.grid{stroke:#e4e7eb}.axis{stroke:#7b8794}"
)


def document(width, height, body):
    """The whole file."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n'
        f'<style>{STYLE}</style>\n<rect width="{width}" height="{height}" fill="#ffffff"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def text(x, y, words, kind="", anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{html.escape(words)}</text>'


def line(x1, y1, x2, y2, kind, more=""):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}" {more}/>'


def step(highest, count=5):
    """A round distance between grid lines, of which about so many come to the highest value."""
    rough = highest / count or 1
    unit = 10 ** math.floor(math.log10(rough))
    return next(unit * times for times in (1, 2, 2.5, 5, 10) if unit * times >= rough)


def number(value):
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:g}"


def bars(title, groups, names, value_title):
    """Horizontal bars: `groups` are (name, values), one value a name, None where there is none."""
    left, right, top, bar, gap = 120, 70, 64, 16, 18
    width = 760
    height = top + sum(len(names) * bar + gap for _ in groups) + 34
    highest = max(value for _, values in groups for value in values if value is not None)
    scale = (width - left - right) / highest
    body = [text(16, 26, title, "title")]
    x = left
    for place, name in enumerate(names):
        body.append(f'<rect x="{x}" y="38" width="10" height="10" fill="{COLOURS[place % len(COLOURS)]}"/>')
        body.append(text(x + 15, 47, name, "small"))
        x += 34 + 6.4 * len(name)
    distance = step(highest)
    for place in range(int(highest / distance) + 1):
        x = left + place * distance * scale
        body.append(line(x, top - 4, x, height - 34, "grid"))
        body.append(text(x, height - 18, number(place * distance), "small", "middle"))
    body.append(text(width - right, height - 4, value_title, "small", "end"))
    y = top
    for group, values in groups:
        body.append(text(left - 10, y + len(names) * bar / 2 + 4, group, "", "end"))
        for place, value in enumerate(values):
            if value is not None:
                colour = COLOURS[place % len(COLOURS)]
                body.append(f'<rect x="{left}" y="{y}" width="{value * scale:.1f}" height="{bar - 3}" fill="{colour}"/>')
                body.append(text(left + value * scale + 5, y + 11, f"{value:.2f}", "small"))
            y += bar
        y += gap
    return document(width, height, body)


def curve(title, x_title, y_title, names, rows, levels=()):
    """Lines over a first column, and level lines."""
    left, right, top, bottom, width, height = 74, 24, 64, 52, 760, 380
    highest = max([value for row in rows for value in row[1:]] + [value for _, value in levels])
    distance = step(highest)
    highest = math.ceil(highest / distance) * distance
    first, last = rows[0][0], rows[-1][0]
    across = lambda x: left + (x - first) / ((last - first) or 1) * (width - left - right)
    up = lambda y: height - bottom - y / highest * (height - top - bottom)
    body = [text(16, 26, title, "title")]
    for place in range(round(highest / distance) + 1):
        y = up(place * distance)
        body.append(line(left, y, width - right, y, "grid"))
        body.append(text(left - 8, y + 4, number(place * distance), "small", "end"))
    distance = step(last - first, 8)
    for place in range(int((last - first) / distance) + 1):
        x = across(first + place * distance)
        body.append(text(x, height - bottom + 18, number(first + place * distance), "small", "middle"))
    body.append(line(left, up(0), width - right, up(0), "axis"))
    for place, (name, value) in enumerate(levels):
        body.append(line(left, up(value), width - right, up(value), "axis", 'stroke-dasharray="5 4"'))
        body.append(text(width - right, up(value) - 6, name, "small", "end"))
    x = left
    for place, name in enumerate(names):
        colour = COLOURS[place % len(COLOURS)]
        points = " ".join(f"{across(row[0]):.1f},{up(row[place + 1]):.1f}" for row in rows)
        body.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        if len(names) > 1:
            body.append(f'<rect x="{x}" y="34" width="10" height="10" fill="{colour}"/>')
            body.append(text(x + 15, 43, name, "small"))
        x += 40 + 6.4 * len(name)
    body.append(text((left + width - right) / 2, height - 12, x_title, "small", "middle"))
    body.append(text(16, 52, y_title, "small"))
    return document(width, height, body)


def main(words):
    if len(words) < 6 or words[0] != "curve":
        raise SystemExit(__doc__)
    _, title, x_title, y_title, source, target, *levels = words
    with open(source, encoding="ascii") as file:
        head, *rows = list(csv.reader(file))
    levels = [(name, float(value)) for name, value in (level.rsplit("=", 1) for level in levels)]
    drawn = curve(title, x_title, y_title, head[1:], [[float(field) for field in row] for row in rows], levels)
    with open(target, "w", encoding="ascii") as file:
        file.write(drawn)


if __name__ == "__main__":
    main(sys.argv[1:])
