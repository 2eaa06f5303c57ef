"""Serves one application on the loopback until SIGTERM.

    serve.py NAME --port 0 --ready FILE [--certificate PEM --key PEM]

NAME is ariadne, strawberry or plain. With a certificate hypercorn serves it, over TLS with HTTP/2 by ALPN; without
one uvicorn does, HTTP/1.1. Port 0 takes a free one. FILE gets the port, and a line end, once requests are answered.
"""

import argparse
import asyncio
import importlib
import os
import signal
import socket
import sys


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=["ariadne", "strawberry", "plain"])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--ready")
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    return parser.parse_args()


def listening(port):
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(128)
    return listener


def say_ready(path, port):
    if path is None:
        print(port, flush=True)
        return
    with open(path + ".part", "w") as file:
        file.write(f"{port}\n")
    os.replace(path + ".part", path)


async def plain(app, listener, options, port):
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))

    async def tell():
        while not server.started:
            await asyncio.sleep(0.01)
        say_ready(options.ready, port)

    telling = asyncio.create_task(tell())
    await server.serve(sockets=[listener])
    telling.cancel()


async def tls(app, listener, options, port):
    import hypercorn.asyncio
    import hypercorn.config

    config = hypercorn.config.Config()
    config.bind = [f"fd://{listener.fileno()}"]
    config.certfile = options.certificate
    config.keyfile = options.key
    config.alpn_protocols = ["h2", "http/1.1"]
    config.graceful_timeout = 1
    config.loglevel = "WARNING"

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    serving = asyncio.create_task(hypercorn.asyncio.serve(app, config, shutdown_trigger=stop.wait))
    # The socket listens since before hypercorn had it, so what connects from here on is answered.
    say_ready(options.ready, port)
    await serving


def main():
    options = arguments()
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    app = importlib.import_module(f"{options.name}_app").app
    listener = listening(options.port)
    port = listener.getsockname()[1]
    run = tls if options.certificate else plain
    asyncio.run(run(app, listener, options, port))


main()
