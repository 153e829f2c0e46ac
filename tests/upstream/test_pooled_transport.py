"""The HTTP/1.1 client to workers against a raw server: replies cut anywhere, odd endings, reuse, limits, TLS."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from pointsman.errors import UpstreamError
from pointsman.upstream.pooled import PooledTransport
from pointsman.upstream.wire import HIGH_WATER, MAX_HEAD_BYTES, MAX_REPLY_BYTES

HEADERS = {"content-type": "application/json", "authorization": "Bearer k"}
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter, int], Awaitable[None]]
"""Answers one request of a connection, the nth."""


class Server:
    """`requests` is what came, whole; `connections` how many there were, `ended` when each was over."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self.ended = asyncio.Event()
        self.answer: Answer = self.plain(OK)
        self.url = ""

    @staticmethod
    def plain(*parts: bytes, close: bool = False) -> Answer:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
            for part in parts:
                writer.write(part)
                await writer.drain()
                if len(parts) > 1:
                    await asyncio.sleep(0.002)
            if close:
                writer.close()

        return answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = 0
        try:
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                self.requests.append(head + await reader.readexactly(size))
                await self.answer(reader, writer, number)
                number += 1
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            self.ended.set()


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    listening = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    yield made
    listening.close()


@pytest_asyncio.fixture
async def transport() -> AsyncIterator[PooledTransport]:
    made = PooledTransport()
    yield made
    await made.close()


async def ask(transport: PooledTransport, server: Server, body: bytes = b"{}", seconds: float = 2.0) -> bytes:
    return await (await transport.post(server.url + "/x?a=b c", HEADERS, body, seconds)).read()


async def fault_of(work: Awaitable[object]) -> UpstreamError:
    with pytest.raises(UpstreamError) as caught:
        await work
    return caught.value


async def test_what_is_sent_is_one_plain_request(transport: PooledTransport, server: Server) -> None:
    assert await ask(transport, server, b'{"a": 1}') == b"ok"
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    port = server.url.split(":")[2].split("/")[0]
    assert head.split(b"\r\n") == [
        b"POST /v1/x?a=b%20c HTTP/1.1",
        f"host: 127.0.0.1:{port}".encode(),
        b"content-type: application/json",
        b"authorization: Bearer k",
        b"content-length: 8",
    ]
    assert body == b'{"a": 1}'


CHUNKED = (
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: b\r\n\r\n"
    b"5;ext=1\r\nhello\r\n1\r\n \r\n0005\r\nworld\r\n0\r\nTrailer: x\r\n\r\n"
)


async def test_a_reply_cut_anywhere_is_the_same(transport: PooledTransport, server: Server) -> None:
    for cut in range(1, len(CHUNKED)):
        server.answer = Server.plain(CHUNKED[:cut], CHUNKED[cut:])
        assert await ask(transport, server) == b"hello world", cut
    assert server.connections == 1


async def test_a_stream_arrives_as_it_is_sent(transport: PooledTransport, server: Server) -> None:
    go = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n")
        await go.wait()
        writer.write(b"3\r\ntwo\r\n0\r\n\r\n")

    server.answer = answer
    reply = await transport.post(server.url, HEADERS, b"{}", 2)
    chunks = reply.chunks()
    assert await anext(chunks) == b"one"
    go.set()
    assert [chunk async for chunk in chunks] == [b"two"]


@pytest.mark.parametrize(
    ("reply", "body"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.0 200 OK\r\n\r\nold", b"old"),
        (b"HTTP/1.1 200 OK\r\nconnection: Upgrade, close\r\nupgrade: h2c\r\ncontent-length: 2\r\n\r\nok", b"ok"),
        (b"HTTP/1.1 103 Early Hints\r\nlink: x\r\ncontent-length: 9\r\n\r\nHTTP/1.1 200 OK\r\n\r\nhinted", b"hinted"),
    ],
)
async def test_a_reply_may_end_with_its_connection(
    transport: PooledTransport, server: Server, reply: bytes, body: bytes
) -> None:
    server.answer = Server.plain(reply, close=True)
    assert await ask(transport, server) == body
    server.answer = Server.plain(OK)
    assert await ask(transport, server) == b"ok"
    assert server.connections == 2


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (b"", "no connection: closed by the worker"),
        (b"HTTP/1.1 200 OK\r\ncontent-le", "no connection: closed by the worker"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort", "the connection was lost"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n", "the connection was lost"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n", "no reply that can be read"),
        (b"SSH-2.0-OpenSSH_9\r\n", "no reply that can be read"),
        # Two lengths, or a length and chunks: who stands between could see another end than we do.
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nabc", "no reply that can be read"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            "no reply that can be read",
        ),
        (b"HTTP/1.1 200 OK\r\nx: " + b"x" * (MAX_HEAD_BYTES + 1), "the head of the reply is too large"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 6_000, "the head of the reply is too large"),
    ],
)
async def test_a_broken_reply_is_a_lost_connection(
    transport: PooledTransport, server: Server, reply: bytes, message: str
) -> None:
    server.answer = Server.plain(reply, close=True)
    fault = await fault_of(ask(transport, server))
    assert (fault.fault, message in fault.message) == ("connect", True), fault.message


