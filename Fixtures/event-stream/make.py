#!/usr/bin/env python3
"""Writes NAME.sse and NAME.events.json beside this file.

Each case states its bytes and, by hand, what the standard (WHATWG HTML 9.2.5 and 9.2.6) makes of them. `model` is a
second reading of the standard's text, slow and on whole streams, that must agree before anything is written; it shares
nothing with the parser. Bytes are what servers send: none is ever changed to suit the code.

    python3 Fixtures/event-stream/make.py            writes all
    python3 Fixtures/event-stream/make.py --check    fails when a file differs
"""
import base64, json, pathlib, re, sys

HERE = pathlib.Path(__file__).parent
MAX = 2**63 - 1
DEFAULT_LIMIT = 16 << 20


def text_or_base64(data):
    try:
        return {"data": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"dataBase64": base64.b64encode(data).decode()}


class Limit(Exception):
    def __init__(self, part, limit):
        self.value = {"part": part, "limit": limit}


def decode(raw):
    return raw.decode("utf-8", errors="replace")


def model(stream, limit, last_id):
    """The standard's algorithm, on the whole stream."""
    out = {"events": [], "retry": None, "comments": [], "halfEventDiscarded": False, "error": None,
           "blocksWithoutData": [], "idMoves": []}
    if stream.startswith(b"\xef\xbb\xbf"):
        stream = stream[3:]
    pieces = re.split(rb"\r\n|\n|\r", stream)
    lines, rest = pieces[:-1], pieces[-1]
    state = {"data": b"", "any": False, "type": b"", "id": last_id, "string": last_id, "idSeen": False}

    def take(line, whole):
        # Returns nothing; an unfinished line is only measured.
        if line.startswith(b":"):
            comment = line[1:]
            if len(comment) > limit:
                raise Limit("comment", limit)
            if whole:
                out["comments"].append(comment)
            return
        name, colon, value = line.partition(b":")
        if not whole and not colon:
            return
        if value.startswith(b" "):
            value = value[1:]
        if name == b"data":
            joined = state["data"] + value       # each earlier line left its LF there
            if len(joined) > limit:
                raise Limit("event data", limit)
            if whole:
                state["data"] = joined + b"\n"
        elif name == b"event":
            if len(value) > limit:
                raise Limit("event field", limit)
            if whole:
                state["type"] = value
        elif name == b"id":
            if len(value) > limit:
                raise Limit("id field", limit)
            if whole and b"\0" not in value:
                state["id"], state["idSeen"] = decode(value), True
        elif name == b"retry":
            if whole and re.fullmatch(rb"[0-9]+", value):
                out["retry"] = min(int(value), MAX)

    try:
        for line in lines:
            if line:
                take(line, True)
                continue
            # Dispatch the event.
            if state["id"] != state["string"]:
                moved, state["string"] = True, state["id"]
            else:
                moved = False
            if state["data"] == b"":
                if moved:
                    out["idMoves"].append(state["string"])
                if state["type"]:
                    out["blocksWithoutData"].append(decode(state["type"]))
            else:
                out["events"].append((decode(state["type"]) or "message", state["data"][:-1], state["string"]))
            state["data"], state["type"], state["idSeen"] = b"", b"", False
        take(rest, False)
        name, colon, _ = rest.partition(b":")
        half = any(name == f if colon else (name and f.startswith(name)) for f in (b"data", b"event", b"id"))
        out["halfEventDiscarded"] = bool(state["data"] or state["type"] or state["idSeen"] or half)
    except Limit as reached:
        out["error"] = reached.value
    out["lastEventID"] = state["string"]
    return out


CASES = {}


def E(data, type="message", id=""):
    return (type, data.encode() if isinstance(data, str) else data, id)


def C(name, proves, stream, events=(), retry=None, comments=(), half=False, error=None, blocks=(), moves=(), last=None,
      limit=None, start=None):
    stream = stream.encode() if isinstance(stream, str) else stream
    events = [E(e) if isinstance(e, (str, bytes)) else e for e in events]
    comments = [c.encode() if isinstance(c, str) else c for c in comments]
    if last is None:
        last = events[-1][2] if events else (moves[-1] if moves else (start or ""))
    stated = {"events": events, "retry": retry, "comments": comments, "halfEventDiscarded": half,
              "error": {"part": error, "limit": limit} if error else None, "blocksWithoutData": list(blocks),
              "idMoves": list(moves), "lastEventID": last}
    found = model(stream, DEFAULT_LIMIT if limit is None else limit, start or "")
    if stated != found:
        keys = [k for k in stated if stated[k] != found[k]]
        sys.exit(f"{name}: stated and modelled differ in {keys}:\n" +
                 "\n".join(f"  {k}\n    stated   {stated[k]!r:.300}\n    modelled {found[k]!r:.300}" for k in keys))
    if name in CASES:
        sys.exit(f"{name} comes twice")
    result = {"proves": proves}
    if limit is not None or start is not None:
        result["options"] = {k: v for k, v in (("maxEventBytes", limit), ("lastEventID", start)) if v is not None}
    result["events"] = [{"type": t, **text_or_base64(d), "lastEventID": i} for t, d, i in events]
    result["retry"] = retry
    result["comments"] = [text_or_base64(c)["data"] for c in comments]
    result["blocksWithoutData"] = list(blocks)
    result["lastEventID"] = last
    result["halfEventDiscarded"] = half
    result["error"] = stated["error"]
    CASES[name] = (stream, json.dumps(result, indent=2, ensure_ascii=True) + "\n")


