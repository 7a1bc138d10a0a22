#!/usr/bin/env python3
"""Measures servers that speak OpenAI's protocol beside each other, with and without a schema: tokens a second, the
time to the first token, and the time of each token behind it.

Usage: beside.py NAME=URL ... [--clients 1,8,64] [--requests N] [--tokens N] [--rounds N] [--json FILE]

The requests are those of the ten schemas of `real/ends.json`, as chats; without a schema they are the same
chats. Every server gets the same in turn, and while one writes the others do nothing. A rate is that of all
tokens of a round by its wall time, prompts and the way through HTTP included; the first token's time is that of
the first event with text, and a token's time behind it is the rest of the stream by the other tokens. Tables have
the medians of the rounds, and the share of texts that ended by themselves. Seeds are the numbers of the requests, but draws of
different servers differ. Servers run already, each with one model and places for the most clients.
"""

import argparse
import json
import statistics
import sys
import threading
import time
from pathlib import Path

from load import Server, together

HERE = Path(__file__).resolve().parent


def chats():
    """Prompts with their schemas."""
    asked = json.loads((HERE / "../../real/ends.json").read_text(encoding="utf-8"))
    return list(asked["schemas"].values())


def body(args, model, number, with_schema):
    prompt, schema = args.chats[number % len(args.chats)]
    asked = {
        "model": model, "messages": [{"role": "user", "content": prompt}], "max_tokens": args.tokens,
        "temperature": args.temperature, "seed": number, "stream_options": {"include_usage": True},
    }
    if with_schema:
        named = {"name": f"answer{number % len(args.chats)}", "schema": schema}
        asked["response_format"] = {"type": "json_schema", "json_schema": named}
    return asked


def heard(events, begun):
    """What came of one stream: its tokens, whether it ended, and the times of its first token and of each behind."""
    first, tokens, ended = None, 0, False
    for event in events:
        for choice in event.get("choices") or []:
            delta = choice.get("delta") or {}
            if first is None and (delta.get("content") or delta.get("reasoning_content")):
                first = time.perf_counter() - begun
            ended = ended or choice.get("finish_reason") == "stop"
        tokens = (event.get("usage") or {}).get("completion_tokens", tokens)
    took = time.perf_counter() - begun
    first = took if first is None else first
    return {"tokens": tokens, "ended": ended, "first": first, "token": (took - first) / max(tokens - 1, 1)}


def write(args, url, clients, with_schema, first):
    """What came of the texts of one round, and its seconds."""
    model = json.loads(Server(url, args.key).call("/v1/models")[1])["data"][0]["id"]
    numbers = iter(range(first, first + args.requests))
    lock, texts, failed = threading.Lock(), [], []

    def client():
        server = Server(url, args.key)
        while True:
            with lock:
                number = next(numbers, None)
            if number is None or failed:
                return server.close()
            try:
                asked = body(args, model, number, with_schema)
                begun = time.perf_counter()
                texts.append(heard(server.events("/v1/chat/completions", asked), begun))
            except Exception as error:  # told by the main thread
                failed.append(error)

    begun = time.perf_counter()
    together(client for _ in range(clients))
    took = time.perf_counter() - begun
    if failed:
        sys.exit(f"{url}: a request failed: {failed[0]}")
    return texts, took


def middle(rounds, key):
    """The median of a value over the texts of all rounds."""
    return statistics.median(text[key] for texts, _ in rounds for text in texts)


def main():
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("servers", nargs="+", metavar="NAME=URL")
    parser.add_argument("--key", default="none", help="the key of all")
    parser.add_argument("--clients", default="1,8")
    parser.add_argument("--requests", type=int, default=20, help="requests of a round")
    parser.add_argument("--tokens", type=int, default=96, help="most tokens of a text")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--json", metavar="FILE", help="write the rows of the table there, too, a line each")
    args = parser.parse_args()
    args.chats = chats()
    servers = [server.split("=", 1) for server in args.servers]
    cells = [(schema, int(clients)) for schema in (False, True) for clients in args.clients.split(",")]
    rounds = {}
    # Seeds of their own, and not counted: schemas are compiled here, and memory is touched for the first time.
    for name, url in servers:
        for schema in (False, True):
            write(args, url, cells[-1][1], schema, 10**6)
    for turn in range(args.rounds):
        for schema, clients in cells:
            for name, url in servers:
                texts, took = write(args, url, clients, schema, 1000 * turn)
                rounds.setdefault((name, schema, clients), []).append((texts, took))
                rate = sum(text["tokens"] for text in texts) / took
                print(f"{turn} {name} schema={schema} {clients}: {rate:.1f}", file=sys.stderr)
    rows = []
    for name, _ in servers:
        for schema, clients in cells:
            found = rounds[name, schema, clients]
            rates = [sum(text["tokens"] for text in texts) / took for texts, took in found]
            rows.append({
                "server": name, "schema": schema, "clients": clients, "rate": statistics.median(rates),
                "first_ms": 1000 * middle(found, "first"), "token_ms": 1000 * middle(found, "token"),
                "ended": statistics.mean(text["ended"] for texts, _ in found for text in texts),
            })
    print("| server | | clients | tokens a second | first token, ms | each behind, ms | ended |")
    print("|---" * 7 + "|")
    for row in rows:
        kind = "schema" if row["schema"] else "free"
        times = f"{row['rate']:.0f} | {row['first_ms']:.0f} | {row['token_ms']:.1f} | {row['ended']:.2f}"
        print(f"| {row['server']} | {kind} | {row['clients']} | {times} |")
    if args.json:
        Path(args.json).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
