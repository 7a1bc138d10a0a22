"""What the judges of this folder share: JSON found in a text, intervals, tables, and what a run keeps."""

import json
import os
import pathlib
import platform
import random
import re
import shlex
import subprocess
import sys
import textwrap
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
REAL = ROOT / "experiments" / "real"
PROGRAM = os.environ.get("DOMINO") or str(ROOT / "target" / "release" / "domino")
MODEL = REAL / "models" / "Qwen2.5-Coder-0.5B-Instruct-q4_k_m.gguf"


def shared(name):
    """A file of the shared data (`DOMINO_SHARED`), or None."""
    path = pathlib.Path(os.environ.get("DOMINO_SHARED", "shared")) / "data" / name
    return path if path.exists() else None


def strict_json(text):
    """The text's value if it is JSON and nothing else; None otherwise."""
    try:
        return json.loads(text)
    except (ValueError, TypeError):
        return None


def values_in(text):
    """The outermost JSON objects and arrays of a text, whatever stands around them: fences, prose."""
    decoder, at, found = json.JSONDecoder(), 0, []
    while match := re.compile(r"[{\[]").search(text, at):
        try:
            value, at = decoder.raw_decode(text, match.start())
            found.append(value)
        except (ValueError, RecursionError):
            at = match.start() + 1
    return found


def interval(values, seed=2026, times=2000):
    """The mean and its bootstrap interval of 95 %."""
    if not values:
        return float("nan"), float("nan"), float("nan")
    draw = random.Random(seed)
    means = sorted(sum(draw.choices(values, k=len(values))) / len(values) for _ in range(times))
    return sum(values) / len(values), means[int(0.025 * times)], means[int(0.975 * times)]


def share(values):
    """A share of right answers with its interval, in percent, as a cell of a table."""
    mean, low, high = (100 * value for value in interval([float(value) for value in values]))
    return f"{mean:.1f} % ({low:.1f} to {high:.1f})"


def markdown(head, rows):
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in (head, *rows)]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join(lines)


def machine():
    """The class of machine: cores and processor."""
    name = platform.machine()
    try:
        found = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"))
        name = found[1] if found else name
    except OSError:
        pass
    return f"{os.cpu_count()} cores of {name}"


def commit():
    command = ["git", "-C", str(ROOT), "rev-parse", "--short=10", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def command_line():
    """The command, with files and folders outside of the repository by their names alone."""
    short = [part if not part.startswith("/") else pathlib.Path(part).name for part in sys.argv[1:]]
    whole = shlex.join([f"experiments/evidence/{pathlib.Path(sys.argv[0]).name}", *short])
    return " \\\n      ".join(textwrap.wrap(whole, 100, break_long_words=False, break_on_hyphens=False))


def publish(out, title, model, body):
    """Prints the tables, and keeps them in `tables.md` with what they are of."""
    head = f"# {title}\n\n    {command_line()}\n\n"
    head += f"Commit {commit()}, {time.strftime('%Y-%m-%d')}, {machine()}. {model}\n\n"
    print(body)
    (out / "tables.md").write_text(head + body + "\n", encoding="utf-8")


def lines(path):
    """The values of a file with a JSON text a line. A line that was cut is left out, as is a missing file."""
    if not path.exists():
        return []
    rows = [strict_json(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if row is not None]


def written(out, name, flags, rows, chunk=40):
    """Answers of `domino generate --batch` to rows, by id. Those in `OUT/NAME.jsonl` are not made again."""
    path = out / f"{name}.jsonl"
    done = {row["id"]: row for row in lines(path)}
    left = [row for row in rows if row["id"] not in done]
    for at in range(0, len(left), chunk):
        print(f"{name}: {len(rows) - len(left) + at} of {len(rows)}", file=sys.stderr)
        text = "".join(json.dumps(row) + "\n" for row in left[at : at + chunk])
        run = subprocess.run(
            [*flags, "--batch", "-"], input=text, stdout=subprocess.PIPE, text=True, check=False
        )
        answers = [row for row in map(strict_json, run.stdout.splitlines()) if row]
        if not answers:
            sys.exit(f"{name}: the program wrote nothing (exit code {run.returncode})")
        with open(path, "a", encoding="utf-8") as file:
            file.writelines(json.dumps(answer) + "\n" for answer in answers)
        done.update({answer["id"]: answer for answer in answers})
    return done