@pytest.mark.parametrize("extra", [b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil", b"\0\0"])
@pytest.mark.parametrize("later", [False, True])
async def test_bytes_that_nobody_asked_for_answer_no_later_request(
    transport: PooledTransport, server: Server, extra: bytes, *, later: bool
) -> None:
    server.answer = Server.plain(OK, extra) if later else Server.plain(OK + extra)
    assert await ask(transport, server) == b"ok"
    await asyncio.wait_for(server.ended.wait(), 5)
    server.answer = Server.plain(OK)
    assert await ask(transport, server) == b"ok"
    assert server.connections == 2


async def test_a_connection_that_the_worker_closed_is_not_used(transport: PooledTransport, server: Server) -> None:
    server.answer = Server.plain(OK, close=True)
    for _ in range(3):
        assert await ask(transport, server) == b"ok"
        await asyncio.wait_for(server.ended.wait(), 5)
        server.ended.clear()
        await asyncio.sleep(0.02)
    assert server.connections == 3


async def test_nothing_is_sent_twice(transport: PooledTransport, server: Server) -> None:
    """The worker may have done the work before its connection broke: whether it is asked again others decide."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        if number:
            writer.close()
        else:
            writer.write(OK)

    server.answer = answer
    assert await ask(transport, server) == b"ok"
    assert (await fault_of(ask(transport, server))).fault == "connect"
    assert len(server.requests) == 2


async def test_the_pool_is_bounded_and_who_waits_is_served(server: Server) -> None:
    transport = PooledTransport(pool=2)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        await asyncio.sleep(0.01)
        writer.write(OK)

    server.answer = answer
    left = asyncio.create_task(ask(transport, server))
    others = [asyncio.create_task(ask(transport, server)) for _ in range(9)]
    await asyncio.sleep(0.005)
    others.pop(4).cancel()  # one that waits leaves: its turn is not lost
    assert await left == b"ok"
    assert await asyncio.gather(*others) == [b"ok"] * 8
    assert server.connections == 2
    # A connection that is free elsewhere makes room.
    other = Server()
    listening = await asyncio.start_server(other.serve, "127.0.0.1", 0)
    other.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    assert await ask(transport, other) == b"ok"
    await transport.close()
    listening.close()


async def test_a_pool_without_room_is_a_timeout(server: Server) -> None:
    transport = PooledTransport(pool=1)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        await asyncio.sleep(5)

    server.answer = answer
    first = asyncio.create_task(ask(transport, server))
    await asyncio.sleep(0.05)
    fault = await fault_of(ask(transport, server, seconds=0.05))
    assert (fault.fault, fault.message) == ("timeout", "the connection could not be made in time")
    first.cancel()
    await transport.close()


async def test_closing_a_reply_ends_the_call_at_the_worker(transport: PooledTransport, server: Server) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n")
        await reader.read()

    server.answer = answer
    reply = await transport.post(server.url, HEADERS, b"{}", 2)
    assert await anext(reply.chunks()) == b"one"
    reply.close()
    await asyncio.wait_for(server.ended.wait(), 2)
    server.answer = Server.plain(OK)
    whole = await transport.post(server.url, HEADERS, b"{}", 2)
    assert await whole.read() == b"ok"
    whole.close()  # came to its end: the connection stays
    assert await ask(transport, server) == b"ok"
    assert server.connections == 2


async def test_a_caller_that_is_cancelled_ends_the_call(transport: PooledTransport, server: Server) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        await reader.read()

    server.answer = answer
    asking = asyncio.create_task(ask(transport, server))
    while not server.requests:
        await asyncio.sleep(0.005)
    asking.cancel()
    await asyncio.wait_for(server.ended.wait(), 2)


async def test_a_worker_waits_for_a_slow_reader(transport: PooledTransport, server: Server) -> None:
    sent = 0
    part = b"x" * HIGH_WATER
    parts = 256

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (len(part) * parts))
        for _ in range(parts):
            writer.write(part)
            await writer.drain()
            sent += 1

    server.answer = answer
    reply = await transport.post(server.url, HEADERS, b"{}", 2)
    chunks = reply.chunks()
    size = len(await anext(chunks))
    await asyncio.sleep(0.1)
    before = sent
    await asyncio.sleep(0.1)
    assert before == sent < parts  # it stands still while nobody reads
    async for chunk in chunks:
        size += len(chunk)
    assert size == len(part) * parts
    assert (
        await ask(transport, server, b"x" * 3_000_000) == part * parts
    )  # a whole reply is read on; so is a large body


async def test_a_reply_without_end_is_refused(transport: PooledTransport, server: Server) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b" " * 1_000_000)
            await writer.drain()

    server.answer = answer
    fault = await fault_of(ask(transport, server))
    assert (fault.fault, "larger than" in fault.message) == ("malformed", True)


async def test_compressed_replies_are_read(transport: PooledTransport, server: Server) -> None:
    body = b"data: hello\n\n" * 10_000
    bare = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    for name, packed in (
        ("gzip", gzip.compress(body)),
        ("deflate", zlib.compress(body)),
        ("deflate", bare.compress(body) + bare.flush()),
    ):
        head = f"HTTP/1.1 200 OK\r\ncontent-encoding: {name}\r\ncontent-length: {len(packed)}\r\n\r\n".encode()
        server.answer = Server.plain(head, packed[:20], packed[20:])
        assert await ask(transport, server) == body
        reply = await transport.post(server.url, HEADERS, b"{}", 2)
        assert b"".join([chunk async for chunk in reply.chunks()]) == body
    bomb = gzip.compress(b" " * (MAX_REPLY_BYTES + 1), compresslevel=1)
    head = f"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {len(bomb)}\r\n\r\n".encode()
    server.answer = Server.plain(head + bomb)
    assert "larger than" in (await fault_of(ask(transport, server))).message
    for name, packed in (("gzip", b"no gzip"), ("br", b"what?")):
        head = f"HTTP/1.1 200 OK\r\ncontent-encoding: {name}\r\ncontent-length: {len(packed)}\r\n\r\n".encode()
        server.answer = Server.plain(head + packed)
        assert (await fault_of(ask(transport, server))).fault == "malformed"


async def test_another_status_is_a_fault_with_its_text(transport: PooledTransport, server: Server) -> None:
    server.answer = Server.plain(
        b"HTTP/1.1 429 Slow\r\nretry-after: 7\r\ncontent-length: 8\r\n\r\nslow now", OK.replace(b"200 OK", b"307 Moved")
    )
    fault = await fault_of(ask(transport, server))
    assert (fault.fault, fault.status, fault.retry_after, fault.body) == ("rate_limited", 429, 7, "slow now")
    server.answer = Server.plain(b"HTTP/1.1 307 T\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n")
    fault = await fault_of(ask(transport, server))
    assert (fault.fault, fault.status) == ("server", 307)  # nobody is followed
    server.answer = Server.plain(b"HTTP/1.1 101 S\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nraw", close=True)
    assert (await fault_of(ask(transport, server))).status == 101


async def test_addresses_where_nothing_answers(transport: PooledTransport) -> None:
    for url in ("http://127.0.0.1:1/v1", "http://no-such-host.invalid/v1", "http://" + "x" * 70 + ".example/v1"):
        fault = await fault_of(transport.post(url, {}, b"{}", 2))
        assert fault.fault in ("connect", "timeout"), url
    fault = await fault_of(transport.post("http://127.0.0.1:1/v1", {"x": "a\r\nb: c"}, b"{}", 2))
    assert "line end" in fault.message


async def test_a_connection_that_idles_is_closed(server: Server) -> None:
    transport = PooledTransport(idle=0.05)
    assert await ask(transport, server) == b"ok"
    await asyncio.wait_for(server.ended.wait(), 2)
    await transport.close()


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for localhost that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    chain, private = folder / "chain.pem", folder / "private.pem"
    chain.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return chain, private


async def test_tls_checks_whom_it_speaks_to(server: Server, tmp_path: Path) -> None:
    chain, private = certificate(tmp_path)
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(chain, private)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=theirs)
    port = listening.sockets[0].getsockname()[1]
    ours = ssl.create_default_context(cafile=str(chain))
    transport, strict = PooledTransport(context=ours), PooledTransport()
    for _ in range(2):
        reply = await transport.post(f"https://localhost:{port}/v1", HEADERS, b"x" * 200_000, 2)
        assert await reply.read() == b"ok"
    assert server.connections == 1
    server.answer = Server.plain(CHUNKED[:60], CHUNKED[60:])
    reply = await transport.post(f"https://localhost:{port}/v1", HEADERS, b"{}", 2)
    assert b"".join([chunk async for chunk in reply.chunks()]) == b"hello world"
    for refusing, host in ((transport, "127.0.0.1"), (strict, "localhost")):  # another name, an unknown signer
        fault = await fault_of(refusing.post(f"https://{host}:{port}/v1", HEADERS, b"{}", 2))
        assert (fault.fault, "SSLCertVerificationError" in fault.message) == ("connect", True), fault.message
    await transport.close()
    await strict.close()
    listening.close()
