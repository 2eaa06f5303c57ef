"""GraphQL over SSE by ariadne: `count`, a query, and nothing of ours between the library and the wire."""

import asyncio

from ariadne import QueryType, SubscriptionType, make_executable_schema
from ariadne.asgi import GraphQL
from ariadne.asgi.handlers import GraphQLHTTPHandler
from ariadne.contrib.sse import SSESubscriptionHandler
from starlette.applications import Starlette
from starlette.routing import Mount, Route

schema_text = """
    type Query { hello: String! }
    type Subscription {
        count(to: Int! = 3, intervalMs: Int! = 10): Int!
        fail(after: Int! = 1): Int!
    }
"""

query = QueryType()
subscription = SubscriptionType()


@query.field("hello")
def resolve_hello(*_):
    return "world"


@subscription.source("count")
async def count_source(_, info, to=3, intervalMs=10):
    for number in range(1, to + 1):
        if number > 1:
            await asyncio.sleep(intervalMs / 1000)
        yield number


@subscription.field("count")
def count_field(number, *_, **__):
    return number


@subscription.source("fail")
async def fail_source(_, info, after=1):
    for number in range(1, after + 1):
        yield number
    raise RuntimeError("the source broke")


@subscription.field("fail")
def fail_field(number, *_, **__):
    return number


graphql = GraphQL(
    make_executable_schema(schema_text, query, subscription),
    http_handler=GraphQLHTTPHandler(subscription_handlers=[SSESubscriptionHandler(ping_interval=5)]),
)
# A mount answers its own path without the last slash by a 307, as in many a real deployment: /mounted keeps that.
app = Starlette(routes=[Route("/graphql", graphql), Mount("/mounted", graphql)])
