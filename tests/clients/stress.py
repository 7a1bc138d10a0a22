"""Many requests at once from clients that often go away: nothing hangs, memory stays, every text is in its
language.

    python tests/clients/stress.py PROGRAM [--requests 1000] [--clients 16] [--tokens 96] [FLAGS OF serve..]

Starts the server, sends it new grammars until its cache of grammars is full, then the requests (a third of
them are left before their end), and has `domino check` judge every text that came whole. Prints the server's
memory as it goes, and fails if it grows by more than a tenth over the last half. Needs Python 3.9 and Linux,
nothing else.
"""

import argparse
import http.client
import json
import queue
import random
import re
import subprocess
import sys
import time

from servers import clients, start

PROMPTS = {
    "json": "A JSON file describing a person: ",
    "rfc8259": "A JSON file of a person John Smith with friends",
    "gsm8k": "Q: A robe takes 2 bolts of blue fiber and half that much white fiber. How many bolts in total does it take?\nA: ",
    "xml_person": "An XML file of a person Jane Doe with friends",
    "rpg": "A RPG character in JSON: ",
    "c": "C program that prints fibonacci numbers\n",
}


def memory(pid):
    """The resident memory of a process, in MiB."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1]) / 1024


def metric(address, name):
    """A number of the server's metrics."""
    connection = http.client.HTTPConnection(address, timeout=60)
    try:
        connection.request("GET", "/metrics")
        return float(re.search(rf"^{name} (\S+)$", connection.getresponse().read().decode(), re.M)[1])
    finally:
        connection.close()


def fill(server, address, count):
    """Has grammars compiled that nobody has sent before, until the server drops some: there is room for no more then."""

    def compile(number):
        words = f"[a-z]{{1,{number % 97 + 2}}}(; [a-z0-9 ]{{1,{number // 97 + 10}}}){{0,{number % 13 + 1}}}"
        grammar = {"type": "regex", "value": words}
        body = {"model": "default", "prompt": "Words: ", "grammar": grammar, "max_tokens": 2}
        connection = http.client.HTTPConnection(address, timeout=300)
        try:
            connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
            response = connection.getresponse()
            assert response.status == 200, response.read()
        finally:
            connection.close()

    number, begun = 0, time.monotonic()
    while metric(address, "domino_grammar_evictions_total") == 0:
        for thread in clients(count, range(number, number + count), compile):
            thread.join()
        number += count
        if number > 4000:
            sys.exit("stress: 4000 grammars do not fill the cache")
    kept, size = metric(address, "domino_grammars"), metric(address, "domino_grammar_bytes") / (1 << 20)
    print(f"{number} grammars in {time.monotonic() - begun:.0f} s fill the cache: {kept:.0f} are kept, with {size:.1f} MiB; "
          f"memory {memory(server.pid):.1f} MiB", flush=True)


def one(address, number, most, results):
    """Sends one request; a third of them are left in the middle."""
    draw = random.Random(number)
    name = draw.choice(list(PROMPTS))
    leave = draw.random() < 1 / 3
    stream = leave or draw.random() < 0.5
    grammar = {"type": "named", "value": name}
    if draw.random() < 0.1:
        # One that nobody has sent before.
        grammar = {"type": "regex", "value": f"[a-z]{{1,{number % 50 + 2}}}(, [a-z]{{1,9}}){{0,{number % 7}}}"}
    body = {
        "model": "default", "prompt": PROMPTS[name], "grammar": grammar, "stream": stream, "seed": number,
        "max_tokens": draw.randint(4, most), "temperature": draw.choice([0, 0.7, 1]),
    }
    connection = http.client.HTTPConnection(address, timeout=300)
    try:
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        if leave and draw.random() < 0.3:
            time.sleep(draw.random() * 0.2)
            return results.put(("left", None))
        response = connection.getresponse()
        if response.status != 200:
            return results.put(("error", f"{response.status} {response.read()[:300]}"))
        if not stream:
            choice = json.loads(response.read())["choices"][0]
            return results.put(("text", (grammar, choice["text"], choice["finish_reason"])))
        text, finish, last = "", None, None
        after = draw.randint(1, 20)
        for line in response:
            if not line.startswith(b"data: "):
                continue
            last = line[6:].strip()
            if last == b"[DONE]":
                break
            event = json.loads(last)
            if "error" in event:
                return results.put(("error", str(event)))
            for choice in event["choices"]:
                text += choice["text"]
                finish = choice["finish_reason"] or finish
            after -= 1
            if leave and after == 0:
                return results.put(("left", None))
        if last != b"[DONE]":
            return results.put(("error", f"a stream without an end: {last}"))
        results.put(("text", (grammar, text, finish)))
    except OSError as error:
        results.put(("error", repr(error)))
    finally:
        connection.close()


