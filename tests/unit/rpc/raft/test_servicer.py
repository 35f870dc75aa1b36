"""Fetch streams on connections without sockets: whatever happens, in whatever order."""

from __future__ import annotations

import asyncio
import gc
import random
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

import grpc
import pytest

from quorate.h2.grpc_framing import OF_NUMBERS, PREFIX_BYTES, frame_message
from quorate.h2.protocol import frames
from quorate.h2.protocol.frames import H2ErrorCode, frame
from quorate.h2.protocol.header_codec import BlockReader
from quorate.h2.protocol.limits import Limits
from quorate.raft import messages as m
from quorate.records.errors import ErrorCode as Error
from quorate.records.ids import Epoch, ReplyToken
from quorate.rpc.convert.raft import pb_vote_request
from quorate.rpc.gen.raft.v1 import raft_pb2 as pb
from quorate.rpc.limits.shared_connections import VoterAddresses
from quorate.rpc.method_table import METHODS, RAFT
from quorate.rpc.raft.fetch_stream import REQUESTS_PER_STREAM_MAX
from quorate.rpc.raft.servicer import FetchStreams, RaftServicer
from quorate.rpc.request_decoding import decoder
from tests.unit.h2 import peers
from tests.unit.h2.by_hand import Wire
from tests.unit.raft import cores
from tests.unit.rpc.fetches import fetch_from, fetched

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quorate.h2.server.call import ServerCall
    from tests.unit.h2.peers import Sent

WHO: Final = m.ApiVersionsResponse(
    error=Error.NONE,
    cluster_id=cores.CLUSTER,
    key=cores.key(1),
    kraft_version_min=0,
    kraft_version_max=1,
)
STEPS: Final = 60
ROOM: Final = 1 << 20
FETCH: Final = "/quorate.raft.v1.Raft/Fetch"


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


class Core:
    """Takes Fetches as the driver does, and answers them when the test wants it."""

    def __init__(self) -> None:
        self.offsets: dict[ReplyToken, int] = {}
        self.open: dict[ReplyToken, asyncio.Future[m.Response]] = {}
        self.gone_ones: list[ReplyToken] = []
        self.answered: set[ReplyToken] = set()

    def submit(self, request: m.Request) -> tuple[ReplyToken, asyncio.Future[m.Response]]:
        assert isinstance(request, m.FetchRequest)
        token = ReplyToken(len(self.offsets) + 1)
        self.offsets[token] = request.fetch_offset
        self.open[token] = asyncio.get_running_loop().create_future()
        return token, self.open[token]

    def caller_disconnected(self, token: ReplyToken) -> None:
        self.gone_ones.append(token)
        self.open.pop(token, None)

    def answer(self, token: ReplyToken) -> None:
        self.answered.add(token)
        self.open.pop(token).set_result(fetched(self.offsets[token]))


class Stream:
    """A stream of a replica: what was asked on it, and what has come back."""

    def __init__(self, wire: Wire, stream_id: int, replica: int) -> None:
        self.wire = wire
        self.id = stream_id
        self.replica = replica
        self.asked: list[int] = []
        self.body = b""
        self.is_whole = self.is_reset = False
        self.status: grpc.StatusCode | None = None

    def ask(self, offset: int) -> None:
        self.asked.append(offset)
        message = frame_message(fetch_from(self.replica, offset).SerializeToString())
        self.wire.send(peers.data(message, self.id))

    def heard(self, one: Sent) -> None:
        if one.kind == frames.DATA:
            self.body += one.payload
        elif one.kind == frames.HEADERS and one.flags & frames.END_STREAM:
            pairs = dict(BlockReader(Limits()).read(one.payload).pairs)
            self.status = OF_NUMBERS[int(pairs[b"grpc-status"])]

    def answers(self) -> list[int]:
        found, left = [], self.body
        while len(left) >= PREFIX_BYTES:
            end = PREFIX_BYTES + int.from_bytes(left[1:PREFIX_BYTES], "big")
            if len(left) < end:
                break
            found.append(pb.FetchResponse.FromString(left[PREFIX_BYTES:end]).high_watermark)
            left = left[end:]
        return found


