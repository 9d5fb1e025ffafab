"""Figures as SVG: bars in groups, and lines over time."""

import html
import pathlib

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 860, 360, 60, 40, 110, 150
COLOURS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#ff8ab7", "#a463f2", "#97bbf5")


def text(x, y, words, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{html.escape(str(words))}</text>'


def ticks(top):
    step = 10 ** (len(str(int(top))) - 1) if top >= 1 else 0.1
    while top / step > 8:
        step *= 2
    return [i * step for i in range(int(top / step) + 1)]


class Figure:
    """@top: of the y axis."""

    def __init__(self, title, unit, top):
        self.top = top or 1
        self.parts = [text(WIDTH / 2, 20, title, 'text-anchor="middle" font-size="14"')]
        for value in ticks(self.top):
            y = self.y(value)
            self.parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
            self.parts.append(text(LEFT - 6, y + 4, f"{value:g}", 'text-anchor="end"'))
        self.parts.append(text(14, TOP - 8, unit))

    def y(self, value):
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * min(value, self.top) / self.top

    def legend(self, names):
        for i, name in enumerate(names):
            y = TOP + 18 * i
            self.parts.append(
                f'<rect x="{WIDTH - RIGHT + 12}" y="{y}" width="10" height="10" fill="{COLOURS[i % len(COLOURS)]}"/>'
            )
            self.parts.append(text(WIDTH - RIGHT + 28, y + 9, name))

    def write(self, path):
        pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11">'
        body = "\n".join(self.parts)
        pathlib.Path(path).write_text(f'{head}\n<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n')


def bars(path, title, unit, labels, series):
    """@series: name to a value for each label."""
    figure = Figure(title, unit, max((v for values in series.values() for v in values), default=1))
    group = (WIDTH - LEFT - RIGHT) / max(1, len(labels))
    width = 0.8 * group / len(series)
    for i, label in enumerate(labels):
        x = LEFT + group * i + 0.1 * group
        for s, values in enumerate(series.values()):
            y = figure.y(values[i])
            figure.parts.append(
                f'<rect x="{x + s * width:.1f}" y="{y:.1f}" width="{width:.1f}" '
                f'height="{HEIGHT - BOTTOM - y:.1f}" fill="{COLOURS[s % len(COLOURS)]}"/>'
            )
        at = (x + 0.4 * group, HEIGHT - BOTTOM + 12)
        turn = f'text-anchor="end" transform="rotate(-40 {at[0]:.1f} {at[1]:.1f})"'
        figure.parts.append(text(*at, label, turn))
    figure.legend(series)
    figure.write(path)


def lines(path, title, unit, times, series):
    """@series: name to a value for each time, in seconds."""
    figure = Figure(title, unit, max((v for values in series.values() for v in values), default=1))
    span = (times[-1] if times else 1) or 1
    for s, values in enumerate(series.values()):
        points = " ".join(
            f"{LEFT + (WIDTH - LEFT - RIGHT) * t / span:.1f},{figure.y(v):.1f}" for t, v in zip(times, values)
        )
        figure.parts.append(
            f'<polyline points="{points}" fill="none" stroke="{COLOURS[s % len(COLOURS)]}" stroke-width="1.5"/>'
        )
    for i in range(5):
        x = LEFT + (WIDTH - LEFT - RIGHT) * i / 4
        figure.parts.append(text(x, HEIGHT - BOTTOM + 16, f"{span * i / 4:.1f} s", 'text-anchor="middle"'))
    figure.legend(series)
    figure.write(path)
