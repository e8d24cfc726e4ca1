"""The process at a device. It loads one part of a model and runs it for one micro-batch after another.

It is a plain class. The runtime makes a Ray actor of it that has two groups of threads: one thread that computes, and others that answer
questions meanwhile.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import threading
import time
from typing import Any

import numpy as np

from .stage import DeviceFault, LinkLost, NoPacket, Packet, Part, StageError, StageFactory, wrong_packet

LIES = ("lie", "swap", "babble")
FAULTS = ("kill", "hang", "stop", "gpu", "link", *LIES)


class StageWorker:
    """The process of one device."""

    def __init__(self, name: str, environment: dict[str, str]):
        # This is set before the library and tinygrad read it, because they do so once.
        os.environ.update(environment)
        self.name = name
        self.stage: Any = None
        self.part: Part | None = None
        self.loaded, self.busy_since, self.busy_with = 0.0, 0.0, -1
        self.runs, self.run_seconds, self.bytes_in = 0, 0.0, 0
        self.memory: dict[str, tuple[int, int, dict[str, Any]]] = {}  # session: its epoch, its next step, and the memory of the stage
        self.armed: tuple[str, int] | None = None
        self.free_at, self.link_free_at, self.cost, self.link = 0.0, 0.0, 0.0, (0.0, float("inf"))
        self.metrics: dict[str, Any] = {}
        self.number, self.armed_when = -1, "before"

    # *** loading ***

    def load(self, factory: StageFactory, start: int, stop: int, layers: int, shared_memory: bool, number: int) -> dict[str, Any]:
        """Makes the stage. The weights are loaded once, in this call."""
        if self.stage is not None and hasattr(self.stage, "close"):
            self.stage.close()
        self.stage, self.loaded, self.number = None, 0.0, number
        self.memory.clear()
        self.part = Part(start, stop, layers, self.name, shared_memory, self._progress)
        self.stage = factory(self.part)
        self.loaded = 1.0
        self._start_metrics()
        return {"pid": os.getpid(), "device": self.name}

    def _progress(self, share: float) -> None:
        self.loaded = min(max(share, 0.0), 0.99)

    def _start_metrics(self) -> None:
        with contextlib.suppress(ImportError):
            from ray.util import metrics
            tags = {"device": self.name, "stage": str(self.number)}
            self.metrics = {
                "runs": metrics.Counter("tegrarm_pool_micro_batches", "Micro-batches that a stage has computed", tag_keys=tuple(tags)),
                "seconds": metrics.Histogram("tegrarm_pool_stage_seconds", "Seconds of a stage for a micro-batch",
                                             boundaries=[1e-3, 1e-2, 0.1, 1, 10], tag_keys=tuple(tags)),
                "bytes": metrics.Counter("tegrarm_pool_bytes_in", "Bytes of activations that came in", tag_keys=tuple(tags))}
            for metric in self.metrics.values():
                metric.set_default_tags(tags)

    # *** computing ***

    def run(self, packet: Packet) -> Packet:
        """Computes one micro-batch."""
        if why := wrong_packet(packet):
            raise NoPacket(f"stage {self.number} on {self.name} was given {why}")
        self.busy_with, self.busy_since = packet.number, time.monotonic()
        try:
            result = self._lied(self._computed(packet))
            self._misbehave("after")
            self.runs += 1
            self.bytes_in += packet.data.nbytes
            self.run_seconds += time.monotonic() - self.busy_since
            if self.metrics:
                self.metrics["runs"].inc()
                self.metrics["seconds"].observe(time.monotonic() - self.busy_since)
                self.metrics["bytes"].inc(max(packet.data.nbytes, 1))
            return result
        finally:
            self.busy_since, self.busy_with = 0.0, -1

    def _computed(self, packet: Packet) -> Packet:
        memory, part = self._memory_of(packet), self.part
        if self.stage is None or part is None:
            raise LinkLost(f"{self.name} has no stage: it was started again and not loaded")
        try:
            self._misbehave("before")
            past = tuple(np.ascontiguousarray(self.stage(data, memory)) for data in packet.past)
            data = np.ascontiguousarray(self.stage(packet.data, memory))
        except Exception as error:
            why = self.stage.fault() if hasattr(self.stage, "fault") else ""
            if why or isinstance(error, DeviceFault):
                raise DeviceFault(f"{self.name}: {why or error}") from None
            raise StageError(f"stage {self.number} on {self.name} refused its input: {type(error).__name__}: {error}") from None
        if packet.session:
            self.memory[packet.session] = (packet.epoch, packet.step + 1, memory or {})
        start, end = self._virtual(packet)
        return Packet(data, packet.session, packet.epoch, packet.step, packet.number, end,
                      (*packet.spans, (self.number, start, end)), () if part.last else past)

    def _memory_of(self, packet: Packet) -> dict[str, Any] | None:
        """The memory of the session. It must have seen exactly the steps before this one, or it is built from them now."""
        if not packet.session:
            return None
        if packet.step == len(packet.past):
            return {}
        epoch, step, memory = self.memory.get(packet.session, (packet.epoch, 0, {}))
        if (epoch, step) != (packet.epoch, packet.step):
            raise LinkLost(f"{self.name} has seen {step} steps of session {packet.session}, epoch {epoch}, and is given step "
                           f"{packet.step} of epoch {packet.epoch}: what it remembers is not what the step needs")
        return memory

    def _virtual(self, packet: Packet) -> tuple[float, float]:
        """When this ran in virtual time: after its input had arrived over the link, and after the device's earlier work."""
        latency, bandwidth = self.link
        self.link_free_at = max(self.link_free_at, packet.ready) + latency + packet.data.nbytes / bandwidth
        start = max(self.free_at, self.link_free_at)
        self.free_at = start + self.cost
        return start, self.free_at

    def forget(self, session: str) -> None:
        """Frees what belongs to a session that has ended."""
        self.memory.pop(session, None)

    def set_virtual(self, cost: float, latency: float, bandwidth: float) -> None:
        """Sets the seconds of virtual time of one micro-batch and the link before this stage. The clock starts at zero."""
        self.cost, self.link, self.free_at, self.link_free_at = cost, (latency, bandwidth), 0.0, 0.0

    # *** questions, answered while the stage computes ***

    def ping(self) -> dict[str, Any]:
        """The present state of this worker."""
        if self.armed is not None and self.armed[0] == "babble":
            self.armed = None
            return {"busy": "never", "pid": "1"}
        since = self.busy_since
        return {"busy": time.monotonic() - since if since else 0.0, "with": self.busy_with, "loaded": self.loaded, "runs": self.runs,
                "seconds": self.run_seconds, "bytes": self.bytes_in, "pid": os.getpid(), "sessions": len(self.memory)}

    def echo(self, data: np.ndarray) -> np.ndarray:
        """Returns the given array, which is used to measure a link."""
        return data

    def arrived(self, data: np.ndarray) -> int:
        """Reads all bytes that came and returns their number."""
        return int(data.view(np.uint8).sum() and data.nbytes)

    # *** faults on purpose, for tests and demonstrations ***

    def misbehave(self, kind: str, after_runs: int = 0, when: str = "before") -> None:
        """Makes this worker fail in the given way after that many more micro-batches."""
        if kind not in FAULTS:
            raise ValueError(f"fault {kind!r} is not one of {', '.join(FAULTS)}")
        self.armed, self.armed_when = (kind, self.runs + after_runs), when

    def _lied(self, result: Any) -> Any:
        """What is sent in place of the result: it, or something else on purpose."""
        if self.armed is None or self.armed[0] not in LIES[:2] or self.runs < self.armed[1]:
            return result
        kind, self.armed = self.armed[0], None
        return "the answer" if kind == "lie" else dataclasses.replace(result, number=result.number + 1)

    def _misbehave(self, when: str) -> None:
        if self.armed is None or self.armed[0] in LIES or self.runs < self.armed[1]:
            return
        if when != ("after" if self.armed[0] == "link" else self.armed_when):
            return
        kind, self.armed = self.armed[0], None
        if kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif kind == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif kind == "gpu":
            if not hasattr(self.stage, "break_device"):
                raise DeviceFault(f"{self.name}: a fault on purpose, of a stage without a device")
            self.stage.break_device()
        elif kind == "hang":
            threading.Event().wait()
        else:  # the answer exists and never arrives
            self.busy_since, self.busy_with = 0.0, -1
            threading.Event().wait()
