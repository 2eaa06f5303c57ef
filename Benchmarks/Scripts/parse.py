"""Measures the event stream parser in memory, and holds it to its bounds. scripts/benchmark calls it.

    parse.py PROGRAMS RESULTS [--quick] [--only PART[,PART]]

PROGRAMS is where the build put them, RESULTS where parse.md and parse.json go. PARTs: speed, event, linear, memory. The
program runs on CPU 1. It takes a minute, so --quick changes nothing.
"""

import argparse
import json
import os
import subprocess

from streams import table, where

PARTS = {
    "speed": [["speed"]],
    "event": [["event"]],
    "linear": [["linear"]],
    "memory": [["memory", head] for head in ("foo: ", ":", "retry: ", "id: ", "event: ", "data: ")],
}

SPEED = """
About 8 MiB of `event: next`, one `data` line, LFs. Processor time; a round runs all four in turn, and each figure is the
median of fifteen, a ratio the median of the rounds' own. "Looked": a visitor looks at each event, counts it and has none
made. "Kept": each event is put into an array, emptied once a chunk, as a client's queue would be. "Splitter": memchr(3) for
LF, then for CR in the line, no events, and no copies but of a line that a chunk cuts. "Copying splitter": each line's data
into an array of its own as well. All find the same events.

"Looked / splitter" and "kept / copying" compare what does the same; "kept / splitter" is what it costs to have the events,
over finding them alone, and has no bound. Kept events of a chunk share one copy of their data, so a chunk that is the whole
stream is a queue of all of it, in fresh memory. A chunk of 16 KiB cuts one of eight events of 2 KiB, which is assembled in a
buffer, and every event of 64 KiB, for both. A splitter that frees 64 KiB at a time may have glibc give the memory back to the
system and ask for it again each time.
"""

EVENT = """
One event of 16 MiB at the default limit of 16 MiB, twenty times, in processor time. The buffer of an event doubles to 1 MiB
and quadruples from there: steps of 4, 8 and 16 MiB are more than glibc keeps, so that each event would have them mapped,
cleared and given back anew. The first event of a process pays for its pages once, and each event does where the limit is well
over its size.
"""

LINEAR = """
Processor time, medians of five rounds; the last column is the time for twice the size, in multiples, within the rounds. An
event of 32 MiB is past glibc's largest threshold for mmap(2): its buffer is fresh pages each time, which is most of the time
of a large chunk. In 1-byte chunks that disappears.
"""

MEMORY = """
A line that never ends, 200 MiB of it in 16 KiB chunks, with the default limit of 16 MiB. A process each; its peak memory as
getrusage(2) has it, of which about 15 MiB are there before the first byte.
"""


def measure(program, part):
    """What the program prints for a part: tables."""
    # By way of a shell that is small: the peak memory of who forked it is a process's to begin with.
    words = ["sh", "-c", '"$@"; exit $?', "sh", "taskset", "-c", "1", program]
    return "".join(
        subprocess.run([*words, *call], capture_output=True, text=True, check=True, timeout=600).stdout for call in PARTS[part]
    )


def rows_of(text):
    """The rows of a table, with its head or without: lists of cells."""
    return [[cell.strip() for cell in line.strip("| \n").split(" | ")] for line in text.splitlines() if not line.startswith("| ---")]


def dictionaries(text):
    head, *rows = rows_of(text)
    return [dict(zip(head, row)) for row in rows]


def bounds(found):
    """Rows of what is bounded: what, limit, aim, measured, whether it holds, the command."""
    rows = []
    if "speed" in found:
        for size in ("50", "200", "2048", "65536"):
            for row in found["speed"]:
                if row["payload"] != size:
                    continue
                ratio = float(row["looked / splitter"])
                rows.append([
                    f"{size} B, " + ("whole" if row["chunk"] == "whole" else f"in chunks of {row['chunk']}") + ", looked / splitter", "at most 2",
                    "1.3, " + ("met" if ratio <= 1.3 else "missed"), f"{ratio:.3f}", "yes" if ratio <= 2 else "**no**",
                    "`scripts/benchmark parse --only speed`",
                ])
    if "event" in found:
        speed = next(float(row["GB a second of processor time"]) for row in found["event"] if row["chunks"] == "8192 B")
        rows.append([
            "16 MiB events in chunks of 8 KiB, GB/s", "at least 2", "", f"{speed:.2f}", "yes" if speed >= 2 else "**no**",
            "`scripts/benchmark parse --only event`",
        ])
    return rows


def main():
    options = argparse.ArgumentParser()
    options.add_argument("programs")
    options.add_argument("results")
    options.add_argument("--quick", action="store_true")
    options.add_argument("--only", default="")
    chosen = options.parse_args()
    only = chosen.only.split(",") if chosen.only else list(PARTS)
    unknown = [part for part in only if part not in PARTS]
    if unknown:
        raise SystemExit(f"no such part: {', '.join(unknown)}")

    texts = {part: measure(f"{chosen.programs}/parse", part) for part in PARTS if part in only}
    found = {part: dictionaries(text) for part, text in texts.items() if part != "memory"}
    if "memory" in texts:
        head = ["line", "outcome", "peak memory"]
        found["memory"] = [dict(zip(head, row)) for row in rows_of(texts["memory"])]
        texts["memory"] = table(head, rows_of(texts["memory"]))

    given = f" --only {chosen.only}" if chosen.only else ""
    out = ["# The event stream parser in memory\n", f"    scripts/benchmark parse{given}\n", where(None) + "\n"]
    limits = bounds(found)
    if limits:
        out.append("## Bounds\n\nAll that is not in this table is reported and has no bound.\n")
        out.append(table(["what", "bound", "aim", "measured", "holds", "this row alone"], limits))
    sections = {
        "speed": ("Speed by payload and chunk", SPEED), "event": ("A large event, by what the time goes to", EVENT),
        "linear": ("Time by size and cutting", LINEAR), "memory": ("Memory", MEMORY),
    }
    for part, text in texts.items():
        title, prose = sections[part]
        out.append(f"## {title}\n{prose}\n{text}")
    page = "\n".join(out)
    os.makedirs(chosen.results, exist_ok=True)
    with open(f"{chosen.results}/parse.md", "w", encoding="ascii") as file:
        file.write(page)
    with open(f"{chosen.results}/parse.json", "w", encoding="ascii") as file:
        json.dump(found, file, indent=1)
        file.write("\n")
    print(page)
    broken = [row[0] for row in limits if row[4] != "yes"]
    if broken:
        raise SystemExit("over its bound: " + "; ".join(broken))


if __name__ == "__main__":
    main()
