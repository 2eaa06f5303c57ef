"""Measures streams against the ceilings: interleaved rounds, medians, a table and a chart. scripts/benchmark calls it.

    streams.py PROGRAMS RESULTS [--quick] [--only CASE[,CASE]] [--rounds N]

PROGRAMS is where the build put them, RESULTS where streams.md, streams.json and streams.svg go. Every round runs every
client of every case once, each against a server of its own; the server is pinned to CPU 0, the client to CPU 1.
"""

import argparse
import datetime
import json
import math
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import urllib.request

import chart

# glibc copies 8 KB and more by `rep movsb`, which on some processors is thirty times slower where the destination lies
# just above the source within a page: luck that differs from run to run. All clients alike go without it.
TUNABLES = "glibc.cpu.x86_rep_movsb_threshold=1073741824"

COPY, COUNT = "C, copying", "C, counting"
SEQUENCE, ONE, TWO = "sequence", "deliveries, 1 owner", "deliveries, 2 owners"
LOOP, ONE_LOOP = "sequence, on the loop", "deliveries, 1 owner, on the loop"
CEILINGS = (COPY, COUNT)
SIZES = (50, 500, 16384)
# The same events a second in all, from few streams to many.
SPREADS = ((100, 100), (1000, 10), (10000, 1))
OTHERS = {
    "id": "an id line each",
    "crlf": "lines that end by CRLF",
    "graphql": "GraphQL over SSE, undecoded",
}


def owners(client):
    """How many count each event."""
    return 2 if client == TWO else 1


class Case:
    """One row of runs: who runs what."""

    def __init__(self, name, kind, query, clients, **more):
        self.name, self.kind, self.query, self.clients = name, kind, query, clients
        # Of each stream; None where a window counts.
        self.events = more.get("events")
        self.connections, self.seconds = more.get("connections", 1), more.get("seconds")
        # Events a second of each stream, in a window.
        self.rate = more.get("rate")
        # Between the last opening and the window.
        self.pause = more.get("pause")
        self.keepalive = more.get("keepalive")
        self.graphql = more.get("graphql", False)

    def command(self, programs, client, url):
        """A client's words."""
        if client in CEILINGS:
            words = [f"{programs}/ceiling", "copy" if client == COPY else "count", self.kind, url]
        else:
            words = [f"{programs}/stream", self.kind, url]
            if client in (ONE, TWO, ONE_LOOP):
                words += ["--deliveries", str(owners(client))]
            if client in (LOOP, ONE_LOOP):
                words += ["--on-loop"]
            if self.graphql:
                words += ["--graphql"]
            if self.pause:
                words += ["-w", str(self.pause)]
            if self.keepalive:
                words += ["-k", str(self.keepalive)]
        if self.connections > 1:
            words += ["-n", str(self.connections)]
        if self.seconds:
            words += ["-s", str(self.seconds)]
        return words


