"""GraphQL over SSE by strawberry-graphql: the same schema as ariadne_app.py."""

import asyncio
from collections.abc import AsyncGenerator

import strawberry
from starlette.applications import Starlette
from starlette.routing import Mount, Route
from strawberry.asgi import GraphQL
from strawberry.subscriptions import GRAPHQL_SSE_PROTOCOL


@strawberry.type
class Query:
    @strawberry.field
    def hello(self) -> str:
        return "world"


@strawberry.type
class Subscription:
    @strawberry.subscription
    async def count(self, to: int = 3, interval_ms: int = 10) -> AsyncGenerator[int, None]:
        for number in range(1, to + 1):
            if number > 1:
                await asyncio.sleep(interval_ms / 1000)
            yield number

    @strawberry.subscription
    async def fail(self, after: int = 1) -> AsyncGenerator[int, None]:
        for number in range(1, after + 1):
            yield number
        raise RuntimeError("the source broke")


graphql = GraphQL(strawberry.Schema(query=Query, subscription=Subscription), subscription_protocols=(GRAPHQL_SSE_PROTOCOL,))
# A mount answers its own path without the last slash by a 307, as in many a real deployment: /mounted keeps that.
app = Starlette(routes=[Route("/graphql", graphql), Mount("/mounted", graphql)])