# --- Line ends (9.2.5: end-of-line = ( cr lf / cr / lf )) --------------------------------------------------------
C("line-lf", "LF ends a line", "data: a\n\n", ["a"])
C("line-cr", "CR ends a line", "data: a\r\r", ["a"])
C("line-crlf", "CR LF ends a line once", "data: a\r\n\r\n", ["a"])
C("line-crlf-two-lines", "CR LF between data lines is one line end", "data: a\r\ndata: b\r\n\r\n", ["a\nb"])
C("line-cr-two-lines", "CR between data lines is one line end", "data: a\rdata: b\r\r", ["a\nb"])
C("line-lf-two-lines", "LF between data lines is one line end", "data: a\ndata: b\n\n", ["a\nb"])
C("line-mixed-cr-then-lf", "CR, then LF LF: the first LF belongs to the CR", "data: A\rdata: B\n\ndata: C\n\n", ["A\nB", "C"])
C("line-mixed-all", "each kind of line end ends an event", "data: a\r\rdata: b\n\ndata: c\r\n\r\n", ["a", "b", "c"])
C("line-cr-crlf", "CR then CR LF: a line end and an empty line", "data: a\r\r\ndata: b\r\r\n", ["a", "b"])
C("line-crlf-cr", "CR LF then CR: a line end and an empty line", "data: a\r\n\rdata: b\r\n\r", ["a", "b"])
C("line-lf-cr", "LF then CR are two line ends", "data: a\n\rdata: b\n\r", ["a", "b"])
C("line-lf-crlf", "LF then CR LF are two line ends", "data: a\n\r\ndata: b\n\r\n", ["a", "b"])
C("line-crlf-lf", "CR LF then LF are two line ends", "data: a\r\n\ndata: b\r\n\n", ["a", "b"])
C("line-late-lf-is-no-line", "an LF after an event's last CR is no empty line", "data: x\r\r\ndata: y\r\r", ["x", "y"])
C("line-late-lf-does-not-cut", "an LF after a data line's CR does not cut the event", "data: y\r\ndata: z\r\n\r\n", ["y\nz"])
C("line-only-cr", "empty lines of CR dispatch nothing", "\r" * 64)
C("line-only-lf", "empty lines of LF dispatch nothing", "\n" * 64)
C("line-only-crlf", "empty lines of CR LF dispatch nothing", "\r\n" * 64)
C("line-empty-before", "empty lines before an event are nothing", "\n\r\n\r\n\ndata: a\n\n", ["a"])
C("line-empty-between", "more than one empty line between events is nothing", "data: a\n\n\n\n\ndata: b\n\n\n", ["a", "b"])
C("line-nel-ls-ps-vt-ff", "U+0085, U+2028, U+2029, VT and FF end no line",
  b"data: a\xe2\x80\xa8b\xc2\x85c\x0bd\x0ce\xe2\x80\xa9f\n\n", [b"a\xe2\x80\xa8b\xc2\x85c\x0bd\x0ce\xe2\x80\xa9f"])
C("line-rs-us", "information separators end no line", b"data: a\x1cb\x1dc\x1ed\x1fe\n\n", [b"a\x1cb\x1dc\x1ed\x1fe"])
C("line-cr-in-crlf-stream", "a lone CR cuts a line of a CR LF stream", "data: a\rdata: b\r\n\r\n", ["a\nb"])
C("line-cr-cuts-name", "a CR inside a name cuts it", "da\rta: x\r\r")
C("line-double-cr-in-lf-stream", "CR CR ends an event in an LF stream", "data: a\r\rdata: b\n\n", ["a", "b"])
C("line-empty-stream", "an empty stream has nothing", "")
C("line-one-lf", "one empty line has nothing", "\n")
C("line-one-cr", "one CR has nothing", "\r")
C("line-crlf-run", "CR CR LF LF is three line ends", "data: a\r\r\n\ndata: b\n\n", ["a", "b"])
C("line-cr-many-lines", "many CR lines of one event", "data: x\r" * 40 + "\r", ["\n".join(["x"] * 40)])
C("line-alternating", "line ends alternate within one event", "data: 1\ndata: 2\rdata: 3\r\ndata: 4\n\r", ["1\n2\n3\n4"])

