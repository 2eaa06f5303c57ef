"""Measures streams against the ceilings: interleaved rounds, medians, a table and a chart. scripts/benchmark calls it.

    streams.py PROGRAMS RESULTS [--quick] [--only CASE[,CASE]] [--rounds N]

PROGRAMS is where the build put them, RESULTS where streams.md, streams.json and streams.svg go. Every round runs every
client of every case once, each against a server of its own; the server is pinned to CPU 0, the client to CPU 1.
"""

import argparse
import datetime
import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys

import chart

# glibc copies 8 KB and more by `rep movsb`, which on some processors is thirty times slower where the destination lies
# just above the source within a page: luck that differs from run to run. All clients alike go without it.
TUNABLES = "glibc.cpu.x86_rep_movsb_threshold=1073741824"

COPY, COUNT = "C, copying", "C, counting"
SEQUENCE, ONE, TWO, LOOP = "sequence", "deliveries, 1 owner", "deliveries, 2 owners", "sequence, on the loop"


def command(programs, client, kind, url, connections=1, seconds=None):
    """A client's words."""
    if client in (COPY, COUNT):
        words = [f"{programs}/ceiling", "copy" if client == COPY else "count", kind, url]
    else:
        words = [f"{programs}/stream", kind, url]
        if client in (ONE, TWO):
            words += ["--deliveries", "1" if client == ONE else "2"]
        if client == LOOP:
            words += ["--on-loop"]
    if connections > 1:
        words += ["-n", str(connections)]
    if seconds:
        words += ["-s", str(seconds)]
    return words


def owners(client):
    """How many count each event."""
    return 2 if client == TWO else 1


class Case:
    """One row of runs: who runs what."""

    def __init__(self, name, kind, query, clients, events=None, connections=1, seconds=None):
        self.name, self.kind, self.query, self.clients = name, kind, query, clients
        self.events, self.connections, self.seconds = events, connections, seconds


def cases(quick):
    part = 3 if quick else 1
    window = 2
    made = []
    for size, events in ((50, 3_000_000), (500, 1_000_000), (16384, 60_000)):
        events //= part
        query = f"size={size}&n={events}"
        made.append(Case(f"blast {size}", "blast", query, [COPY, COUNT, SEQUENCE, ONE, TWO, LOOP], events))
    for connections, rate in ((100, 100), (1000, 10), (10000, 1)):
        query = f"size=200&rate={rate}&hello=1"
        clients = [COUNT, SEQUENCE, ONE]
        made.append(Case(f"trickle {connections} x {rate}", "trickle", query, clients, None, connections, window))
    query = "size=200&rate=10&hello=1"
    made.append(Case("trickle 10000 x 10", "trickle", query, [COUNT, SEQUENCE], None, 10000, window))
    made.append(Case("lat", "lat", "size=200&rate=1000&ts=sent&n=2000", [COUNT, SEQUENCE, ONE], 2000))
    made.append(Case("late 10000 x 1", "late", "size=200&rate=1&ts=due&hello=1", [COUNT, SEQUENCE], None, 10000, window))
    made.append(Case("idle 10000", "trickle", "idle=1", [SEQUENCE], None, 10000, 10))
    return made


def run(programs, case, client):
    """One client against one server: the fields of its RESULT line; None, and a word to standard error, without one."""
    server = subprocess.Popen(
        ["taskset", "-c", "0", f"{programs}/loadserver", "-p", "0", "-t", "180"], stdout=subprocess.PIPE, text=True
    )
    try:
        port = re.search(r":(\d+)", server.stdout.readline()).group(1)
        url = f"http://127.0.0.1:{port}/sse?{case.query}"
        words = command(programs, client, case.kind, url, case.connections, case.seconds)
        done = subprocess.run(
            ["taskset", "-c", "1", *words],
            capture_output=True, text=True, timeout=150, env=dict(os.environ, GLIBC_TUNABLES=TUNABLES),
        )
        line = re.search(r"^RESULT (.*)$", done.stdout, re.M)
        if done.returncode or not line:
            raise ValueError(f"status {done.returncode}: " + (done.stderr + done.stdout)[:300])
        fields = dict(word.split("=", 1) for word in line.group(1).split())
        if fields["failures"] != "0":
            raise ValueError(f"failures={fields['failures']}: {done.stderr[:300]}")
        # Each owner has had every event, or been told that it lost some.
        had, asked = int(fields["events"]) + int(fields.get("lost", 0)), (case.events or 0) * owners(client)
        if asked and had != asked:
            raise ValueError(f"{had} events, not {asked}")
        return fields
    except (subprocess.TimeoutExpired, ValueError) as error:
        print(f"{case.name}, {client}: no result: {error}", file=sys.stderr)
        return None
    finally:
        server.kill()
        server.wait()


