"""Lists the frames of a program's async functions, the largest first.

    frames.py PROGRAM [PATTERN [LEAST]]

PATTERN is a regular expression for the functions' demangled names, LEAST the least size shown, in bytes. A task keeps its
stack's memory, by slabs of a kibibyte, for as long as it lives: what lies below a wait that lasts costs it for each stream.
The sizes are those of the async function pointers ("Tu" symbols) that the compiler leaves in a program.
"""

import re
import struct
import subprocess
import sys


def lines(*command, given=None):
    return subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout.splitlines()


def sections(program):
    """The address, the offset in the file and the size of each section."""
    row = re.compile(r"\s*\[\s*\d+\]\s+\S+\s+\S+\s+([0-9a-f]+)\s+([0-9a-f]+)\s+([0-9a-f]+)")
    found = (row.match(line) for line in lines("readelf", "-SW", program))
    return [tuple(int(text, 16) for text in match.groups()) for match in found if match]


def frames(program):
    """The size of each async function's frame, by its mangled name."""
    with open(program, "rb") as file:
        data = file.read()
    loaded = [section for section in sections(program) if section[0]]
    sizes = {}
    for words in map(str.split, lines("nm", program)):
        if len(words) != 3 or not words[2].endswith("Tu"):
            continue
        address = int(words[0], 16)
        for start, offset, size in loaded:
            if start <= address < start + size:
                place = offset + address - start
                # A relative pointer to the code, then the size of what it needs.
                sizes[words[2]] = struct.unpack("<iI", data[place : place + 8])[1]
    return sizes


def main(program, pattern=".", least="0"):
    sizes = frames(program)
    names = lines("swift", "demangle", "--simplified", "--compact", given="\n".join(sizes))
    for size, name in sorted(zip(sizes.values(), names), reverse=True):
        if size >= int(least) and re.search(pattern, name):
            print(size, name)


if len(sys.argv) not in (2, 3, 4):
    sys.exit(__doc__)
main(*sys.argv[1:])