# --- The BOM (9.2.5: [ bom ] at the start, once) ------------------------------------------------------------------
BOM = b"\xef\xbb\xbf"
C("bom-first", "one BOM at the start is ignored", BOM + b"data: a\n\n", ["a"])
C("bom-second-event", "a BOM later makes the name unknown", BOM + b"data: a\n\n" + BOM + b"data: b\n\ndata: c\n\n", ["a", "c"])
C("bom-twice", "the second of two BOMs is part of the name", BOM + BOM + b"data: a\n\ndata: b\n\n", ["b"])
C("bom-inside-data", "a BOM in data is data", b"data: " + BOM + b"a\n\n", [BOM + b"a"])
C("bom-after-line", "a BOM after an empty line is part of the name", b"\n" + BOM + b"data: a\n\ndata: b\n\n", ["b"])
C("bom-only", "a stream of one BOM has nothing", BOM)
C("bom-half", "two thirds of a BOM are part of the name", b"\xef\xbbdata: a\n\ndata: b\n\n", ["b"])
C("bom-third", "a third of a BOM is part of the name", b"\xefdata: a\n\ndata: b\n\n", ["b"])
C("bom-half-at-line-end", "a line of two thirds of a BOM is an unknown name", b"\xef\xbb\ndata: b\n\n", ["b"])
C("bom-half-at-end", "a stream of two thirds of a BOM has nothing", b"\xef\xbb")
C("bom-comment", "a comment may follow the BOM", BOM + b": hi\n\ndata: a\n\n", ["a"], comments=[" hi"])
C("bom-empty-line", "an empty line may follow the BOM", BOM + b"\n\ndata: a\n\n", ["a"])
C("bom-crlf", "CR LF may follow the BOM", BOM + b"\r\ndata: a\r\n\r\n", ["a"])
C("bom-utf16-be", "a UTF-16 mark is part of the name", b"\xfe\xffdata: a\n\ndata: b\n\n", ["b"])
C("bom-utf16-le", "the other UTF-16 mark is too", b"\xff\xfedata: a\n\ndata: b\n\n", ["b"])
C("bom-id-kept", "the BOM takes nothing from an ID", BOM + b"id: 1\ndata: a\n\n", [E("a", id="1")])

# --- Lines to fields (9.2.6) --------------------------------------------------------------------------------------
C("field-no-space", "no space after the colon", "data:x\n\n", ["x"])
C("field-one-space", "one space after the colon is removed", "data: x\n\n", ["x"])
C("field-two-spaces", "of two spaces one is removed", "data:  x\n\n", [" x"])
C("field-tab", "a tab after the colon stays", "data:\tx\n\n", ["\tx"])
C("field-space-tab", "a tab after the removed space stays", "data: \tx\n\n", ["\tx"])
C("field-trailing-space", "a trailing space stays", "data: x \n\n", ["x "])
C("field-only-space", "a value of one space is empty", "data: \n\n", [""])
C("field-only-two-spaces", "a value of two spaces is one", "data:  \n\n", [" "])
C("field-nbsp", "a no-break space is no space", "data:\u00a0x\n\n", ["\u00a0x"])
C("field-no-colon", "a name alone has an empty value", "data\n\n", [""])
C("field-no-colon-twice", "two names alone are two empty lines", "data\ndata\n\n", ["\n"])
C("field-space-before-colon", "a space before the colon is part of the name", "data :x\n\ndata: y\n\n", ["y"])
C("field-leading-space", "a leading space is part of the name", " data: x\n\ndata: y\n\n", ["y"])
C("field-leading-tab", "a leading tab is part of the name", "\tdata: x\n\ndata: y\n\n", ["y"])
C("field-upper-case", "names are compared with case", "Data: x\nDATA: y\n\ndata: z\n\n", ["z"])
C("field-upper-case-others", "the other names too", "Event: a\nID: 1\nRetry: 5\ndata: z\n\n", ["z"])
C("field-unknown", "an unknown field is ignored", "foo: bar\ndata: x\n\n", ["x"])
C("field-unknown-only", "a block of unknown fields dispatches nothing", "foo: bar\n\ndata: x\n\n", ["x"])
C("field-prefix", "a prefix of a name is no name", "dat: x\nd: x\neven: x\ni: x\nretr: 5\ndata: y\n\n", ["y"])
C("field-longer", "a longer name is another", "datax: x\ndatas\nevents: a\nids: 1\nid2: 2\nretry2: 5\ndata: y\n\n", ["y"])
C("field-colons-in-value", "only the first colon splits", "data: a:b: c\n\n", ["a:b: c"])
C("field-second-colon-first", "a colon right after the first is data", "data::x\n\n", [":x"])
C("field-json", "JSON stays as it is", "data: {\"a\": [1, 2, {\"b\": \"c: d\"}]}\n\n", ["{\"a\": [1, 2, {\"b\": \"c: d\"}]}"])
C("field-name-with-nul", "NUL in a name makes it unknown", b"da\0ta: x\n\ndata: y\n\n", ["y"])
C("field-nul-data", "NUL in data is data", b"data: a\0b\n\n", [b"a\0b"])
C("field-value-is-name", "a value may be a field", "data: data: x\n\n", ["data: x"])
C("field-html", "a page is no event", "<html>\n<body>data: x</body>\n</html>\n\n")
C("field-fullwidth-colon", "another colon is none", "data\uff1a x\n\ndata: y\n\n", ["y"])
C("field-name-non-ascii", "a name of other letters is unknown", "d\u0430ta: x\n\ndata: y\n\n", ["y"])
C("field-long-unknown", "a long unknown line is ignored", "foo: " + "x" * 3000 + "\ndata: y\n\n", ["y"])
C("field-long-name", "a long name without a colon is ignored", "d" + "a" * 2000 + "\ndata: y\n\n", ["y"])
C("field-order", "fields come in any order", "data: a\nid: 1\nevent: e\nretry: 7\ndata: b\n\n", [E("a\nb", "e", "1")], retry=7)

# --- data -------------------------------------------------------------------------------------------------------
C("data-empty", "an empty data line is an event", "data:\n\n", [""])
C("data-leading-empty", "a leading empty line stays", "data:\ndata: x\n\n", ["\nx"])
C("data-trailing-empty", "a trailing empty line stays", "data: x\ndata:\n\n", ["x\n"])
C("data-only-empty", "three empty lines are two LFs", "data\ndata:\ndata: \n\n", ["\n\n"])
C("data-middle-empty", "an empty line in the middle stays", "data: a\ndata:\ndata: b\n\n", ["a\n\nb"])
C("data-two-hundred-lines", "many lines join in order", "".join(f"data: {n}\n" for n in range(200)) + "\n",
  ["\n".join(str(n) for n in range(200))])