def judge(program, texts):
    """Texts that `domino check` refuses. Texts that were cut must be prefixes."""
    shipped = json.loads(subprocess.run([program, "grammars", "--json"], capture_output=True, check=True).stdout)
    sources = {
        row["name"]: subprocess.run([program, "grammars", row["name"]], capture_output=True, check=True, text=True).stdout
        for row in shipped["grammars"]
    }
    rows = []
    for number, (grammar, text, finish) in enumerate(texts):
        named = grammar["type"] == "named"
        rows.append(json.dumps({
            "id": number, "syntax": "gbnf" if named else "regex",
            "grammar": sources[grammar["value"]] if named else grammar["value"],
            "text": text, "prefix": finish != "stop",
        }))
    checked = subprocess.run([program, "check", "--batch", "-"], input="\n".join(rows), capture_output=True, check=True, text=True)
    verdicts = [json.loads(line) for line in checked.stdout.splitlines()]
    assert len(verdicts) == len(texts)
    return [(texts[verdict["id"]], verdict) for verdict in verdicts if verdict["accepted"] is not True]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=96, help="of a text at most")
    arguments, flags = parser.parse_known_args()
    server, address = start(arguments.program, flags)
    try:
        fill(server, address, arguments.clients)
        results = queue.Queue()
        begun = time.monotonic()
        threads = clients(arguments.clients, range(arguments.requests), lambda number: one(address, number, arguments.tokens, results))
        sizes = []
        while any(thread.is_alive() for thread in threads):
            time.sleep(1)
            done = results.qsize()
            sizes.append((done, memory(server.pid)))
            if len(sizes) % 15 == 0:
                print(f"{time.monotonic() - begun:6.0f} s  {done:5} requests  {sizes[-1][1]:7.1f} MiB", flush=True)
        seconds = time.monotonic() - begun
        outcomes = [results.get_nowait() for _ in range(results.qsize())]
        texts = [value for kind, value in outcomes if kind == "text"]
        errors = [value for kind, value in outcomes if kind == "error"]
        # Those that were left end soon after.
        for _ in range(300):
            if metric(address, "domino_texts") == 0:
                break
            time.sleep(0.1)
        else:
            errors.append("texts go on without a reader")
        wrong = judge(arguments.program, texts)
        half = [size for done, size in sizes if done >= arguments.requests / 2] or [sizes[-1][1]]
        print(f"{arguments.requests} requests from {arguments.clients} clients in {seconds:.0f} s")
        print(f"texts {len(texts)}, of them finished {sum(finish == 'stop' for *_, finish in texts)}, not in their language {len(wrong)}")
        print(f"left {sum(kind == 'left' for kind, _ in outcomes)}, errors {len(errors)}")
        print(f"memory at the half {half[0]:.1f} MiB, most after it {max(half):.1f} MiB, at the end {memory(server.pid):.1f} MiB")
        for problem in [*errors[:5], *wrong[:5]]:
            print(problem)
        server.terminate()
        code = server.wait(timeout=60)
        print(f"the server ended with {code}")
        if errors or wrong or code != 0 or max(half) > half[0] * 1.1 or len(outcomes) != arguments.requests:
            sys.exit("stress: not all is well")
    finally:
        server.kill()


main()
