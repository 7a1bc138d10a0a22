#!/usr/bin/env python3
"""Loads a server that speaks OpenAI's protocol, and prints what came as tables.

Usage: load.py speed  [--clients 1,2,4,8,16] [--grammars json,...] [--requests N] [--tokens N]
                      [--domino PROGRAM --model MODEL]
       load.py prompt [--words N] [--repeats N]
       load.py first  [--repeats N]
       load.py soak   [--requests N] [--clients N]

`speed`: tokens a second by number of clients, each of which sends one request after the other; with --domino
each size takes its turn with the same requests in `domino generate --batch`, whose texts must be the same.
`prompt`: how long a long prompt takes, new and a second time. `first`: time to the first token of an idle
server. `soak`: random requests, a third of which are given up and a tenth of which are hostile; answers are
checked, and so are the server's metrics and its memory (--pid). The server runs already; --url names it.
Python alone is needed. The load is made on the same machine and takes its share of it.
"""

import argparse
import http.client
import json
import re
import statistics
import subprocess
import sys
import threading
import time
import urllib.parse
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAPER = "json,gsm8k,xml_person,rpg,c"


class Server:
    """One connection, kept open; as many as there are clients."""

    def __init__(self, url, key):
        self.address = urllib.parse.urlsplit(url).netloc
        self.headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
        self.connection = None

    def call(self, path, body=None):
        """Status and text of an answer; a connection that the server has closed is opened once more."""
        if isinstance(body, dict):
            body = json.dumps(body)
        for tries in range(2):
            self.connection = self.connection or http.client.HTTPConnection(self.address, timeout=600)
            try:
                self.connection.request("POST" if body else "GET", path, body, self.headers)
                answer = self.connection.getresponse()
                return answer.status, answer.read()
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                self.close()
                if tries:
                    raise

    def events(self, path, body):
        """The events of a stream, as they come."""
        self.close()
        self.connection = http.client.HTTPConnection(self.address, timeout=600)
        self.connection.request("POST", path, json.dumps(body | {"stream": True}), self.headers)
        answer = self.connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"{answer.status}: {answer.read()[:300]}")
        while line := answer.readline():
            if line.startswith(b"data: ") and not line.startswith(b"data: [DONE]"):
                yield json.loads(line[6:])

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None


def asked(args, grammar, number, tokens):
    """The body of a request: the numbers of requests are their seeds."""
    prompts = args.texts.get(grammar) or [f"An example of {grammar}: "]
    body = {
        "prompt": prompts[number % len(prompts)], "max_tokens": tokens, "seed": number,
        "temperature": args.temperature,
    }
    if grammar != "none":
        body["grammar"] = {"type": "named", "value": grammar}
    return body


def speed(args):
    print("| grammar | of |", " | ".join(f"{n} at once" for n in args.clients), "|")
    print("|---" * (len(args.clients) + 2) + "|")
    for grammar in args.grammars.split(","):
        run(args, grammar, 2, 4, first=10**6)  # compiled and warm; seeds that are not measured
        rates, batch = [], []
        for clients in args.clients:
            rate, texts = run(args, grammar, clients, args.requests)
            rates.append(rate)
            if args.domino:
                rate, others = without_server(args, grammar, clients)
                batch.append(rate)
                if others != texts:
                    print(f"texts differ: {grammar}, {clients} at once", file=sys.stderr)
        cells(grammar, "server", [f"{rate:.0f}" for rate in rates])
        if batch:
            cells(grammar, "generate --batch", [f"{rate:.0f}" for rate in batch])
            cells(grammar, "share", [f"{a / b:.2f}" for a, b in zip(rates, batch)])


def cells(*row):
    print("|", " | ".join([*row[:-1], *row[-1]]), "|", flush=True)