C("data-twenty-events", "events come in order", "".join(f"data: {n}\n\n" for n in range(20)), [str(n) for n in range(20)])
C("data-pretty-json", "pretty JSON keeps its indentation", "data: {\ndata:   \"a\": 1\ndata: }\n\n", ["{\n  \"a\": 1\n}"])
C("data-buffer-reset", "the next event begins empty", "data: a\ndata: b\n\ndata: c\n\n", ["a\nb", "c"])
C("data-4095", "data of 4095 bytes", "data: " + "x" * 4095 + "\n\ndata: y\n\n", ["x" * 4095, "y"])
C("data-4096", "data of 4096 bytes", "data: y\n\ndata: " + "x" * 4096 + "\n\ndata: z\n\n", ["y", "x" * 4096, "z"])
C("data-large-lines", "large data of many lines between small events",
  "data: a\n\n" + ("data: " + "0123456789" * 9 + "\n") * 50 + "\ndata: b\n\n", ["a", "\n".join(["0123456789" * 9] * 50), "b"])
C("data-sizes", "sizes around powers of two", "".join(f"data: {'s' * n}\n\n" for n in (0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256)),
  ["s" * n for n in (0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256)])

# --- event ------------------------------------------------------------------------------------------------------
C("event-named", "the event field names the event", "event: add\ndata: 1\n\n", [E("1", "add")])
C("event-after-data", "it may come after the data", "data: 1\nevent: add\n\n", [E("1", "add")])
C("event-last-wins", "the last of two counts", "event: a\nevent: b\ndata: 1\n\n", [E("1", "b")])
C("event-empty-is-message", "an empty name is message", "event:\ndata: 1\n\n", ["1"])
C("event-empty-resets", "an empty name takes back the one before", "event: a\nevent\ndata: 1\n\n", ["1"])
C("event-does-not-leak", "the name does not outlive its block", "event: a\ndata: 1\n\ndata: 2\n\n", [E("1", "a"), "2"])
C("event-no-data", "a block without data dispatches nothing, and its name goes", "event: a\n\ndata: x\n\n", ["x"], blocks=["a"])
C("event-space-kept", "the second space is part of the name", "event:  a \ndata: 1\n\n", [E("1", " a ")])
C("event-message", "the name message may be said", "event: message\ndata: 1\n\n", ["1"])
C("event-long", "a name over 15 bytes", "event: a-name-of-more-than-fifteen-bytes\ndata: 1\n\n", [E("1", "a-name-of-more-than-fifteen-bytes")])
C("event-alternating", "names alternate", "event: a\ndata: 1\n\nevent: b\ndata: 2\n\nevent: a\ndata: 3\n\n", [E("1", "a"), E("2", "b"), E("3", "a")])
C("event-same-length", "names of one length are told apart", "event: ab\ndata: 1\n\nevent: ac\ndata: 2\n\n", [E("1", "ab"), E("2", "ac")])
C("event-non-ascii", "a name is UTF-8", "event: gr\u00fc\u00dfe\ndata: 1\n\n", [E("1", "gr\u00fc\u00dfe")])
C("event-invalid-utf8", "an invalid byte of a name is U+FFFD", b"event: a\xffb\ndata: 1\n\n", [E("1", "a\ufffdb")])
C("event-empty-no-data", "a block with an empty name and no data says nothing", "event:\n\n")
C("event-reset-no-data", "a name taken back says nothing", "event: a\nevent:\n\n")
C("event-nul", "NUL in a name stays", b"event: a\0b\ndata: 1\n\n", [E("1", "a\0b")])

# --- graphql-sse's complete -------------------------------------------------------------------------------------
C("complete-bare", "complete without data is a block without data", "event: complete\n\n", blocks=["complete"])
C("complete-empty-data", "complete with empty data is an event", "event: complete\ndata:\n\n", [E("", "complete")])
C("complete-null", "complete with null is an event", "event: complete\ndata: null\n\n", [E("null", "complete")])
C("complete-object", "complete with an object is an event", "event: complete\ndata: {}\n\n", [E("{}", "complete")])
C("complete-cr", "complete without data in CRs", "event:complete\r\r", blocks=["complete"])
C("complete-after-next", "a result and the completion", "event: next\ndata: {\"data\":{\"a\":1}}\n\nevent: complete\n\n",
  [E("{\"data\":{\"a\":1}}", "next")], blocks=["complete"])
C("complete-unfinished", "complete without its empty line is half an event", "event: complete\n", half=True)
C("complete-after-comment", "a comment in the block changes nothing", "event: complete\n: bye\n\n", blocks=["complete"], comments=[" bye"])
C("complete-with-id", "a block without data moves the ID first", "id: 7\nevent: complete\n\n", blocks=["complete"], moves=["7"])