class World:
    """Two connections, three replicas, and what chance does with them."""

    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)
        self.core = Core()
        self.service = RaftServicer(self.core, WHO, software_version="9")
        handler = grpc.stream_stream_rpc_method_handler(
            self.service.Fetch,
            decoder(FETCH, METHODS[FETCH], pb.FetchRequest.FromString),
            pb.FetchResponse.SerializeToString,
        )
        self.wires = [Wire(handler), Wire(handler)]
        for wire in self.wires:
            wire.greet()
            # Answers wait for room where the test has made none.
            room = self.choose.choice((0, 40, frames.WINDOW_BYTES))
            wire.send(peers.settings(INITIAL_WINDOW_SIZE=room))
        self.streams: list[Stream] = []
        self.calls: WeakSet[ServerCall] = WeakSet()
        self.offset = 0

    def step(self) -> None:
        do = self.choose.choice(
            (self._begin, self._ask, self._ask, self._answer, self._answer, self._widen, self._end)
        )
        do()

    def _begin(self) -> None:
        stream_id = 2 * len(self.streams) + 1
        wire = self.choose.choice(self.wires)
        stream = Stream(wire, stream_id, self.choose.choice((2, 3, 4)))
        self.streams.append(stream)
        wire.send(peers.headers(stream_id, flags=peers.WHOLE))
        if self.choose.random() < 0.8:
            self._ask_on(stream)

    def _ask_on(self, stream: Stream) -> None:
        self.offset += 1
        stream.ask(self.offset)

    def _ask(self) -> None:
        going = [stream for stream in self.streams if not stream.is_whole]
        if going:
            self._ask_on(self.choose.choice(going))

    def _answer(self) -> None:
        if self.core.open:
            self.core.answer(self.choose.choice(list(self.core.open)))

    def _widen(self) -> None:
        if self.streams:
            stream = self.choose.choice(self.streams)
            stream.wire.send(peers.window(self.choose.randrange(1, 60), stream.id))

    def _end(self) -> None:
        going = [stream for stream in self.streams if not stream.is_whole]
        if not going:
            return
        stream = self.choose.choice(going)
        match self.choose.randrange(5):
            case 0 | 1:
                stream.is_whole = True
                stream.wire.send(peers.data(b"", stream.id, flags=peers.END))
            case 2:
                stream.is_whole = stream.is_reset = True
                code = peers.word(H2ErrorCode.CANCEL)
                stream.wire.send(frame(frames.RST_STREAM, 0, stream.id, code))
            case 3:
                stream.is_whole = True
                stream.wire.send(peers.data(frame_message(b"\xff"), stream.id, flags=peers.END))
            case 4 if self.core.open:
                token = self.choose.choice(list(self.core.open))
                self.core.open.pop(token).cancel()

    async def settle(self, turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        for wire in self.wires:
            self.calls.update(wire.link._calls.values())
            for one in wire.answers():
                for stream in self.streams:
                    if stream.wire is wire and stream.id == one.stream_id:
                        stream.heard(one)

    def going(self) -> list[Stream]:
        """Those that have not ended."""
        return [one for one in self.streams if one.status is None and not one.is_reset]

    async def finish(self) -> None:
        """Room for everything, answers to all, and the end of what is left."""
        for stream in self.streams:
            stream.wire.send(peers.window(ROOM, stream.id))
        for wire in self.wires:
            wire.send(peers.window(ROOM))
        await self.settle(20)
        while self.core.open:
            waiting = {self.core.offsets[token] for token in self.core.open}
            assert waiting <= {offset for stream in self.going() for offset in stream.asked}
            self._answer()
            await self.settle(20)
        of_replicas = [stream.replica for stream in self.going() if stream.asked]
        assert len(of_replicas) == len(set(of_replicas)), "a newer stream ends the older ones"
        for stream in self.streams:
            if not stream.is_whole:
                stream.wire.send(peers.data(b"", stream.id, flags=peers.END))
        await self.settle(20)


@pytest.mark.parametrize("seed", range(100))
async def test_each_fetch_is_answered_in_its_order_or_given_up_once(seed: int) -> None:
    world = World(seed)
    core = world.core
    for _ in range(STEPS):
        world.step()
        await world.settle(world.choose.choice((0, 1, 2, 9)))
        assert len(core.open) <= REQUESTS_PER_STREAM_MAX * len(world.streams)
    await world.finish()
    assert core.open == {}
    assert len(core.gone_ones) == len(set(core.gone_ones))
    submitted = list(core.offsets.values())
    for stream in world.streams:
        taken = [offset for offset in submitted if offset in stream.asked]
        # Nothing was passed over, and nothing overtook.
        assert taken == stream.asked[: len(taken)]
        answers = stream.answers()
        assert answers == taken[: len(answers)]
        match stream.status:
            case grpc.StatusCode.OK:
                assert answers == stream.asked
            case grpc.StatusCode.ABORTED | grpc.StatusCode.INVALID_ARGUMENT:
                assert answers == taken
            case grpc.StatusCode.UNAVAILABLE:
                assert answers != taken
            case _:
                assert stream.is_reset
    assert [wire.link.tasks for wire in world.wires] == [[], []]
    fetchers = world.service._fetch_streams
    assert (fetchers._streams, fetchers._places.calls) == ({}, 0)
    assert len(world.calls) == 0, "what holds a call is freed with it"


class _Context:
    """Says where a call comes from."""

    def __init__(self, peer: str) -> None:
        self._peer = peer

    def peer(self) -> str:
        return self._peer


class _Voted:
    """Answers each request immediately."""

    def submit(self, _: m.Request) -> tuple[ReplyToken, asyncio.Future[m.Response]]:
        answer: asyncio.Future[m.Response] = asyncio.get_running_loop().create_future()
        leader = m.LeaderInfo(cores.key(1).node_id, Epoch(4))
        answer.set_result(m.VoteResponse(Error.NONE, leader, vote_granted=True))
        return ReplyToken(1), answer

    def caller_disconnected(self, _: ReplyToken) -> None: ...


async def test_the_addresses_of_voters_are_known_by_their_votes_and_fetches() -> None:
    addresses = VoterAddresses()
    fetchers = FetchStreams(lambda key: key == cores.key(2), addresses)
    service = RaftServicer(_Voted(), WHO, software_version="9", fetch_streams=fetchers)
    vote: Any = service.handler_for(RAFT.methods_by_name["Vote"])
    for number in (2, 3):
        request = pb_vote_request(
            m.VoteRequest(
                cluster_id=cores.CLUSTER,
                voter=cores.key(1),
                replica=cores.key(number),
                replica_epoch=Epoch(3),
                last=cores.end(7, 2),
                pre_vote=True,
            )
        )
        await vote(request, _Context(f"ipv4:10.0.0.{number}:1"))
        fetchers.prefer(cores.key(number), f"ipv4:10.0.1.{number}:1")
    fetchers.prefer(None, "ipv4:10.0.1.4:1")
    known = [f"10.0.{kind}.{number}" for kind in (0, 1) for number in (2, 3, 4)]
    assert [one for one in known if f"ipv4:{one}" in addresses] == ["10.0.0.2", "10.0.1.2"]
