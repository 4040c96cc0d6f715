"""The cloud's APIs inside a network namespace: relay.py out|in DIRECTORY PORT...

A socket file is the same in every network namespace. `out`, where the services are, takes connections on one file for
each port and hands them to 127.0.0.1:PORT; `in`, inside the namespace, takes them on 127.0.0.1:PORT and hands them to the file.
"""
import asyncio
import os
import sys


async def copy(reader, writer):
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass


def handler(connect):
    async def handle(reader, writer):
        try:
            there_reader, there_writer = await connect()
        except OSError as error:
            print(f'relay: {error}', file=sys.stderr)
            writer.close()
            return
        await asyncio.gather(copy(reader, there_writer), copy(there_reader, writer))
        writer.close()
        there_writer.close()
    return handle


async def main(side, directory, ports):
    os.umask(0o077)
    servers = []
    for port in ports:
        path = os.path.join(directory, str(port))
        if side == 'out':
            handle = handler(lambda port=port: asyncio.open_connection('127.0.0.1', port))
            servers.append(await asyncio.start_unix_server(handle, path))
        else:
            handle = handler(lambda path=path: asyncio.open_unix_connection(path))
            servers.append(await asyncio.start_server(handle, '127.0.0.1', port))
    print('ready', flush=True)
    await asyncio.gather(*(server.serve_forever() for server in servers))


if len(sys.argv) < 4 or sys.argv[1] not in ('out', 'in'):
    sys.exit(__doc__)
try:
    asyncio.run(main(sys.argv[1], sys.argv[2], [int(port) for port in sys.argv[3:]]))
except KeyboardInterrupt:
    pass