# --- id ---------------------------------------------------------------------------------------------------------
C("id-simple", "an ID goes with its event", "id: 1\ndata: a\n\n", [E("a", id="1")])
C("id-persists", "and with those after it", "id: 1\ndata: a\n\ndata: b\n\n", [E("a", id="1"), E("b", id="1")])
C("id-after-data", "it may come after the data", "data: a\nid: 1\n\n", [E("a", id="1")])
C("id-empty-resets", "an empty ID resets", "id: 1\ndata: a\n\nid:\ndata: b\n\n", [E("a", id="1"), E("b")])
C("id-no-colon-resets", "a name alone resets", "id: 1\ndata: a\n\nid\ndata: b\n\ndata: c\n\n", [E("a", id="1"), E("b"), E("c")])
C("id-nul-ignored", "an ID with NUL is ignored", b"id: 1\ndata: a\n\nid: 2\x003\ndata: b\n\n", [E("a", id="1"), E("b", id="1")])
C("id-nul-first", "also where it is the first byte", b"id: 1\ndata: a\n\nid: \0\ndata: b\n\n", [E("a", id="1"), E("b", id="1")])
C("id-nul-keeps-earlier", "and keeps the block's earlier one", b"id: 1\nid: 2\0\ndata: a\n\n", [E("a", id="1")])
C("id-nul-then-good", "a later one counts", b"id: 2\0\nid: 3\ndata: a\n\n", [E("a", id="3")])
C("id-last-wins", "the last of two counts", "id: 1\nid: 2\ndata: a\n\n", [E("a", id="2")])
C("id-without-data", "a block with an ID alone moves it", "id: 1\n\ndata: x\n\n", [E("x", id="1")], moves=["1"])
C("id-without-data-only", "also where no event follows", "id: 1\n\n", moves=["1"])
C("id-without-data-same", "the same ID again moves nothing", "id: 1\ndata: a\n\nid: 1\n\n", [E("a", id="1")])
C("id-other-spelling-alone", "the same character in other bytes is another ID", "id: \u00e9\n\nid: e\u0301\n\n",
  moves=["\u00e9", "e\u0301"])
C("id-other-spelling", "also with an event between", "id: \u00e9\ndata: a\n\nid: e\u0301\n\ndata: b\n\n",
  [E("a", id="\u00e9"), E("b", id="e\u0301")], moves=["e\u0301"])
C("id-without-data-reset", "an empty ID alone moves it to none", "id: 1\ndata: a\n\nid\n\n", [E("a", id="1")], moves=[""], last="")
C("id-half", "an unfinished block's ID is never used", "id: 1\ndata: a\n\nid: 9\ndata: half", [E("a", id="1")], half=True)
C("id-half-finished-line", "also where its line is whole", "id: 1\ndata: a\n\nid: 9\n", [E("a", id="1")], half=True)
C("id-faults", "NUL, empty, persistence and half an event in one stream",
  b"id: 1\ndata: a\n\nid: 2\x003\ndata: b\n\nid\ndata: c\n\ndata: d\n\nid: 9\ndata: half",
  [E("a", id="1"), E("b", id="1"), E("c"), E("d")], half=True)
C("id-space", "the second space is part of the ID", "id:  1 \ndata: a\n\n", [E("a", id=" 1 ")])
C("id-long", "an ID over 15 bytes", "id: 0123456789abcdef-0123456789\ndata: a\n\n", [E("a", id="0123456789abcdef-0123456789")])
C("id-utf8", "an ID is UTF-8", "id: \u2603\ndata: a\n\n", [E("a", id="\u2603")])
C("id-invalid-utf8", "an invalid byte of an ID is U+FFFD", b"id: \xff1\ndata: a\n\n", [E("a", id="\ufffd1")])
C("id-json", "an ID may be anything", "id: {\"a\":1}\ndata: a\n\n", [E("a", id="{\"a\":1}")])
C("id-start", "the buffer starts with the last stream's ID", "data: a\n\nid: 6\ndata: b\n\n", [E("a", id="5"), E("b", id="6")], start="5")
C("id-start-reset", "and is reset by an empty one", "data: a\n\nid\ndata: b\n\n", [E("a", id="5"), E("b")], start="5")
C("id-start-kept", "a stream that says nothing keeps it", ": hi\n\n", comments=[" hi"], start="5")
C("id-start-same", "the same ID again moves nothing from the start", "id: 5\n\n", start="5")
C("id-changes", "each event has its own", "".join(f"id: {n}\ndata: {n}\n\n" for n in range(12)), [E(str(n), id=str(n)) for n in range(12)])
C("id-negative", "an ID need not be a number", "id: -1\ndata: a\n\n", [E("a", id="-1")])

# --- retry ------------------------------------------------------------------------------------------------------
def R(name, proves, value, expected):
    value = value.encode() if isinstance(value, str) else value
    C("retry-" + name, proves, b"retry: " + value + b"\ndata: x\n\n", ["x"], retry=expected)
