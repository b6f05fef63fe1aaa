"""Damaged files: whatever the bytes are, a reader gives data or its own error.

Event files, traces of AiM devices and workload files. `python -m fuzz.bytes_target`
runs under atheris, guided by coverage, if that is installed; `mutate` needs nothing and
damages good files at random, for smoke runs and campaigns.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from inspect import isfunction
from itertools import islice
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

from fuzz.world import FailureError
from patton import events
from patton.config import DeviceConfig, ModelConfig
from patton.device.aim import parse_trace, reader
from patton.engine import formats, sharegpt, text, workloads
from patton.engine.workloads import open_workload
from patton.errors import PattonError
from patton.events import header, replay
from patton.layout import Layout
from patton.runtime import Runtime

MOST_BYTES = 1 << 14
MOST_RECORDS = 200
LARGEST = 4096  # of any number in a header: what is allocated follows from it

Reader = Callable[[bytes, Path], None]


def read_events(data: bytes, path: Path) -> None:
    """Replay an event file."""
    if _is_huge(data.split(b"\n", 1)[0]):
        return
    path.write_bytes(data)
    for _ in replay(path):
        pass


def _is_huge(head: bytes) -> bool:
    """A header of a device that does not fit: refused by the host, not the reader."""
    try:
        values = _numbers(json.loads(head))
    except (ValueError, RecursionError):
        return False
    return any(value > LARGEST for value in values)


def _numbers(data: Any) -> list[float]:
    if isinstance(data, dict | list):
        parts = data.values() if isinstance(data, dict) else data
        return [number for part in parts for number in _numbers(part)]
    return [data] if isinstance(data, int | float) else []


def read_trace(data: bytes, _path: Path) -> None:
    """Read a trace."""
    parse_trace(data.decode("utf-8", "replace"))


def read_workload(data: bytes, path: Path) -> None:
    """Read a workload, whatever format it seems to have."""
    path.write_bytes(data)
    for _ in islice(open_workload(path).conversations(), MOST_RECORDS):
        pass


READERS: dict[str, Reader] = {
    "events": read_events,
    "trace": read_trace,
    "workload": read_workload,
}


def seeds() -> list[tuple[str, bytes]]:
    """Small good files for each reader."""
    device = DeviceConfig(
        name="small", channels=2, banks=2, rows=40, row_bytes=32, burst_bytes=4
    )
    layout = Layout.of(device, ModelConfig("small", 1, 1, 2, 4, 64), block_tokens=4)
    head = json.dumps(header(Runtime.of(layout)))
    step = '["step",{"grants":[[1,[],[0,1]]],"writes":[[1,0,6]],"reads":[[1,0,6]]}]'
    lines = [head, step, '["bind",1,2]', '["confirm",1,6]', '["finish",1]']
    trace = "AiM WR_GB 1 0 0x1\nAiM MAC_ABK 2 0x1 3\nAiM RD_MAC 0 0x1\nAiM EOC\n"
    bailian = '{"chat_id":1,"parent_chat_id":-1,"input_length":30,"output_length":2'
    said = '{"from":"human","value":"hello"}'
    loads = [
        "ContextTokens,GeneratedTokens\n10,5\n7,2\n",
        '{"input_length":600,"output_length":3,"hash_ids":[1,2]}\n',
        bailian + ',"hash_ids":[4,5]}\n',
        '{"c":1,"gpt2":[[3,4]],"qwen":[[3,4]],"llama3":[[3,4],[1,2]]}\n',
        '[{"id":"a","conversations":[' + said + ',{"from":"gpt","value":"well"}]}]',
    ]
    return [
        ("events", "\n".join(lines).encode() + b"\n"),
        ("trace", trace.encode()),
        *(("workload", text.encode()) for text in loads),
    ]


def check(kind: str, data: bytes, path: Path) -> None:
    """Raises FailureError unless the reader gives data or refuses them in its words."""
    try:
        READERS[kind](data, path)
    except PattonError:
        return
    except Exception as error:
        what = f"{kind} reader: {type(error).__name__}: {error}; bytes {data!r}"
        raise FailureError("LIFE-OPEN", what) from error


def mutate(number: int, seconds: float) -> tuple[int, FailureError | None]:
    """Damage good files for a time: files tried, and the first failure."""
    rng, begun, tried, good = Random(number), process_time(), 0, seeds()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged"
        while process_time() - begun < seconds:
            kind, data = good[rng.randrange(len(good))]
            tried += 1
            try:
                check(kind, damaged(rng, data), path)
            except FailureError as failure:
                return tried, failure
    return tried, None


SNIPPETS = (
    *(b"-1", b"0", b"1e9", b"true", b"null", b'"x"', b"[]", b"{}", b"99999999999999"),
    *(b"\xff\xfe", b"\x00", b"\n", b",", b'"', b"0x", b"[[[[", b"NaN", b"1.5"),
)


def damaged(rng: Random, data: bytes) -> bytes:
    """A few bytes are changed, cut out, repeated, or replaced by something telling."""
    for _ in range(1 + rng.randrange(4)):
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + rng.randrange(12))
        middle = data[start:end]
        choice = rng.randrange(4)
        if choice == 0:
            middle = bytes(rng.randrange(256) for _ in middle)
        elif choice == 1:
            middle = b""
        elif choice == 2:
            middle *= 2 + rng.randrange(3)
        else:
            middle = SNIPPETS[rng.randrange(len(SNIPPETS))]
        data = data[:start] + middle + data[end:]
    return data[:MOST_BYTES]


def guided() -> list[Any]:
    """The readers' own functions: coverage of all that they call guides to nothing."""
    modules = (events, reader, formats, sharegpt, text, workloads)
    return [
        function
        for module in modules
        for function in vars(module).values()
        if isfunction(function) and function.__module__ == module.__name__
    ]


def main() -> None:
    """Under atheris: the first byte names the reader, the rest is the file."""
    atheris: Any = import_module("atheris")  # of the extra `fuzz`
    kinds = [*READERS]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged"

        def one(data: bytes) -> None:
            if data:
                check(kinds[data[0] % len(kinds)], data[1:], path)

        corpus = Path(folder) / "corpus"
        corpus.mkdir()
        for index, (kind, data) in enumerate(seeds()):
            first = bytes([kinds.index(kind)])
            (corpus / str(index)).write_bytes(first + data)
        for function in guided():
            atheris.instrument_func(function)
        atheris.Setup([*sys.argv, str(corpus)], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
