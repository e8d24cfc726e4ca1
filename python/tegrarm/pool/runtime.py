"""A pool: one worker for each device, the stages of a model on the workers, and requests that go through all stages.

One thread of this process, the dispatcher, owns all state. It admits requests, collects answers, watches workers and replaces them.
Activations do not pass through it: a stage's output stays in Ray's object store until the next stage maps it.
"""

from __future__ import annotations

import atexit
import collections
import dataclasses
import itertools
import logging
import os
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any

import numpy as np

from . import nodes
from .cluster import Cluster, Node
from .health import Hand, Health
from .metrics import Server
from .model import Model
from .planner import NoPlan, Plan, plan, replan
from .requests import Answers, Cancelled, DeadlineExceeded, Overloaded, Request, RequestFailed, Session
from .simulation import default_window
from .stage import Packet, StageFactory, wrong_packet

log = logging.getLogger("tegrarm.pool")


@dataclasses.dataclass(frozen=True)
class Limits:
    """The limits for waiting, in seconds, and for counts."""

    # A worker hangs if it computes one micro-batch for longer than this, or if it does not report for longer.
    hang_seconds: float = 60.0
    ping_seconds: float = 1.0
    # The longest time in which a new worker must load its part.
    start_seconds: float = 300.0
    attempts: int = 4
    # The number of times that the worker at one device is started again before the pool makes a plan without the device.
    restarts: int = 3
    # The number of waiting requests from which :meth:`Pool.submit` makes its caller wait.
    queue: int = 64