R("simple", "digits are milliseconds", "3000", 3000)
R("zero", "zero is a number", "0", 0)
R("leading-zeros", "leading zeros change nothing", "0" * 40 + "15", 15)
R("max", "the largest that fits", "9223372036854775807", MAX)
R("max-and-one", "one more saturates", "9223372036854775808", MAX)
R("unsigned-max", "two to the 64th saturates", "18446744073709551616", MAX)
R("400-digits", "400 digits saturate", "9" * 400, MAX)
R("near-max", "one less does not saturate", "9223372036854775806", MAX - 1)
R("plus", "a plus is no digit", "+5", None)
R("minus", "a minus is no digit", "-1", None)
R("decimal", "a point is no digit", "1.5", None)
R("exponent", "an exponent is no digit", "1e3", None)
R("leading-space", "a second space is no digit", " 5", None)
R("trailing-space", "a trailing space is no digit", "5 ", None)
R("hex", "a hexadecimal number is none", "0x10", None)
R("arabic", "only ASCII digits are digits", "\u0663", None)
R("fullwidth", "full-width digits are none", "\uff15", None)
R("superscript", "superscripts are none", "5\u00b2", None)
R("nul", "NUL is no digit", b"5\0", None)
R("empty", "an empty value is no number", "", None)
R("slash", "the byte before zero is no digit", "1/", None)
R("colon", "the byte after nine is no digit", "1:", None)
R("400-digits-and-x", "a saturated number with a letter is none", "9" * 400 + "x", None)
C("retry-no-colon", "a name alone is no number", "retry\ndata: x\n\n", ["x"])
C("retry-no-space", "no space is needed", "retry:10\n\n", retry=10)
C("retry-tab", "a tab is no digit", "retry:\t10\n\n")
C("retry-last-wins", "the last number counts", "retry: 1\nretry: 2\nretry: x\n\n", retry=2)
C("retry-at-once", "it counts without an empty line", "retry: 10\n", retry=10)
C("retry-unfinished", "an unfinished line does not count", "retry: 10")
C("retry-bad-keeps", "what is no number keeps the one before", "retry: 10\n\nretry: abc\n\n", retry=10)
C("retry-in-half-event", "it counts though its event is discarded", "data: a\nretry: 10\ndata: b", retry=10, half=True)
C("retry-cr", "a CR ends it", "retry: 10\rretry: 20\r", retry=20)
C("retry-between-events", "it comes between events", "data: a\n\nretry: 9\n\ndata: b\n\n", ["a", "b"], retry=9)

# --- Comments ---------------------------------------------------------------------------------------------------
C("comment-only", "a comment is no event", ": hi\n\n", comments=[" hi"])
C("comment-first", "a comment before the data", ": hi\ndata: x\n\n", ["x"], comments=[" hi"])
C("comment-middle", "a comment between data lines", "data: x\n: mid\ndata: y\n\n", ["x\ny"], comments=[" mid"])
C("comment-last", "a comment after the data", "data: x\n: end\n\n", ["x"], comments=[" end"])
C("comment-named", "a field called comment is none", "comment: z\ndata: x\n\n", ["x"])
C("comment-empty", "an empty comment", ":\n\n", comments=[""])
C("comment-colon", "a comment of a colon", "::\n", comments=[":"])
C("comment-verbatim", "all after the colon is the comment", ":  two spaces \n\n", comments=["  two spaces "])
C("comment-looks-like-field", "a comment may look like a field", ":data: x\n\n", comments=["data: x"])
C("comment-keepalives", "keep-alives are nothing", ":\n\n" * 30 + "data: x\n\n", ["x"], comments=[""] * 30)
C("comment-keepalives-in-block", "also inside a block", "data: a\n" + ":\n" * 30 + "data: b\n\n", ["a\nb"], comments=[""] * 30)
C("comment-crlf", "comments in CR LF", ": a\r\n\r\n: b\r\n\r\n", comments=[" a", " b"])
C("comment-cr", "comments in CR", ": a\r\r: b\r\r", comments=[" a", " b"])
C("comment-non-ascii", "a comment is any text", ": \u2603\n\n", comments=[" \u2603"])
C("comment-unfinished", "an unfinished comment is not reported, and is no half event", "data: a\n\n: hi", ["a"])
C("comment-without-empty-line", "a comment is reported at its line's end", ": hi\n", comments=[" hi"])
C("comment-long", "a long comment", ":" + "c" * 5000 + "\n\ndata: x\n\n", ["x"], comments=["c" * 5000])
C("comment-around-retry", "comments and retry keep their order", ": a\nretry: 1\n: b\n\n", comments=[" a", " b"], retry=1)

# --- Half events (9.2.6: pending data is discarded at the end) ----------------------------------------------------
C("half-no-empty-line", "an event without its empty line is discarded", "data: a\n", half=True)
C("half-no-line-end", "an event without a line end is discarded", "data: a", half=True)
C("half-crlf-half", "CR is a line end, not an empty line", "data: a\r", half=True)
C("half-crlf", "CR LF is one line end", "data: a\r\n", half=True)
C("half-crlf-cr", "CR LF CR is an event", "data: a\r\n\r", ["a"])
C("half-after-event", "the event before it stays", "data: a\n\ndata: b\n", ["a"], half=True)
C("half-event-name", "a name alone is half an event", "data: a\n\nevent: b\n", ["a"], half=True)
C("half-prefix", "a name that could be data is half an event", "data: a\n\ndat", ["a"], half=True)
C("half-name", "data without its line end is half an event", "data: a\n\ndata", ["a"], half=True)
C("half-other-prefix", "a name that could not be is none", "data: a\n\ndax", ["a"])
C("half-unknown", "an unfinished unknown field is none", "data: a\n\nfoo: x", ["a"])
C("half-unknown-line", "nor is a whole one", "data: a\n\nfoo: x\n", ["a"])
C("half-longer-name", "datax is no data", "data: a\n\ndatax: x", ["a"])
C("half-empty-event-name", "an empty name is none", "data: a\n\nevent:\n", ["a"])
C("half-retry", "an unfinished retry is none", "data: a\n\nret", ["a"])
C("half-id-unfinished", "an unfinished ID is half an event", "data: a\n\nid: 3", ["a"], half=True)
C("half-id-nul", "an ID that is ignored is none", b"data: a\n\nid: 3\0\n", ["a"])
C("half-none", "a whole stream has none", "data: a\n\n", ["a"])
C("half-colon-alone", "data: is half an event", "data:", half=True)
C("half-many-lines", "a long half event is discarded whole", "data: a\n\n" + "data: 0123456789\n" * 60, ["a"], half=True)