def cases(quick):
    window = 2 if quick else 5
    made = []
    events = {50: 5_000_000, 500: 2_000_000, 16384: 200_000}
    if quick:
        events = {size: count // 5 for size, count in events.items()}
    for size in SIZES:
        clients = [COPY, COUNT, SEQUENCE, ONE, TWO, LOOP] + ([ONE_LOOP] if size == 50 else [])
        query = f"size={size}&n={events[size]}"
        made.append(Case(f"blast {size}", "blast", query, clients, events=events[size]))
    for size in (50, 500):
        for other, more in (("id", "&id=1"), ("crlf", "&nl=crlf"), ("graphql", "")):
            query = f"size={size}&n={events[size]}{more}"
            graphql = other == "graphql"
            made.append(
                Case(f"other {size} {other}", "blast", query, [COPY, SEQUENCE], events=events[size], graphql=graphql)
            )
    for connections, rate in SPREADS + ((10000, 10),):
        query = f"size=200&rate={rate}&hello=1&after={connections}"
        more = {"connections": connections, "rate": rate, "seconds": window}
        made.append(Case(f"trickle {connections} x {rate}", "trickle", query, [COUNT, SEQUENCE, ONE], **more))
    events = 2000 if quick else 6000
    made.append(Case("lat", "lat", f"size=200&rate=1000&ts=sent&n={events}", [COUNT, SEQUENCE, ONE], events=events))
    for rate in (1, 10):
        query = f"size=200&rate={rate}&ts=due&hello=1&after=10000"
        clients = [COUNT, SEQUENCE] + ([ONE] if rate == 1 else [])
        more = {"connections": 10000, "rate": rate, "seconds": window}
        made.append(Case(f"late 10000 x {rate}", "late", query, clients, **more))
    # The second begins when what the openings left to be done later is done.
    more = {"connections": 10000}
    made.append(Case("idle 10000", "trickle", "idle=1", [SEQUENCE], seconds=10 if quick else 60, **more))
    made.append(Case("still 10000", "trickle", "idle=1", [SEQUENCE], seconds=20, pause=20, **more))
    return made


def skipped(port):
    """How many events the server left out, as it says."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/stats", timeout=10) as answer:
        return int(re.search(r"skipped=(\d+)", answer.read().decode()).group(1))


def run(programs, case, client):
    """One client against one server: the fields of its RESULT line; None, and a word to standard error, without one."""
    server = subprocess.Popen(
        ["taskset", "-c", "0", f"{programs}/loadserver", "-p", "0", "-t", "180"], stdout=subprocess.PIPE, text=True
    )
    try:
        port = re.search(r":(\d+)", server.stdout.readline()).group(1)
        words = case.command(programs, client, f"http://127.0.0.1:{port}/sse?{case.query}")
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
        if float(fields["cpu"]) <= 0:
            raise ValueError("no CPU time was counted")
        if case.rate:
            fields["skipped"] = skipped(port)
        return fields
    except (subprocess.TimeoutExpired, OSError, ValueError) as error:
        print(f"{case.name}, {client}: no result: {error}", file=sys.stderr)
        return None
    finally:
        server.kill()
        server.wait()


def disagreeing(case, found):
    """The clients whose payloads are not what the ceiling had of the same stream, by a byte of each."""
    if not case.events:
        return []
    sums = {
        client: int(fields["sum"]) / owners(client)
        for client, fields in found.items() if fields and fields.get("lost", "0") == "0"
    }
    # The ceilings come first.
    return [client for client, value in sums.items() if value != next(iter(sums.values()))]


def figures(case, client, fields):
    """What the tables show, from a RESULT line."""
    value = lambda key: float(fields[key])
    found = {"lost": float(fields.get("lost", 0))}
    if case.rate:
        found |= {"rate": value("ev_s"), "skipped": value("skipped")}
        found["share"] = found["rate"] / (case.connections * case.rate) * 100
    if case.kind == "blast":
        # Both owners count each event, and the figures are an event's.
        found |= {"cpu": value("cpu_per_m") * owners(client), "rate": value("ev_s") / owners(client) / 1e6}
    elif case.kind.startswith("lat"):
        found |= {"p50": value("p50_us"), "p99": value("p99_us"), "max": value("max_us") / 1000}
    elif case.rate:
        memory = (value("rss1_kb") - value("rss0_kb")) / case.connections
        found |= {"cpu": value("cpu_per_m"), "memory": memory}
    else:
        found |= {"cpu": value("cpu") / value("wall") * 60, "wakeups": value("wakeups_s")}
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

    def pairs(self, case, client, key, other):
        """What two clients had in the same round: what a neighbour does to a whole round is in both."""
        pairs = zip(self.values(case, client, key), self.values(case, other, key))
        return [(a, b) for a, b in pairs if a is not None and b is not None]

    def ratios(self, case, client, key, other):
        return [a / b for a, b in self.pairs(case, client, key, other)]

    def ratio(self, case, client, key, other):
        """The median of the rounds' own ratios."""
        ratios = self.ratios(case, client, key, other)
        return statistics.median(ratios) if ratios else None

    def flatness(self, client):
        """Of each round, the dearest of the spreads' CPU an event over the cheapest."""
        rounds = zip(*(self.values(f"trickle {a} x {b}", client, "cpu") for a, b in SPREADS))
        return [max(costs) / min(costs) for costs in rounds if None not in costs]


class Bound:
    """What a figure may be at most."""

    def __init__(self, what, most, names, values, aim=None, decimals=2, worst=False, clients=()):
        self.what, self.most, self.names, self.values = what, most, names, values
        self.aim, self.decimals, self.worst = aim, decimals, worst
        # Who must have kept up with a window's events.
        self.clients = clients

    def row(self, results):
        """Its row; None where not all it needs was to be measured."""
        if any(name not in results.rounds for name in self.names):
            return None
        values = [value for value in self.values(results) if value is not None]
        measured = spread(values, self.decimals)
        # Unrounded.
        figure = (max(values) if self.worst else statistics.median(values)) if values else math.inf
        holds = "yes" if figure <= self.most else "**no**"
        aim = "" if self.aim is None else f"{self.aim:g}, " + ("met" if figure <= self.aim else "missed")
        for name in self.names:
            share = min((results.median(name, client, "share") or 100 for client in self.clients), default=100)
            if share < PUNCTUAL:
                holds, measured = "**no**", f"{measured}, of {share:.0f} % of the events"
        command = "scripts/benchmark streams --only '" + ",".join(self.names) + "'"
        return [self.what, f"{self.most:g}", aim, measured, holds, f"`{command}`"]


# Per cent of the events asked for, below which a client, or the server, did not keep up.
PUNCTUAL = 99


def bounds():
    made = []
    for size, most, aim in zip(SIZES, (2.0, 2.7, 2.3), (1.45, 1.5, 1.5)):
        name = f"blast {size}"
        made.append(Bound(
            f"{size} B, sequence to C copying, times CPU", most, [name],
            lambda all, name=name: all.ratios(name, SEQUENCE, "cpu", COPY), aim, 3,
        ))
    for size in SIZES:
        for client, most in ((ONE, 1.5), (TWO, 2.2)):
            name = f"blast {size}"
            made.append(Bound(
                f"{size} B, {client} to sequence, times CPU", most, [name],
                lambda all, name=name, client=client: all.ratios(name, client, "cpu", SEQUENCE), None, 3,
            ))
    made.append(Bound(
        "50 B, sequence on the loop, CPU s per million", 0.06, ["blast 50"],
        lambda all: all.values("blast 50", LOOP, "cpu"), 0.045, 4,
    ))
    for client, most, aim in ((SEQUENCE, 2.3, 1.8), (ONE, 2.8, 2.1)):
        made.append(Bound(
            f"1000 streams x 10 events/s, {client} to C counting, times CPU", most, ["trickle 1000 x 10"],
            lambda all, client=client: all.ratios("trickle 1000 x 10", client, "cpu", COUNT), aim, 3,
            clients=(client, COUNT),
        ))
    for client in (SEQUENCE, ONE):
        made.append(Bound(
            f"10000 x 1, {client}, latest of all rounds, ms", 1000, ["late 10000 x 1"],
            lambda all, client=client: all.values("late 10000 x 1", client, "max"), None, 0, worst=True,
            clients=(client,),
        ))
    for client, most, aim in ((SEQUENCE, 26, 22), (ONE, 31, 27)):
        made.append(Bound(
            f"10000 x 1, {client}, resident KiB a stream", most, ["trickle 10000 x 1"],
            lambda all, client=client: all.values("trickle 10000 x 1", client, "memory"), aim, 1,
            clients=(client,),
        ))
    spreads = [f"trickle {a} x {b}" for a, b in SPREADS]
    for client in (SEQUENCE, ONE):
        made.append(Bound(
            f"100 x 100, 1000 x 10, 10000 x 1, {client}: dearest to cheapest, times CPU", 1.6, spreads,
            lambda all, client=client: all.flatness(client), None, 3,
            clients=(client,),
        ))
    made.append(Bound(
        "10000 idle streams, from the last opening on, CPU s a minute", 0.05, ["idle 10000"],
        lambda all: all.values("idle 10000", SEQUENCE, "cpu"), None, 4,
    ))
    made.append(Bound(
        "10000 idle streams, 20 s later, CPU s a minute", 0.05, ["still 10000"],
        lambda all: all.values("still 10000", SEQUENCE, "cpu"), None, 4,
    ))
    made.append(Bound(
        "10000 idle streams, 20 s later, wake-ups a second of all threads", 1.5, ["still 10000"],
        lambda all: all.values("still 10000", SEQUENCE, "wakeups"), None, 2,
    ))
    for client in (SEQUENCE, ONE):
        made.append(Bound(
            f"latency, {client}, median over C's, us", 15, ["lat"],
            lambda all, client=client: [a - b for a, b in all.pairs("lat", client, "p50", COUNT)], None, 1,
        ))
        made.append(Bound(
            f"latency, {client}, 99th percentile to C's, times", 1.5, ["lat"],
            lambda all, client=client: all.ratios("lat", client, "p99", COUNT), None, 2,
        ))
    return made


def written(value, decimals=2):
    return "-" if value is None else f"{value:.{decimals}f}"


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def report_blasts(results, names):
    """One stream as fast as it goes, to the ceiling that copies and, where it ran, to the one that counts."""
    rows = []
    for name in names:
        for client in results.rounds[name]:
            counting = COUNT in results.rounds[name]
            _, size, *other = name.split()
            rows.append([
                size + " B" + "".join(", " + OTHERS[word] for word in other), client,
                spread(results.values(name, client, "cpu"), 3), written(results.ratio(name, client, "cpu", COPY)),
                written(results.ratio(name, client, "cpu", COUNT) if counting else None),
                written(results.median(name, client, "rate")), written(results.median(name, client, "lost"), 0),
            ])
    return table(["payload", "client", "CPU s", "to copying", "to counting", "million events/s", "lost"], rows)


def kept_up(results, name, client):
    """The columns that say whether all events came: a second, in per cent of those asked for, and left out."""
    share = results.median(name, client, "share")
    few = "" if share is None or share >= PUNCTUAL else " **too few**"
    return [
        written(results.median(name, client, "rate"), 0), written(share, 1) + few,
        written(results.median(name, client, "skipped"), 0),
    ]


KEPT_UP = ["events/s", "% of asked", "skipped"]
SKIPPED = (
    "\n\"Skipped\" is what the server left out since the stream's socket was full; below "
    f"{PUNCTUAL} % of the events asked for\na row says so.\n"
)


def report(results, facts):
    names = list(results.rounds)
    out = ["# Streams against the ceilings\n", "    scripts/benchmark streams" + facts["options"] + "\n", facts["where"] + "\n"]
    out.append(
        "Each figure is the median of the rounds, with the least and the largest; a ratio is the median of the rounds' own\n"
        "ratios. [README](../README.md) says what each figure means.\n"
    )
    rows = [row for row in (bound.row(results) for bound in bounds()) if row]
    if rows:
        out.append(
            "## Bounds\n\nJudged by the median before it is rounded, the latest by the largest. All that is not in this table "
            "is\nreported and has no bound.\n"
        )
        out.append(table(["what", "at most", "aim", "measured", "holds", "this row alone"], rows))
    blasts = [name for name in names if name.startswith("blast")]
    if blasts:
        out.append(
            "## Blast: one stream, as fast as it goes\n\nCPU seconds per million events of the stream. Bounds are on the "
            "sequence, and at 50 B on the loop; on deliveries to\nthe sequence. Deliveries on the loop are reported.\n"
        )
        out.append(report_blasts(results, blasts))
        out.append("![CPU of a blast, as a multiple of the copying ceiling](streams.svg)\n")
    others = [name for name in names if name.startswith("other")]
    if others:
        out.append("## Other streams\n\nAs a blast, of events that are written otherwise. Reported; no bounds.\n")
        out.append(report_blasts(results, others))
    trickles = [name for name in names if name.startswith("trickle")]
    if trickles:
        out.append(
            "## Trickle: many streams\n\nCPU microseconds an event, resident KiB a stream. Bounds are on the CPU at 1000 x 10, "
            "the memory at 10000 x 1, and how\nflat the first three are. 10000 x 10 is reported.\n" + SKIPPED
        )
        rows = []
        for name in trickles:
            for client in results.rounds[name]:
                rows.append([
                    name.removeprefix("trickle "), client, spread(results.values(name, client, "cpu"), 1),
                    written(results.ratio(name, client, "cpu", COUNT)), written(results.median(name, client, "memory"), 1),
                    *kept_up(results, name, client),
                ])
        out.append(table(["streams x events/s", "client", "CPU us", "to counting", "KiB a stream", *KEPT_UP], rows))
    if "lat" in names:
        out.append(
            "## Latency: one stream, 1,000 events a second\n\nMicroseconds from the server's send. Bounds are on both, to C's.\n"
        )
        rows = [
            [client, spread(results.values("lat", client, "p50"), 0), spread(results.values("lat", client, "p99"), 0)]
            for client in results.rounds["lat"]
        ]
        out.append(table(["client", "median", "99th percentile"], rows))
    lates = [name for name in names if name.startswith("late ")]
    if lates:
        out.append(
            "## Punctuality: 10,000 streams\n\nMilliseconds from when the event was due at the server, which sends by the "
            "millisecond. A bound is on the latest at\n1 event a second; 10 are reported.\n" + SKIPPED
        )
        rows = []
        for name in lates:
            for client in results.rounds[name]:
                percentile = [value and value / 1000 for value in results.values(name, client, "p99")]
                rows.append([
                    name.removeprefix("late "), client, spread(results.values(name, client, "max"), 0),
                    spread(percentile, 1), *kept_up(results, name, client),
                ])
        out.append(table(["streams x events/s", "client", "latest", "99th percentile", *KEPT_UP], rows))
    idles = {"idle 10000": "from 0.5 s after the last opened", "still 10000": "from 20 s after the last opened"}
    if any(name in names for name in idles):
        out.append(
            "## Idle: 10,000 open streams\n\nCPU seconds a minute, and how often a second a thread was woken. What the openings "
            "left to be done later is in the first\nrow alone.\n"
        )
        rows = [
            [window, client, spread(results.values(name, client, "cpu"), 4), spread(results.values(name, client, "wakeups"), 1)]
            for name, window in idles.items() if name in names for client in results.rounds[name]
        ]
        out.append(table(["window", "client", "CPU s", "wake-ups a second"], rows))
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
    rounds = chosen.rounds or (1 if chosen.quick else 7)
    only = chosen.only.split(",") if chosen.only else []

    # 10,000 streams are 10,000 descriptors, here and in the server.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    todo = [case for case in cases(chosen.quick) if not only or any((case.name + " ").startswith(word + " ") for word in only)]
    if not todo:
        raise SystemExit(f"no such case: {chosen.only}")
    results = Results()
    for number in range(rounds):
        for case in todo:
            found = {client: run(chosen.programs, case, client) for client in case.clients}
            for client in disagreeing(case, found):
                print(f"{case.name}, {client}: no result: other payloads than {case.clients[0]} had", file=sys.stderr)
                found[client] = None
            for client, fields in found.items():
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
