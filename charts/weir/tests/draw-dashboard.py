#!/usr/bin/env python3
"""draw-dashboard.py PROMETHEUS SECONDS >PAGE.html: the dashboard of files/, without a Grafana.

Each panel is asked of that Prometheus by the dashboard's own expressions, for the last SECONDS, and drawn as
a plain page: the same titles, places and units, but not Grafana's looks. For pictures of a real dashboard's data, and
to see with one's own eyes that every panel has some.
"""
import html
import json
import os
import re
import sys
import time
import urllib.parse
import urllib.request

COLUMN, ROW, GAP = 62, 30, 8
COLOURS = ["#73bf69", "#f2cc0c", "#8ab8ff", "#ff780a", "#f2495c", "#b877d9", "#37872d", "#1f60c4"]


def ask(server, path, **parameters):
    url = f"{server}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)["data"]["result"]


def fill(expression):
    expression = expression.replace("$__rate_interval", "20s")
    return re.sub(r"\$(namespace|gpu)", ".*", expression)


def short(labels):
    return {name: re.sub(r"^(GPU-[0-9a-f]{4}).*([0-9a-f]{4})$", r"\1…\2", value) for name, value in labels.items()}


def name_of(target, labels):
    text = target.get("legendFormat") or ""
    return re.sub(r"\{\{(\w+)\}\}", lambda m: short(labels).get(m[1], ""), text) or "value"


def number(value, unit):
    if value != value:
        return "–"
    if unit == "percentunit":
        return f"{100 * value:.0f} %"
    if unit == "bytes":
        return f"{value / 2**20:.1f} MiB"
    if unit == "s":
        return f"{1000 * value:.1f} ms" if value < 1 else f"{value:.2f} s"
    return f"{value:.3g}"


def lines(panel, server, seconds, width, height):
    unit = panel.get("fieldConfig", {}).get("defaults", {}).get("unit", "")
    now = time.time()
    series = []
    for target in panel["targets"]:
        for result in ask(server, "query_range", query=fill(target["expr"]), start=now - seconds, end=now, step=2):
            points = [(float(t), float(v)) for t, v in result["values"] if v not in ("NaN", "+Inf", "-Inf")]
            if points:
                series.append((name_of(target, result["metric"]), points))
    if not series:
        return '<div class="none">no data</div>'
    top = max(max(v for _, v in points) for _, points in series) or 1
    plot = height - 18 * min(len(series), 5) - 8
    out = [f'<svg width="{width}" height="{plot}">']
    for part in (0, 0.5, 1):
        y = plot - 6 - part * (plot - 18)
        out.append(f'<line x1="44" x2="{width}" y1="{y:.0f}" y2="{y:.0f}" class="grid"/>'
                   f'<text x="40" y="{y + 4:.0f}" class="axis">{number(part * top, unit)}</text>')
    for i, (_, points) in enumerate(series):
        path = " ".join(f"{46 + (t - now + seconds) / seconds * (width - 48):.1f},"
                        f"{plot - 6 - v / top * (plot - 18):.1f}" for t, v in points)
        out.append(f'<polyline points="{path}" stroke="{COLOURS[i % len(COLOURS)]}"/>')
    out.append("</svg>")
    for i, (name, points) in enumerate(series[:5]):
        out.append(f'<div class="legend"><b style="background:{COLOURS[i % len(COLOURS)]}"></b>'
                   f"{html.escape(name)}: {number(points[-1][1], unit)}</div>")
    return "".join(out)


def stat(panel, server):
    results = ask(server, "query", query=fill(panel["targets"][0]["expr"]))
    unit = panel.get("fieldConfig", {}).get("defaults", {}).get("unit", "")
    return f'<div class="stat">{number(float(results[0]["value"][1]), unit) if results else "–"}</div>'


def table(panel, server):
    names = next(t for t in panel["transformations"] if t["id"] == "organize")["options"]["renameByName"]
    keys, rows, columns = ["namespace", "pod", "container", "gpu"], {}, []
    for target in panel["targets"]:
        column = names[f"Value #{target['refId']}"]
        columns.append(column)
        for result in ask(server, "query", query=fill(target["expr"])):
            rows.setdefault(tuple(short(result["metric"]).get(key, "") for key in keys), {})[column] = result["value"][1]
    rule = re.compile(panel["fieldConfig"]["overrides"][0]["matcher"]["options"])
    out = ["<table><tr>", *(f"<th>{html.escape(name)}</th>" for name in keys + columns), "</tr>"]
    for key, values in sorted(rows.items()):
        cells = [number(float(values[c]), "percentunit" if rule.search(c) and "/s" not in c else "") if c in values else ""
                 for c in columns]
        out.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in [*key, *cells]) + "</tr>")
    return "".join(out) + "</table>"


STYLE = """body{background:#111217;color:#ccccdc;font:12px sans-serif;margin:8px;position:relative}
.panel{position:absolute;background:#181b1f;border:1px solid #25272c;overflow:hidden;box-sizing:border-box;padding:4px 6px}
.row{position:absolute;font-size:14px;padding-top:6px}h3{font-size:12px;margin:0 0 4px}.stat{font-size:32px;text-align:center;color:#73bf69}
polyline{fill:none;stroke-width:1.4}.grid{stroke:#2c3235}.axis{fill:#8e8e99;font-size:10px;text-anchor:end}
.legend{height:18px;white-space:nowrap}.legend b{display:inline-block;width:10px;height:3px;margin:0 6px 3px 0}
.none{color:#8e8e99;text-align:center;padding-top:30px}table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:3px 8px;border-bottom:1px solid #25272c}"""


def main():
    server, seconds = sys.argv[1], int(sys.argv[2])
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "..", "files", "dashboard.json"), encoding="utf-8") as file:
        panels = json.load(file)["panels"]
    print(f'<!doctype html><meta charset="utf-8"><style>{STYLE}</style><body>')
    for panel in panels:
        at = panel["gridPos"]
        width, height = at["w"] * COLUMN - GAP, at["h"] * ROW - GAP
        place = f'style="left:{at["x"] * COLUMN}px;top:{at["y"] * ROW}px;width:{width}px;height:{height}px"'
        if panel["type"] == "row":
            print(f'<div class="row" {place}>{html.escape(panel["title"])}</div>')
            continue
        draw = {"stat": lambda: stat(panel, server), "table": lambda: table(panel, server)}.get(
            panel["type"], lambda: lines(panel, server, seconds, width - 14, height - 24))
        print(f'<div class="panel" {place}><h3>{html.escape(panel["title"])}</h3>{draw()}</div>')


main()
