"""Plain event streams by sse-starlette: numbered events with IDs, which honour Last-Event-ID.

/events?to=N&interval_ms=M    events 1...N, then the body ends
/one                          one event, the one after Last-Event-ID, then the body ends
/quiet                        pings only (a comment each 200 ms)
/gone                         204
/requests                     what was asked so far, as JSON: [{"path": ..., "lastEventID": ...}]
/open                         how many event streams are open now, as JSON: {"open": 1}
"""

import asyncio

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

requests = []
streams = 0


def position(request):
    requests.append({"path": request.url.path, "lastEventID": request.headers.get("last-event-id")})
    try:
        return int(request.headers.get("last-event-id", "0"))
    except ValueError:
        return 0


async def counted(events):
    global streams
    streams += 1
    try:
        async for event in events:
            yield event
    finally:
        streams -= 1


async def numbers(start, to, interval_ms):
    for number in range(start + 1, to + 1):
        if number > start + 1:
            await asyncio.sleep(interval_ms / 1000)
        yield ServerSentEvent(data=f"event {number}", id=str(number), event="number" if number % 2 == 0 else None)


async def silence():
    while True:
        await asyncio.sleep(3600)
        yield ServerSentEvent(data="an hour")


async def events(request):
    start = position(request)
    to = int(request.query_params.get("to", "3"))
    interval_ms = int(request.query_params.get("interval_ms", "10"))
    return EventSourceResponse(counted(numbers(start, to, interval_ms)), ping=1)


async def one(request):
    start = position(request)
    return EventSourceResponse(counted(numbers(start, start + 1, 0)))


async def quiet(request):
    position(request)
    return EventSourceResponse(
        counted(silence()), ping=0.2, ping_message_factory=lambda: ServerSentEvent(comment="still here")
    )


async def gone(request):
    position(request)
    return Response(status_code=204)


async def asked(request):
    return JSONResponse(requests)


async def still_open(request):
    return JSONResponse({"open": streams})


app = Starlette(
    routes=[
        Route("/events", events),
        Route("/one", one),
        Route("/quiet", quiet),
        Route("/gone", gone),
        Route("/requests", asked),
        Route("/open", still_open),
    ]
)