class Pool:
    """A model over several devices.

    ``Pool(model, factory)`` starts a local Ray with three virtual Orins; ``modules`` names others. ``Pool(model, factory,
    address="auto")`` joins a cluster whose nodes were started with the resources that ``python -m tegrarm pool profile --ray`` prints.
    With ``metrics_port``, Prometheus can read the pool's figures at ``pool.metrics.address``. Port 0 chooses a free port.
    """

    def __init__(self, model: Model, factory: StageFactory, *, modules: Iterable[str] = ("agx-orin", "orin-nx", "orin-nano"),
                 address: str | None = None, batch: int = 1, micro_batches: int | None = None, objective: str = "throughput",
                 split: tuple[tuple[int, int, str], ...] | None = None, limits: Limits | None = None, link: str = "10gbe",
                 dev: str = nodes.TINYGRAD_DEVICE, metrics_port: int | None = None):
        import ray

        self.ray, self.model, self.factory, self.limits = ray, model, factory, limits or Limits()
        self.started_ray = not ray.is_initialized()
        if self.started_ray:
            _start(ray, address)
        self.cluster, self.places = nodes.discovered(ray, link) if address else nodes.virtual(list(modules), link, dev)
        self.plan = self._first_plan(batch, micro_batches, objective, split)
        self.window = default_window(len(self.plan.stages))
        self.answers, self.numbers = Answers(), itertools.count()
        self.sessions: dict[str, Session] = {}
        self.lock, self.work = threading.Lock(), threading.Condition()
        self.queue: collections.deque[Request] = collections.deque()
        self.flying: list[Request] = []
        self.closing, self.broken = False, ""
        self.events: list[tuple[float, str]] = []
        self.traces: list[Packet] = []
        # The virtual time of a micro-batch at (device, first layer, one past the last), and the link before it, while a clock runs.
        self.clock: dict[tuple[str, int, int], tuple[float, float, float]] = {}
        self.health = Health(self)
        self.health.deploy()
        self.metrics = None if metrics_port is None else Server(self, metrics_port)
        self.thread = threading.Thread(target=self._loop, name="tegrarm-pool", daemon=True)
        self.thread.start()
        atexit.register(self.close)  # it must run before Ray's own handler

    def _first_plan(self, batch: int, micro_batches: int | None, objective: str, split: tuple[tuple[int, int, str], ...] | None) -> Plan:
        if split is None:
            return plan(self.model, self.cluster, batch=batch, micro_batches=micro_batches, objective=objective)
        from .costs import Work
        from .planner import evaluate
        work = Work(self.model, batch, micro_batches or batch)
        return evaluate(self.cluster, work, tuple((a, b, self.cluster.node(name)) for a, b, name in split))

    # *** what callers use ***

    def submit(self, data: np.ndarray, *, session: Session | None = None, deadline: float | None = None,
               wait: bool = True) -> Future[np.ndarray]:
        """Submits one request. If the queue is full, waits, or raises :class:`Overloaded` if the caller does not want to wait.

        ``deadline`` is in seconds from now. The future ends with the answer or with a :class:`RequestFailed`. Cancelling the future cancels
        the request.
        """
        until = None if deadline is None else time.monotonic() + deadline
        request = Request(next(self.numbers), np.ascontiguousarray(data), session, until, Future())
        with self.work:
            if session is not None and (session.waiting or session.closed):
                state = "has ended" if session.closed else "has a step under way"
                raise RequestFailed(f"session {session.name} {state}: its next step needs the answer to the last one")
            while len(self.queue) >= self.limits.queue and not self.closing:
                if not wait:
                    raise Overloaded(f"{request.name} was not taken: {len(self.queue)} requests wait already")
                self.work.wait(0.1)
                if request.late():
                    raise DeadlineExceeded(f"{request.name} waited for its turn in the queue for {deadline} s")
            if self.closing or self.broken:
                raise RequestFailed(f"{request.name} was not taken: {self.broken or 'the pool is closed'}")
            if session is not None:
                session.waiting = True
            self.queue.append(request)
            self.work.notify_all()
        return request.future

    def map(self, batches: Iterable[np.ndarray], *, deadline: float | None = None) -> Iterator[np.ndarray]:
        """The answers to many requests in their order. No more of them wait than the queue holds."""
        ahead: collections.deque[Future[np.ndarray]] = collections.deque()
        for data in batches:
            ahead.append(self.submit(data, deadline=deadline))
            while ahead and (ahead[0].done() or len(ahead) > self.limits.queue):
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()

    def session(self) -> Session:
        """Begins a sequence of requests whose stages keep a memory. End it with :meth:`end`."""
        made = Session(f"{os.getpid()}-{next(self.numbers)}")
        self.sessions[made.name] = made
        return made

    def end(self, session: Session) -> None:
        """Makes all workers forget a session."""
        session.closed = True
        self.sessions.pop(session.name, None)
        for hand in self.health.up():
            hand.actor.forget.remote(session.name)

    def loads(self) -> list[dict[str, Any]]:
        """The state of every stage: the share of the time in which it computed, its micro-batches, and what it has loaded."""
        return self.health.loads()

    def ready(self, timeout: float | None = None) -> None:
        """Waits until every stage has loaded its part."""
        until = None if timeout is None else time.monotonic() + timeout
        while not self.health.all_up():
            if self.broken:
                raise RequestFailed(self.broken)
            if until is not None and time.monotonic() > until:
                raise DeadlineExceeded(f"after {timeout} s these stages are not ready: {', '.join(self.health.missing())}")
            time.sleep(0.05)

    def measured_links(self) -> Cluster:
        """The cluster with links that are measured between each two workers, over Ray itself and in host time."""
        hands, links = self.health.up(), dict(self.cluster.links)
        for a, b in itertools.permutations(hands, 2):
            links[a.node.site, b.node.site] = nodes.measured_link(self.ray, a.actor, b.actor)
        return dataclasses.replace(self.cluster, links=links)

    def close(self) -> None:
        """Ends all workers. Requests without an answer end with :class:`Cancelled`."""
        atexit.unregister(self.close)
        with self.work:
            if self.closing:
                return
            self.closing = True
            self.work.notify_all()
        self.thread.join()
        for request in [*self.flying, *self.queue]:
            self.answers.fail(request, Cancelled(f"{request.name} has no answer: the pool was closed"))
        self.flying.clear()
        self.queue.clear()
        if self.metrics is not None:
            self.metrics.close()
        self.health.close()
        if self.started_ray:
            self.ray.shutdown()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    # *** devices that are added and removed ***

    def join(self, place: nodes.Place) -> None:
        """Adds a device. The pool makes a new plan and uses the device if that is faster."""
        with self.lock:
            self.places[place.node.name] = place
            self.cluster = self.cluster.joined_by(place.node)
            self.health.wanted = self.cluster

    def leave(self, name: str) -> None:
        """Removes a device, which is not used any more."""
        with self.lock:
            self.cluster = self.cluster.without(name)
            self.health.wanted = self.cluster

    def follow(self, cluster: Cluster, why: str) -> None:
        """Makes a plan for the present cluster and moves parts. Requests in flight start again. Only the dispatcher calls this."""
        try:
            new = replan(self.plan, cluster).plan
        except NoPlan as error:
            self.fail_all(f"{why}, and there is no plan without it: {error}")
            return
        self.note(f"{why}: planned again over {', '.join(s.node.name for s in new.stages)}")
        self.plan, self.window = new, default_window(len(new.stages))
        self.health.deploy()
        self.start_again("the pool was planned again", None)

    def note(self, text: str) -> None:
        """Notes in one line what happened, for the log and for :attr:`events`."""
        log.info(text)
        self.events.append((time.monotonic(), text))

    # *** the dispatcher ***

    def _loop(self) -> None:
        while not self.closing:
            try:
                self._turn()
            except Exception as error:  # a bug in the pool itself; no caller may wait for ever because of it
                log.exception("the dispatcher stopped")
                self.fail_all(f"the pool's dispatcher stopped: {type(error).__name__}: {error}")
                return

    def _turn(self) -> None:
        self.health.heal()
        self._expire()
        self._admit()
        if self.flying:
            self._collect()
            self.health.watch()
        else:
            self.health.watch()
            with self.work:
                if not self.queue or not self.health.all_up():
                    self.work.wait(0.02)

    def _admit(self) -> None:
        while self.health.all_up() and len(self.flying) < self.window:
            with self.work:
                if not self.queue:
                    return
                request = self.queue.popleft()
                self.work.notify_all()
            self._send(request)
            self.flying.append(request)

    def _send(self, request: Request) -> None:
        """Puts the calls of a request into the workers' queues, after the steps that its session has to repeat."""
        request.attempts += 1
        session = request.session
        packet = Packet(request.data, number=request.number)
        if session is not None:
            past: tuple[np.ndarray, ...] = ()
            if session.seen != len(session.history):
                session.epoch, past = session.epoch + 1, tuple(session.history)
            session.seen = len(session.history) + 1
            packet = Packet(request.data, session.name, session.epoch, len(session.history), request.number, session.ready,
                            past=past)
        request.refs, request.sent_at = self._chain(packet), time.monotonic()

    def _chain(self, packet: Packet) -> list[Any]:
        refs: list[Any] = []
        for hand in self.health.up():
            refs.append(hand.actor.run.remote(refs[-1] if refs else packet))
        return refs

    def _collect(self) -> None:
        finals = [r.refs[-1] for r in self.flying]
        ready, _ = self.ray.wait(finals, num_returns=1, timeout=0.02)
        for ref in ready:
            request = next(r for r in self.flying if r.refs[-1] == ref)
            try:
                packet = self.ray.get(ref)
            except Exception as error:  # Ray has an exception class for each way in which a task can fail
                self.health.failed(request, error)
                return  # the requests in flight may have changed
            session = request.session
            if why := wrong_packet(packet, request.number, session.name if session else "", len(session.history) if session else 0):
                self.health.lied(why)
                return
            self.flying.remove(request)
            self._answer(request, packet)

    def _answer(self, request: Request, packet: Packet) -> None:
        session = request.session
        if session is not None:
            session.history.append(request.data)
            session.ready = packet.ready
            session.waiting = False
        self.traces.append(dataclasses.replace(packet, data=np.empty(0)))
        self.answers.give(request, packet.data)

    def _expire(self) -> None:
        with self.work:
            waiting = list(self.queue)
        for request in [*waiting, *self.flying]:
            if request.future.cancelled():
                self._drop(request, None)
            elif request.late():
                where = f"attempt {request.attempts}" if request.attempts else "still waiting for its turn"
                reasons = f"; before that: {'; '.join(request.reasons)}" if request.reasons else ""
                self._drop(request, DeadlineExceeded(f"{request.name} passed its deadline ({where}){reasons}"))

    def _drop(self, request: Request, error: RequestFailed | None) -> None:
        """Removes a request, wherever it is. The memory of its session does not fit its history any more, and is built again when it is
        needed.
        """
        with self.work:
            if request in self.queue:
                self.queue.remove(request)
                self.work.notify_all()
        if request in self.flying:
            self.flying.remove(request)
            for ref in request.refs:
                self.ray.cancel(ref, force=False)
            if request.session is not None:
                request.session.seen = -1
        if request.session is not None:
            request.session.waiting = False
        if error is not None:
            self.answers.fail(request, error)

    # *** failures ***

    def start_again(self, why: str, guilty: Hand | None) -> None:
        """Puts all requests in flight back to the front of the queue, oldest first. Requests that were tried too often fail."""
        again, self.flying = self.flying, []
        for session in self.sessions.values():
            session.seen = -1
        keep = []
        for request in again:
            request.reasons.append(why)
            for ref in request.refs:
                self.ray.cancel(ref, force=False)
            if request.attempts >= self.limits.attempts:
                self.give_up(request, f"failed after {request.attempts} attempts: {'; '.join(request.reasons)}")
            else:
                keep.append(request)
        with self.work:
            self.queue.extendleft(reversed(keep))

    def give_up(self, request: Request, why: str) -> None:
        """Fails a request with a sentence."""
        if request in self.flying:
            self.flying.remove(request)
        if request.session is not None:
            request.session.waiting = False
        self.answers.fail(request, RequestFailed(f"{request.name} {why}"))

    def fail_all(self, why: str) -> None:
        """Fails all requests, because the pool cannot continue."""
        self.broken = why
        self.note(why)
        with self.work:
            rest, self.flying = [*self.flying, *self.queue], []
            self.queue.clear()
            self.work.notify_all()
        for request in rest:
            self.give_up(request, f"has no answer: {why}")


def _start(ray: Any, address: str | None) -> None:
    """Starts a local Ray, or joins one."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # the pool looks at every error, or the error belongs to an earlier attempt
    quiet = {"logging_level": logging.WARNING, "log_to_driver": False}
    if address:
        ray.init(address=address, **quiet)
    else:
        # Without "local", Ray would join any cluster that runs on this computer.
        ray.init(address="local", num_cpus=1, num_gpus=0, include_dashboard=False, object_store_memory=256 << 20, **quiet)


def node_names(made: Plan) -> list[str]:
    """The names of the devices of a plan, in the order of its stages."""
    return [s.node.name for s in made.stages]


__all__ = ["Limits", "Node", "Pool", "Session", "node_names"]
