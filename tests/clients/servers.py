"""The common part of the scripts beside this one: a server of their own, and many clients at once."""

import json
import queue
import subprocess
import threading


def start(program, flags):
    """A server on a free port: its process and its address."""
    server = subprocess.Popen([program, "serve", "--json", "--port", "0", *flags], stdout=subprocess.PIPE, text=True)
    return server, json.loads(server.stdout.readline())["address"]


def clients(count, jobs, do):
    """Starts so many threads that do the jobs, each one once, in order. Returns the threads."""
    work = queue.Queue()
    for job in jobs:
        work.put(job)

    def client():
        while True:
            try:
                job = work.get_nowait()
            except queue.Empty:
                return
            do(job)

    threads = [threading.Thread(target=client) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads
