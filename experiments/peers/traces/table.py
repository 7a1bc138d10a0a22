"""The table of a comparison, and where Domino is not ahead.

    python experiments/peers/traces/table.py cells.json

Where an engine had time for fewer texts, Domino's times on the same texts are what it is compared with.
"""
import json
import pathlib
import statistics
import sys

from engines import TREES

COLUMNS = [
    "grammar", "engine", "warm mask mean / p99", "first visit mean / p99", "commit p50", "compile, ms",
    "to first mask, ms", "one text from cold, ms", "times Domino: warm, first, cold", "wrong masks",
]
# What is compared, and its unit.
MEASURES = {
    "warm": "us", "first": "us", "commit": "us", "compile": "ms", "to first mask": "ms", "one text from cold": "ms",
}


def is_ours(cell):
    return cell["engine"].startswith("domino")


def numbers(cell, texts=None):
    """Times of a cell, or of some of its texts, without the cost of an empty call."""
    empty = cell["extra"]["empty_call_ns"]
    rows = [row for row in cell["traces"] if texts is None or row["text"] in texts]
    net = lambda times, call: [max(time - empty[call], 0) / 1e3 for time in times]
    all_of = lambda key, call: sorted(time for row in rows for time in net(row[key], call))
    p99 = lambda times: times[min(len(times) - 1, len(times) * 99 // 100)]
    warm, first = all_of("mask_ns", "mask"), all_of("mask_first_ns", "mask")
    # Compiling, then the masks of one text: where an engine works at its masks does not matter here.
    masks = statistics.mean(sum(net(row["mask_first_ns"], "mask")) for row in rows)
    return {
        "warm": statistics.mean(warm), "warm p99": p99(warm), "first": statistics.mean(first), "first p99": p99(first),
        "commit": statistics.median(all_of("commit_ns", "commit")), "masks": len(warm), "compile": cell["compile_ms"],
        "to first mask": cell["extra"]["text_to_mask_ms"], "one text from cold": cell["compile_ms"] + masks / 1e3,
    }


def digits(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def markdown(results):
    lines, behind = [], []
    for vocab in dict.fromkeys(cell["vocab"] for cell in results):
        lines += [vocab, "", "| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
        for grammar in dict.fromkeys(cell["grammar"] for cell in results):
            cells = [cell for cell in results if (cell["vocab"], cell["grammar"]) == (vocab, grammar)]
            lines += [row(cell, cells) for cell in cells]
            behind += [text for cell in cells if not is_ours(cell) for text in not_ahead(cell, cells)]
        lines.append("")
    lines += ["Domino is not ahead:", *(f"* {text}" for text in behind)] if behind else ["Domino is ahead everywhere."]
    empty = {cell["extra"]["empty_call_ns"]["mask"] for cell in results} - {0}
    if empty:
        lines += ["", f"An empty call from Python: {min(empty):.0f} to {max(empty):.0f} ns, taken off XGrammar's times."]
    return "\n".join(lines)


def ours(cell, cells, trees):
    """Domino's numbers on the texts of another engine's cell, and on the same spelling if that was measured."""
    named = {one["engine"]: one for one in cells if is_ours(one)}
    printed = named.get(f"{TREES[trees]}, as printed") if cell["extra"]["spelling"] else None
    one = printed or named.get(TREES[trees])
    return one and numbers(one, {row["text"] for row in cell["traces"]})


def row(cell, cells):
    own, other, extra = numbers(cell), ours(cell, cells, "explored"), cell["extra"]
    ratios = ""
    if other and not is_ours(cell):
        ratios = ", ".join(digits(own[what] / other[what]) for what in ("warm", "first", "one text from cold"))
    texts = len(cell["traces"])
    columns = [
        cell["grammar"], cell["engine"] + ("" if texts == extra["texts"] else f" ({texts} of {extra['texts']} texts)"),
        f"{digits(own['warm'])} / {digits(own['warm p99'])}", f"{digits(own['first'])} / {digits(own['first p99'])}",
        *(digits(own[what]) for what in ("commit", "compile", "to first mask", "one text from cold")),
        ratios, f"{extra['wrong_masks']} of {own['masks']}",
    ]
    return "| " + " | ".join(columns) + " |"


def not_ahead(cell, cells):
    own = numbers(cell)
    for trees in TREES:
        other = ours(cell, cells, trees)
        for what, unit in MEASURES.items():
            if other and other[what] >= own[what]:
                yield (
                    f"{cell['vocab']} {cell['grammar']}, {what}, {TREES[trees]}: {digits(other[what])} {unit}, "
                    f"{cell['engine']} {digits(own[what])}"
                )


if __name__ == "__main__":
    print(markdown(json.loads(pathlib.Path(sys.argv[1]).read_text())))