def without_server(args, grammar, at_once):
    """Tokens a second and texts of the same requests by `domino generate --batch`, loading left out."""
    rows = ""
    for number in range(args.requests):
        row = asked(args, grammar, number, args.tokens) | {"id": str(number)}
        if "grammar" in row:
            row["grammar"] = row["grammar"]["value"]
        rows += json.dumps(row) + "\n"
    command = [args.domino, "generate", "-m", args.model, "--batch", "-", "--parallel", str(at_once)]
    done = subprocess.run(command, input=rows, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    rate = re.search(r"([0-9.,]+) tokens/s", done.stderr).group(1)
    return float(rate.replace(",", "")), {int(answer["id"]): answer["text"] for answer in answers}


def run(args, grammar, clients, requests, first=0):
    """Tokens a second of so many requests by so many clients, and the texts."""
    numbers, tokens, texts, failed = iter(range(first, first + requests)), [], {}, []
    lock = threading.Lock()

    def client():
        server = Server(args.url, args.key)
        while True:
            with lock:
                number = next(numbers, None)
            if number is None or failed:
                return server.close()
            try:
                status, text = server.call("/v1/completions", asked(args, grammar, number, args.tokens))
                if status != 200:
                    raise RuntimeError(f"{status}: {text[:300]}")
                answer = json.loads(text)
                tokens.append(answer["usage"]["completion_tokens"])
                texts[number] = answer["choices"][0]["text"]
            except Exception as error:  # told by the main thread
                failed.append(error)

    begun = time.perf_counter()
    together(client for _ in range(clients))
    took = time.perf_counter() - begun
    if failed:
        sys.exit(f"a request failed: {failed[0]}")
    return sum(tokens) / took, texts


def together(tasks):
    threads = [threading.Thread(target=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def prompt(args):
    """A long prompt, each time with another first word, and the same once more."""
    server, new, again, counts = Server(args.url, args.key), [], [], []
    words = " ".join(word for texts in args.texts.values() for text in texts for word in text.split()).split()
    for number in range(args.repeats):
        text = f"{number} " + " ".join(words[i % len(words)] for i in range(args.words))
        for into in (new, again):
            begun = time.perf_counter()
            status, answer = server.call("/v1/completions", {"prompt": text, "max_tokens": 1, "seed": 1})
            into.append(time.perf_counter() - begun)
            if status != 200:
                sys.exit(f"{status}: {answer[:300]}")
        counts.append(json.loads(answer)["usage"]["prompt_tokens"])
    print("| prompt, tokens | first time, ms | second time, ms |\n|---|---|---|")
    print(f"| {statistics.median(counts):.0f} | {median(new)} | {median(again)} |")


def median(seconds):
    return f"{statistics.median(seconds) * 1000:.1f}"


def first(args):
    server, waits = Server(args.url, args.key), {}
    for grammar in ["none", *args.grammars.split(",")]:
        for number in range(args.repeats + 1):
            begun, body = time.perf_counter(), asked(args, grammar, number, 4)
            for event in server.events("/v1/completions", body):
                if event["choices"] and event["choices"][0].get("text"):
                    break
            # The first request of a grammar compiles it.
            if number:
                waits.setdefault(grammar, []).append(time.perf_counter() - begun)
    print("| grammar | first token, ms, median | most |\n|---|---|---|")
    for grammar, seconds in waits.items():
        print(f"| {grammar} | {median(seconds)} | {max(seconds) * 1000:.1f} |")


def main():
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("what", choices=["speed", "prompt", "first", "soak"])
    parser.add_argument("--url", default="http://127.0.0.1:8080", help="the server")
    parser.add_argument("--key", default="none", help="its key")
    parser.add_argument("--clients", default="", help="numbers of clients (speed) or their number (soak: 32)")
    parser.add_argument("--grammars", default=PAPER, help="shipped grammars; `none` is none")
    parser.add_argument("--requests", type=int, default=0, help="speed: 48 a cell; soak: 10,000")
    parser.add_argument("--tokens", type=int, default=96, help="most tokens of a text")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--words", type=int, default=1500, help="words of a long prompt")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--prompts", type=Path, default=HERE / "../../train/prompts.jsonl")
    parser.add_argument("--domino", help="speed: the program, to compare with `generate --batch`")
    parser.add_argument("--model", default="models/domino-small", help="speed: its model")
    parser.add_argument("--pid", type=int, help="soak: the server's process, for its memory")
    parser.add_argument("--seeds", type=int, default=40, help="soak: how many seeds there are")
    parser.add_argument("--texts-file", type=Path, help="soak: texts are kept there, or held to those there")
    args = parser.parse_args()
    args.texts = {}
    for line in args.prompts.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        args.texts.setdefault(row.get("task", row.get("form")), []).append(row["prompt"])
    if args.what == "soak":
        import soak

        args.clients, args.requests = int(args.clients or 32), args.requests or 10_000
        return soak.soak(args, Server, asked, together)
    args.clients = [int(number) for number in (args.clients or "1,2,4,8,16").split(",")]
    args.requests = args.requests or 48
    {"speed": speed, "prompt": prompt, "first": first}[args.what](args)


if __name__ == "__main__":
    main()
