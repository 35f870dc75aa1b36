from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class AppendRequest(_message.Message):
    __slots__ = ("sequence", "records")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    records: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, sequence: _Optional[int] = ..., records: _Optional[_Iterable[bytes]] = ...) -> None: ...

class AppendResponse(_message.Message):
    __slots__ = ("last_sequence", "high_watermark")
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    HIGH_WATERMARK_FIELD_NUMBER: _ClassVar[int]
    last_sequence: int
    high_watermark: int
    def __init__(self, last_sequence: _Optional[int] = ..., high_watermark: _Optional[int] = ...) -> None: ...

class RunLoadRequest(_message.Message):
    __slots__ = ("in_flight", "record_bytes", "duration_ms")
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    RECORD_BYTES_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    in_flight: int
    record_bytes: int
    duration_ms: int
    def __init__(self, in_flight: _Optional[int] = ..., record_bytes: _Optional[int] = ..., duration_ms: _Optional[int] = ...) -> None: ...

class RunLoadResponse(_message.Message):
    __slots__ = ("appends", "elapsed_us", "latencies_us")
    APPENDS_FIELD_NUMBER: _ClassVar[int]
    ELAPSED_US_FIELD_NUMBER: _ClassVar[int]
    LATENCIES_US_FIELD_NUMBER: _ClassVar[int]
    appends: int
    elapsed_us: int
    latencies_us: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, appends: _Optional[int] = ..., elapsed_us: _Optional[int] = ..., latencies_us: _Optional[_Iterable[int]] = ...) -> None: ...