def figures(case, client, fields):
    """What the tables show, from a RESULT line."""
    value = lambda key: float(fields[key])
    found = {"lost": float(fields.get("lost", 0))}
    if case.kind == "blast":
        found |= {"cpu": value("cpu_per_m") * owners(client), "rate": value("ev_s") / owners(client) / 1e6}
    elif case.name.startswith("trickle"):
        memory = (value("rss1_kb") - value("rss0_kb")) / case.connections
        found |= {"cpu": value("cpu_per_m"), "memory": memory, "rate": value("ev_s")}
    elif case.kind.startswith("lat"):
        found |= {"p50": value("p50_us"), "p99": value("p99_us"), "max": value("max_us") / 1000}
    else:
        found |= {"cpu": value("cpu") / value("wall") * 60}
    return found


def spread(values, decimals):
    """A median and the ends."""
    values = [value for value in values if value is not None]
    if not values:
        return "-"
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"{middle:.{decimals}f} ({low:.{decimals}f} to {high:.{decimals}f})"


class Results:
    """What was measured, by case and client, a round each."""

    def __init__(self):
        self.rounds = {}

    def add(self, case, client, found):
        self.rounds.setdefault(case, {}).setdefault(client, []).append(found)

    def values(self, case, client, key):
        return [found.get(key) if found else None for found in self.rounds[case][client]]

    def median(self, case, client, key):
        values = [value for value in self.values(case, client, key) if value is not None]
        return statistics.median(values) if values else None

    def ratio(self, case, client, key, other):
        """The median of the rounds' own ratios: what a neighbour does to a whole round is in both."""
        pairs = zip(self.values(case, client, key), self.values(case, other, key))
        ratios = [a / b for a, b in pairs if a is not None and b]
        return statistics.median(ratios) if ratios else None


def written(value, decimals=2):
    return "-" if value is None else f"{value:.{decimals}f}"


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def report(results, facts):
    names = list(results.rounds)
    out = ["# Streams against the ceilings\n", "    scripts/benchmark streams" + facts["options"] + "\n", facts["where"] + "\n"]
    out.append(
        "Each figure is the median of the rounds, with the least and the largest; a ratio is the median of the rounds' own\n"
        "ratios. [README](../README.md) says what each figure means.\n"
    )
    blasts = [name for name in names if name.startswith("blast")]
    if blasts:
        out.append("## Blast: one stream, as fast as it goes\n\nCPU seconds per million events of the stream.\n")
        rows = []
        for name in blasts:
            for client in results.rounds[name]:
                rows.append([
                    name.split()[1] + " B", client, spread(results.values(name, client, "cpu"), 3),
                    written(results.ratio(name, client, "cpu", COPY)), written(results.ratio(name, client, "cpu", COUNT)),
                    written(results.median(name, client, "rate")), written(results.median(name, client, "lost"), 0),
                ])
        out.append(table(["payload", "client", "CPU s", "to copying", "to counting", "million events/s", "lost"], rows))
        out.append("![CPU of a blast, as a multiple of the copying ceiling](streams.svg)\n")
    trickles = [name for name in names if name.startswith("trickle")]
    if trickles:
        out.append("## Trickle: many streams\n\nCPU microseconds an event, resident KiB a stream.\n")
        rows = []
        for name in trickles:
            for client in results.rounds[name]:
                rows.append([
                    name.removeprefix("trickle "), client, spread(results.values(name, client, "cpu"), 1),
                    written(results.ratio(name, client, "cpu", COUNT)), written(results.median(name, client, "memory"), 1),
                    written(results.median(name, client, "rate"), 0),
                ])
        out.append(table(["streams x events/s", "client", "CPU us", "to counting", "KiB a stream", "events/s"], rows))
    if "lat" in names:
        out.append("## Latency: one stream, 1,000 events a second\n\nMicroseconds from the server's send.\n")
        rows = [
            [client, spread(results.values("lat", client, "p50"), 0), spread(results.values("lat", client, "p99"), 0)]
            for client in results.rounds["lat"]
        ]
        out.append(table(["client", "median", "99th percentile"], rows))
    late = "late 10000 x 1"
    if late in names:
        out.append("## Punctuality: 10,000 streams, 1 event a second\n\nMilliseconds from the server's send; the worst of all.\n")
        rows = [[client, spread(results.values(late, client, "max"), 0)] for client in results.rounds[late]]
        out.append(table(["client", "latest"], rows))
    if "idle 10000" in names:
        out.append("## Idle: 10,000 open streams\n\nCPU seconds a minute, from ten seconds.\n")
        rows = [[client, spread(results.values("idle 10000", client, "cpu"), 4)] for client in results.rounds["idle 10000"]]
        out.append(table(["client", "CPU s"], rows))
    return "\n".join(out)