# --- UTF-8 ------------------------------------------------------------------------------------------------------
C("utf8-four-bytes", "a character of four bytes, cut anywhere", "data: \U0001F600\n\n", ["\U0001F600"])
C("utf8-two-and-three-bytes", "characters of two and three bytes", "data: \u00e9\u20ac\n\n", ["\u00e9\u20ac"])
C("utf8-combining", "a combining mark after the space is no space", "data: \u0301x\n\n", ["\u0301x"])
C("utf8-combining-after-colon", "a combining mark after the colon leaves it a colon", "data:\u0301x\n\n", ["\u0301x"])
C("utf8-zwj", "a family stays together", "data: \U0001F468\u200d\U0001F469\u200d\U0001F467\n\n", ["\U0001F468\u200d\U0001F469\u200d\U0001F467"])
C("utf8-crlf-character", "CR LF is no character of its own", "data: a\r\ndata: b\r\n\r\n", ["a\nb"])
C("utf8-invalid", "an invalid byte is kept", b"data: a\xffb\n\n", [b"a\xffb"])
C("utf8-truncated", "half a character is kept", b"data: a\xe2\x82\n\n", [b"a\xe2\x82"])
C("utf8-overlong", "an overlong form is kept", b"data: \xc0\xaf\n\n", [b"\xc0\xaf"])
C("utf8-surrogate", "an encoded surrogate is kept", b"data: \xed\xa0\x80\n\n", [b"\xed\xa0\x80"])
C("utf8-latin1", "Latin-1 is kept", b"data: caf\xe9\n\n", [b"caf\xe9"])
C("utf8-all-bytes", "every byte but LF and CR is data", b"data: " + bytes(b for b in range(256) if b not in (10, 13)) + b"\n\n",
  [bytes(b for b in range(256) if b not in (10, 13))])
C("utf8-lf-in-sequence", "an LF inside a character ends the line", b"data: a\xe2\x82\n\xac\n\n", [b"a\xe2\x82"])
C("utf8-rtl", "right-to-left text", "data: \u05e9\u05dc\u05d5\u05dd\n\n", ["\u05e9\u05dc\u05d5\u05dd"])

# --- Limits (beside the standard) ---------------------------------------------------------------------------------
L = 16
C("limit-data-exact", "data of the limit passes", "data: " + "x" * 16 + "\n\n", ["x" * 16], limit=L)
C("limit-data-over", "one byte more fails", "data: " + "x" * 17 + "\n\n", error="event data", limit=L)
C("limit-data-over-unfinished", "also before its line ends", "data: " + "x" * 17, error="event data", limit=L)
C("limit-data-over-much", "also where it never ends", "data: " + "x" * 3000, error="event data", limit=L)
C("limit-data-lines-exact", "lines count with the LFs between them", "data: 1234567\ndata: 12345678\n\n", ["1234567\n12345678"], limit=L)
C("limit-data-lines-over", "one byte more fails", "data: 12345678\ndata: 12345678\n\n", error="event data", limit=L)
C("limit-data-only-lfs", "LFs alone reach the limit", "data\n" * 17 + "\n", ["\n" * 16], limit=L)
C("limit-data-only-lfs-over", "and pass it", "data\n" * 18 + "\n", error="event data", limit=L)
C("limit-data-last-empty-line", "an empty line's LF counts", "data: " + "x" * 16 + "\ndata:\n\n", error="event data", limit=L)
C("limit-event-before", "events before the error are delivered", "data: a\n\nid: 3\ndata: b\n\ndata: " + "x" * 17 + "\n\ndata: c\n\n",
  [E("a"), E("b", id="3")], error="event data", limit=L)
C("limit-event-field-exact", "an event field of the limit passes", "event: " + "e" * 16 + "\ndata: a\n\n", [E("a", "e" * 16)], limit=L)
C("limit-event-field-over", "one byte more fails", "event: " + "e" * 17 + "\ndata: a\n\n", error="event field", limit=L)
C("limit-event-field-unfinished", "also before its line ends", "data: a\n\nevent: " + "e" * 40, ["a"], error="event field", limit=L)
C("limit-id-exact", "an ID of the limit passes", "id: " + "i" * 16 + "\ndata: a\n\n", [E("a", id="i" * 16)], limit=L)
C("limit-id-over", "one byte more fails", "id: " + "i" * 17 + "\ndata: a\n\n", error="id field", limit=L)
C("limit-id-over-nul", "also with NUL", b"id: \0" + b"i" * 17 + b"\ndata: a\n\n", error="id field", limit=L)
C("limit-comment-exact", "a kept comment of the limit passes", ":" + "c" * 16 + "\ndata: a\n\n", ["a"], comments=["c" * 16], limit=L)
C("limit-comment-over", "one byte more fails", "data: a\n\n:" + "c" * 17 + "\ndata: b\n\n", ["a"], error="comment", limit=L)
C("limit-unknown", "an unknown field of any length passes", "foo: " + "x" * 3000 + "\ndata: a\n\n", ["a"], limit=L)
C("limit-unknown-name", "a name of any length passes", "data" + "a" * 3000 + "\ndata: a\n\n", ["a"], limit=L)
C("limit-retry", "a retry of any length passes", "retry: " + "0" * 3000 + "7\ndata: a\n\n", ["a"], retry=7, limit=L)
C("limit-many-events", "the limit is each event's own", "data: 0123456789\n\n" * 20, ["0123456789"] * 20, limit=L)
C("limit-separate-fields", "the limit is each field's own", "event: " + "e" * 16 + "\nid: " + "i" * 16 + "\ndata: " + "d" * 16 + "\n\n",
  [E("d" * 16, "e" * 16, "i" * 16)], limit=L)
