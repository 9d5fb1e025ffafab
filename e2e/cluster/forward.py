#!/usr/bin/env python3
"""forward.py ADDRESS PORT TO_ADDRESS TO_PORT: connections to the one go to the other."""
import asyncio
import sys


async def pump(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass  # the other direction ends with it
    finally:
        writer.close()


async def main(address, port, to_address, to_port):
    async def serve(reader, writer):
        try:
            to_reader, to_writer = await asyncio.open_connection(to_address, to_port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, to_writer), pump(to_reader, writer))

    server = await asyncio.start_server(serve, address, port)
    await server.serve_forever()


asyncio.run(main(*sys.argv[1:]))