def where(rounds):
    """The machine, in a sentence; with the rounds where there are any."""
    model = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo", encoding="utf-8").read())
    swift = subprocess.run(["swift", "--version"], capture_output=True, text=True).stdout
    version = re.search(r"Swift version (\S+)", swift)
    curl = subprocess.run(["pkg-config", "--modversion", "libcurl"], capture_output=True, text=True).stdout.strip()
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{datetime.date.today()}, {model.group(1) if model else platform.machine()}, {os.cpu_count()} CPUs, "
        f"Swift {version.group(1) if version else '?'}, libcurl {curl}, "
        f"{platform.libc_ver()[0]} {platform.libc_ver()[1]}.\n"
        + (f"Rounds: {rounds}. " if rounds else "")
        + f"Load average at the end: {load}."
    )


def main():
    options = argparse.ArgumentParser()
    options.add_argument("programs")
    options.add_argument("results")
    options.add_argument("--quick", action="store_true")
    options.add_argument("--only", default="")
    options.add_argument("--rounds", type=int)
    chosen = options.parse_args()
    rounds = chosen.rounds or (1 if chosen.quick else 5)
    only = chosen.only.split(",") if chosen.only else []

    # 10,000 streams are 10,000 descriptors, here and in the server.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    todo = [case for case in cases(chosen.quick) if not only or any((case.name + " ").startswith(word + " ") for word in only)]
    results = Results()
    for number in range(rounds):
        for case in todo:
            for client in case.clients:
                fields = run(chosen.programs, case, client)
                results.add(case.name, client, figures(case, client, fields) if fields else None)
        print(f"round {number + 1} of {rounds} done", file=sys.stderr, flush=True)

    given = (" --quick" if chosen.quick else "") + (f" --only '{chosen.only}'" if only else "")
    given += f" --rounds {chosen.rounds}" if chosen.rounds else ""
    os.makedirs(chosen.results, exist_ok=True)
    text = report(results, {"options": given, "where": where(rounds)})
    with open(f"{chosen.results}/streams.md", "w", encoding="ascii") as file:
        file.write(text)
    with open(f"{chosen.results}/streams.json", "w", encoding="ascii") as file:
        json.dump(results.rounds, file, indent=1)
        file.write("\n")
    blasts = [name for name in results.rounds if name.startswith("blast")]
    if blasts:
        clients = [SEQUENCE, ONE, TWO, LOOP]
        groups = [
            (name.split()[1] + " B", [results.ratio(name, client, "cpu", COPY) for client in clients]) for name in blasts
        ]
        with open(f"{chosen.results}/streams.svg", "w", encoding="ascii") as file:
            title = "CPU of an event, as a multiple of C that copies each payload"
            file.write(chart.bars(title, groups, clients, "times the CPU of libcurl in C, copying each payload"))
    print(text)
    missing = [
        f"{name}, {client}" for name, clients in results.rounds.items() for client, found in clients.items() if None in found
    ]
    if missing:
        raise SystemExit("without a result in some round: " + "; ".join(missing))


if __name__ == "__main__":
    main()