C("limit-space-does-not-count", "the removed space does not count", "data: " + " " * 16 + "\n\n", [" " * 16], limit=L)
C("limit-zero", "a limit of zero lets empty data pass", "data\n\n", [""], limit=0)
C("limit-zero-over", "and nothing else", "data\n\ndata: x\n\n", [""], error="event data", limit=0)
C("limit-block-without-data", "what comes before the error in its own block is not reported", "id: 1\nevent: e\ndata: " + "x" * 17 + "\n\n",
  error="event data", limit=L)
C("limit-comment-then-error", "a comment of the failing block is reported", ": c\ndata: " + "x" * 17 + "\n\n", comments=[" c"],
  error="event data", limit=L)
C("limit-retry-then-error", "so is its retry", "retry: 4\ndata: " + "x" * 17 + "\n\n", retry=4, error="event data", limit=L)
C("limit-crlf", "line ends do not count", "data: " + "x" * 16 + "\r\n\r\n", ["x" * 16], limit=L)

# --- The standard's own examples (9.2.6) ---------------------------------------------------------------------------
C("standard-stocks", "the standard's first example", "data: YHOO\ndata: +2\ndata: 10\n\n", ["YHOO\n+2\n10"])
C("standard-four-blocks", "the standard's second example",
  ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
  [E("first event", id="1"), E("second event"), E(" third event")], comments=[" test stream"])
C("standard-empty-events", "the standard's third example: two events, the last block is discarded", "data\n\ndata\ndata\n\ndata:", ["", "\n"], half=True)
C("standard-space", "the standard's fourth example: both are the same", "data:test\n\ndata: test\n\n", ["test", "test"])
C("standard-add-remove", "named events of the standard's introduction",
  "event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\nevent: add\ndata: 113411\n\n",
  [E("73857293", "add"), E("2153", "remove"), E("113411", "add")])

# --- As servers write -----------------------------------------------------------------------------------------------
C("server-openai", "a stream of deltas that ends with [DONE]",
  "data: {\"choices\":[{\"delta\":{\"content\":\"He\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"llo\"}}]}\n\ndata: [DONE]\n\n",
  ["{\"choices\":[{\"delta\":{\"content\":\"He\"}}]}", "{\"choices\":[{\"delta\":{\"content\":\"llo\"}}]}", "[DONE]"])
C("server-graphql-sse", "pings, a result and the completion",
  ":\n\nevent: next\ndata: {\"data\":{\"n\":1}}\n\n:\n\nevent: next\ndata: {\"data\":{\"n\":2}}\n\nevent: complete\ndata: \n\n",
  [E("{\"data\":{\"n\":1}}", "next"), E("{\"data\":{\"n\":2}}", "next"), E("", "complete")], comments=["", ""])
C("server-hotchocolate", "CR LF, indented", "event: next\r\ndata: {\"data\":{\"onBook\":{\"title\":\"A\"}}}\r\n\r\n:\r\n\r\nevent: complete\r\n\r\n",
  [E("{\"data\":{\"onBook\":{\"title\":\"A\"}}}", "next")], comments=[""], blocks=["complete"])
C("server-wikimedia", "an ID of JSON and a type", "event: message\nid: [{\"topic\":\"t\",\"offset\":-1}]\ndata: {\"a\":1}\n\n",
  [E("{\"a\":1}", id="[{\"topic\":\"t\",\"offset\":-1}]")])
C("server-spring", "no spaces after the colons", "id:1\nevent:tick\nretry:5000\ndata:{\"n\":1}\n\n", [E("{\"n\":1}", "tick", "1")], retry=5000)
C("server-padding", "two kilobytes of padding for old proxies", ":" + " " * 2048 + "\nretry: 2000\ndata: x\n\n", ["x"], comments=[" " * 2048], retry=2000)


def main():
    wanted = {}
    for name, (stream, result) in CASES.items():
        wanted[f"{name}.sse"] = stream
        wanted[f"{name}.events.json"] = result.encode()
    present = {p.name for p in HERE.iterdir() if p.suffix in (".sse", ".json")}
    if "--check" in sys.argv:
        wrong = [n for n in wanted if not (HERE / n).exists() or (HERE / n).read_bytes() != wanted[n]]
        if wrong:
            sys.exit("differ: " + " ".join(sorted(wrong)))
    else:
        for name, content in wanted.items():
            (HERE / name).write_bytes(content)
    strangers = sorted(present - set(wanted))
    if strangers:
        print("not written here: " + " ".join(strangers))
    print(f"{len(CASES)} cases")


main()
