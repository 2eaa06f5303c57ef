"""Runs the tests of the runtime's catalogue, as often as the catalogue says, one after another. scripts/benchmark calls it.

    catalogue.py PROGRAMS RESULTS [--quick] [--only FILTER]

The tests are built for release before, in .build-catalogue. A row a test: what it proves, its count where it has one, and how
long it took; written to RESULTS/catalogue.md. FILTER is `swift test`'s; --quick leaves the counts as they are in every run.
"""

import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

from streams import table, where

# The contract's rows are the transport's to prove.
FOLDERS = ["SubscriptionRuntimeTests", "CurlSSETransportTests", "HTTPTests"]

COMMAND = ["swift", "test", "-c", "release", "--skip-build", "--scratch-path", ".build-catalogue", "--no-parallel"]


def rows():
    """What each test proves: by (folder, file, function), the identifiers that the comment before it names, and its sentence."""
    found = {}
    for folder in FOLDERS:
        for path in sorted(glob.glob(f"Tests/{folder}/*.swift")):
            text = open(path, encoding="utf-8").read()
            for match in re.finditer(r'^(?: *// ([A-Z][0-9].*)\n)? *@Test\((?:\s*)"((?:[^"\\]|\\.)*)"', text, re.M):
                identifiers = re.findall(r"\b[A-M]\d\d\b", match[1] or "")
                function = re.search(r"func (\w+)\(", text[match.end():])[1]
                found[folder, os.path.basename(path), function] = (identifiers, match[2])
    return found


def chosen_tests(named):
    """All of the runtime's tests, and those of the others that have an identifier."""
    chosen = [rf"{FOLDERS[0]}\."]
    for folder in FOLDERS[1:]:
        functions = sorted(function for (place, _, function), (identifiers, _) in named.items() if identifiers and place == folder)
        chosen.append(rf"{folder}\..*/({'|'.join(functions)})\(")
    return "|".join(chosen)


def run(only, quick):
    """Runs the tests: their seconds, and whether they failed, by (folder, file, function); their counts likewise."""
    environment = dict(os.environ)
    if not quick:
        environment["SUBSCRIPTION_FULL"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        stream = f"{folder}/events"
        command = [*COMMAND, "--filter", only, "--event-stream-version", "0", "--event-stream-output-path", stream]
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        events = [json.loads(line)["payload"] for line in open(stream, encoding="utf-8") if '"kind":"event"' in line]
    lines = done.stdout.splitlines()
    counts, figures = {}, []
    for line in lines:
        counted = re.match(r"COUNT (\w+)/(\S+) (\w+)\(.*\) (\d+)$", line)
        if counted:
            counts.setdefault(counted.groups()[:3], set()).add(int(counted[4]))
        elif " lags, " in line:
            figures.append(line)
    began, seconds, failed = {}, {}, set()
    for event in events:
        named = re.match(r"(\w+)\..*/(\w+)\(.*\)/(\w+\.swift):", event.get("testID", ""))
        if not named:
            continue
        test = (named[1], named[3], named[2])
        if event["kind"] == "testStarted":
            began[test] = event["instant"]["absolute"]
        elif event["kind"] == "testEnded":
            seconds[test] = event["instant"]["absolute"] - began[test]
        elif event["kind"] == "issueRecorded" and not event["issue"]["isKnown"]:
            failed.add(test)
    if done.returncode and not failed:
        sys.stderr.write(done.stdout)
        raise SystemExit("the tests did not run to their end")
    return seconds, failed, counts, figures


def main():
    options = argparse.ArgumentParser()
    options.add_argument("programs")
    options.add_argument("results")
    options.add_argument("--quick", action="store_true")
    options.add_argument("--only", default="")
    chosen = options.parse_args()
    os.makedirs(chosen.results, exist_ok=True)
    named = rows()
    if not any(identifiers for identifiers, _ in named.values()):
        raise SystemExit("no test names an identifier: to be called from the top of the checkout")
    only = chosen.only or chosen_tests(named)
    seconds, failed, counts, figures = run(only, chosen.quick)

    lines, others = [], []
    for test, (identifiers, sentence) in sorted(named.items(), key=lambda row: row[1][0]):
        if test not in seconds:
            continue
        count = ", ".join(f"{count:,}" for count in sorted(counts.get(test, [])))
        verdict = "NO" if test in failed else "yes"
        line = [sentence.replace("|", "\\|"), count or "-", f"{seconds[test]:.2f}", verdict]
        if identifiers:
            lines.append([", ".join(identifiers), *line])
        elif count or test in failed:
            others.append([test[1].removesuffix(".swift"), *line])
    total = sum(seconds.values())
    variable = "" if chosen.quick else "SUBSCRIPTION_FULL=1 "
    out = [
        "# The catalogue of the runtime's tests\n",
        "    scripts/benchmark catalogue\n",
        where(None) + "\n",
        "Each test of an identifier, one after another, in release; `L` is benchmarks: [the runtime](runtime.md). The count is\n"
        "the catalogue's own: how many scripts, rounds, handles or payloads, for each argument and each thread of the test. By\n"
        "hand, after the build that `scripts/benchmark` names:\n",
        f"    {variable}{' '.join(COMMAND)} --filter '{only}'\n",
        f"{len(lines)} tests with identifiers, {len(seconds)} in all, {total:.0f} s.\n",
        table(["identifiers", "what is proved", "count", "seconds", "holds"], lines),
        "\n## Beside the catalogue\n\nTests without an identifier that are run more often here than elsewhere.\n",
        table(["tests", "what is proved", "count", "seconds", "holds"], others),
        "\n## Owners on real threads\n\nLags are the scheduler's to say; each is told, and every payload is delivered or counted.\n\n"
        + "\n".join(f"- {line}" for line in figures),
    ]
    with open(f"{chosen.results}/catalogue.md", "w", encoding="ascii") as file:
        file.write("\n".join(out) + "\n")
    print("\n".join(out))
    if failed:
        raise SystemExit("failed: " + ", ".join(function for _, _, function in sorted(failed)))


if __name__ == "__main__":
    main()
