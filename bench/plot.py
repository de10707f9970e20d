"""Draws a small chart as SVG: lines, points, a logarithmic vertical axis."""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 640, 380
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 40, 52
COLOURS = ["#1b6ca8", "#c8553d", "#3a7d44", "#7b4f9d"]


def ticks_linear(high):
    """About six round numbers from 0 to `high`."""
    step = 10.0 ** math.floor(math.log10(high / 5))
    step *= next(factor for factor in (1, 2, 5, 10) if high / (step * factor) <= 6)
    return [i * step for i in range(int(high / step + 1e-9) + 1)]


def ticks_log(low, high):
    """1, 2, 5 of each power of ten between the limits."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [f * 10.0**p for p in powers for f in (1, 2, 5) if low <= f * 10.0**p <= high]


def draw(path, title, x_label, y_label, series):
    """series: (label, [(x, y)], "line" or "points"), each in a colour of its own."""
    every = [point for _, points, _ in series for point in points]
    high_x = max(x for x, _ in every) * 1.03
    low_y, high_y = min(y for _, y in every) / 1.3, max(y for _, y in every) * 1.3

    def at(x, y):
        right = LEFT + x / high_x * (WIDTH - LEFT - RIGHT)
        share = math.log(y / low_y) / math.log(high_y / low_y)
        return right, HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
           f'font-size="12">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="22" font-size="14" font-weight="bold">{escape(title)}</text>']
    for x in ticks_linear(high_x):
        px, py = at(x, low_y)
        out.append(f'<line x1="{px:.1f}" y1="{TOP}" x2="{px:.1f}" y2="{py:.1f}" stroke="#e4e4e4"/>')
        out.append(f'<text x="{px:.1f}" y="{py + 17:.1f}" text-anchor="middle">{x:g}</text>')
    for y in ticks_log(low_y, high_y):
        px, py = at(0, y)
        out.append(f'<line x1="{px:.1f}" y1="{py:.1f}" x2="{WIDTH - RIGHT}" y2="{py:.1f}" stroke="#e4e4e4"/>')
        out.append(f'<text x="{px - 7:.1f}" y="{py + 4:.1f}" text-anchor="end">{y:g}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 14}" text-anchor="middle">{escape(x_label)}</text>')
    out.append(f'<text transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">'
               f'{escape(y_label)}</text>')
    for index, (label, points, kind) in enumerate(series):
        colour, places = COLOURS[index % len(COLOURS)], [at(x, y) for x, y in points]
        key_y = TOP + 16 + 19 * index
        if kind == "line":
            steps = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            out.append(f'<polyline points="{steps}" fill="none" stroke="{colour}" stroke-width="2"/>')
            out.append(f'<line x1="{LEFT + 12}" y1="{key_y - 4}" x2="{LEFT + 34}" y2="{key_y - 4}" stroke="{colour}" '
                       'stroke-width="2"/>')
        else:
            places.append((LEFT + 23, key_y - 4))
            out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"/>' for x, y in places]
        out.append(f'<text x="{LEFT + 42}" y="{key_y}">{escape(label)}</text>')
    out.append("</svg>")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n")
