"""The workers of a pool: they are started, loaded, watched and replaced here. All of it runs in the pool's dispatcher."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import signal
import time
from typing import TYPE_CHECKING, Any

from .cluster import Cluster, Node
from .requests import Request
from .stage import DeviceFault, LinkLost, NoPacket, StageError, wrong_report

if TYPE_CHECKING:
    from .runtime import Pool

# A part that could not be loaded twice in a row is not tried a third time.
LOAD_ATTEMPTS = 2


class Nonsense(RuntimeError):
    """A worker's report about itself that nobody can use."""


@dataclasses.dataclass
class Hand:
    """The worker of a stage."""

    node: Node
    start: int
    stop: int
    number: int
    actor: Any
    loading: Any                # the result of its load; None when the load has ended
    since: float
    ping: Any = None
    ping_sent: float = 0.0
    told: dict[str, Any] = dataclasses.field(default_factory=dict)
    told_at: float = 0.0

    @property
    def name(self) -> str:
        """The worker's name in messages."""
        return f"stage {self.number} on {self.node.name}"


class Health:
    """The workers of a pool."""

    def __init__(self, pool: Pool):
        self.pool, self.ray = pool, pool.ray
        self.hands: list[Hand] = []
        self.restarts: dict[str, int] = {}
        self.never_loaded: dict[str, int] = {}  # the number of failed loads in a row
        self.replaced = 0
        self.wanted: Cluster | None = None  # callers set it, and the dispatcher makes the pool follow it

    # *** starting ***

    def up(self) -> list[Hand]:
        """The workers in the order of the stages."""
        return self.hands

    def all_up(self) -> bool:
        """Whether all stages can compute."""
        return bool(self.hands) and all(h.loading is None for h in self.hands)

    def missing(self) -> list[str]:
        """The stages that cannot compute yet."""
        return [h.name for h in self.hands if h.loading is not None]

    def deploy(self) -> None:
        """Starts the workers of the plan. Workers that already have their part keep it."""
        have = {h.node.name: h for h in self.hands}
        self.hands = []
        for number, stage in enumerate(self.pool.plan.stages):
            old = have.pop(stage.node.name, None)
            if old and (old.start, old.stop, old.number) == (stage.start, stage.stop, number):
                self.hands.append(old)
            else:
                self.hands.append(self._start(stage.node, stage.start, stage.stop, number, old.actor if old else None))
        for unused in have.values():
            self._kill(unused)

    def _start(self, node: Node, start: int, stop: int, number: int, actor: Any = None) -> Hand:
        """Starts to load a worker's part, in the process that it has or in a new one."""
        place = self.pool.places[node.name]
        if actor is None:
            options: dict[str, Any] = {"num_cpus": 0, "max_restarts": 0, "max_task_retries": 0,
                                       # A question must not wait behind a micro-batch whose input another stage still computes.
                                       "allow_out_of_order_execution": True}
            if place.ray_node:
                from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

                from .nodes import PREFIX
                options["resources"] = {PREFIX + node.profile.name: 1}
                options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(place.ray_node, soft=False)
            actor = _actor_class(self.ray).options(**options).remote(node.name, place.environment)
        loading = actor.load.remote(self.pool.factory, start, stop, len(self.pool.model.layers), node.profile.shared_memory, number)
        return Hand(node, start, stop, number, actor, loading, time.monotonic())

    def _kill(self, hand: Hand) -> None:
        self.ray.kill(hand.actor, no_restart=True)
        # A stopped process does not react to Ray. If it is a child of this computer's Ray, it is killed by the kernel.
        pid = hand.told.get("pid", 0)
        if pid and not self.pool.places[hand.node.name].ray_node:
            with contextlib.suppress(OSError):
                if pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::"):
                    os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """Ends all workers."""
        for hand in self.hands:
            self._kill(hand)
        self.hands = []

    # *** watching ***

    def heal(self) -> None:
        """Uses workers that have loaded, and adapts the plan to a changed cluster."""
        if self.wanted is not None:
            with self.pool.lock:
                cluster, self.wanted = self.wanted, None
            self.pool.follow(cluster, "the cluster changed")
        for hand in [h for h in self.hands if h.loading is not None]:
            if hand not in self.hands or hand.loading is None:
                continue
            ready, _ = self.ray.wait([hand.loading], timeout=0)
            if ready:
                try:
                    hand.told = self._report(hand.loading)
                    hand.loading, hand.ping, hand.told_at = None, None, time.monotonic()
                    self.never_loaded.pop(hand.node.name, None)
                    if clock := self.pool.clock.get((hand.node.name, hand.start, hand.stop)):
                        hand.actor.set_virtual.remote(*clock)
                except Exception as error:
                    self.replace(hand, f"{hand.name} could not load its layers: {_sentence(error)}")
            elif time.monotonic() - hand.since > self.pool.limits.start_seconds:
                self.replace(hand, f"{hand.name} was not ready after {self.pool.limits.start_seconds:g} s")

    def watch(self) -> None:
        """Asks all workers for their state. A worker that does not answer, or that has been computing for too long, is replaced."""
        now, limits = time.monotonic(), self.pool.limits
        for hand in list(self.hands):
            if hand.loading is not None:
                self._progress(hand, now)
                continue
            if hand.ping is None and now - hand.ping_sent >= limits.ping_seconds:
                hand.ping, hand.ping_sent = hand.actor.ping.remote(), now
            if hand.ping is not None and (why := self._listen(hand, now)):
                self.replace(hand, why)
                return
        if lost := self._lost_answer(now):
            self.replace(*lost)

    def _progress(self, hand: Hand, now: float) -> None:
        """Reads how much a worker has loaded, if it says so. :meth:`heal` checks whether the worker lives."""
        if hand.ping is None and now - hand.ping_sent >= self.pool.limits.ping_seconds:
            hand.ping, hand.ping_sent = hand.actor.ping.remote(), now
        elif hand.ping is not None and self.ray.wait([hand.ping], timeout=0)[0]:
            ping, hand.ping = hand.ping, None
            with contextlib.suppress(self.ray.exceptions.RayError, Nonsense):
                hand.told = self._report(ping)

    def _listen(self, hand: Hand, now: float) -> str:
        """The fault of a worker. It is empty if none is known."""
        ready, _ = self.ray.wait([hand.ping], timeout=0)
        if not ready:
            silent = now - hand.ping_sent
            return f"{hand.name} does not answer for {silent:.1f} s" if silent > self.pool.limits.hang_seconds else ""
        try:
            hand.told, hand.told_at, hand.ping = self._report(hand.ping), now, None
        except Nonsense as lie:
            return f"{hand.name} answers with {lie}"
        except Exception as error:
            return f"{hand.name} died: {_sentence(error)}"
        if hand.told["busy"] > self.pool.limits.hang_seconds:
            return f"{hand.name} computes one micro-batch for {hand.told['busy']:.1f} s: it hangs"
        return ""

    def _report(self, ref: Any) -> dict[str, Any]:
        """What a worker says about itself."""
        told = self.ray.get(ref)
        if why := wrong_report(told):
            raise Nonsense(why)
        return told

    def _lost_answer(self, now: float) -> tuple[Hand, str] | None:
        """The stage that does not answer the oldest request although it reports that it computes nothing."""
        for request in self.pool.flying[:1]:
            waited = now - request.sent_at
            if waited <= self.pool.limits.hang_seconds or len(request.refs) != len(self.hands):
                continue
            for hand, ref in zip(self.hands, request.refs, strict=True):
                if self.ray.wait([ref], timeout=0, fetch_local=False)[0]:
                    continue
                # A worker that computes is watched by its ping, and its last report has to be newer than the request.
                if hand.told_at > request.sent_at + self.pool.limits.hang_seconds and not hand.told.get("busy"):
                    return hand, f"the answer of {hand.name} does not arrive for {waited:.1f} s and it computes nothing: its link is lost"
                return None
        return None

    # *** replacing ***

    def failed(self, request: Request, error: Exception) -> None:
        """Handles an error as the answer of the last stage. The cause decides what is done."""
        cause = getattr(error, "cause", None) or error
        if isinstance(cause, StageError):
            if request.session is not None:
                request.session.seen = -1
            self.pool.give_up(request, f"failed: {cause}")
            return
        before = None
        for hand, ref in zip(self.hands, request.refs, strict=False):
            try:
                self.ray.get(ref, timeout=0)
                before = hand
            except self.ray.exceptions.GetTimeoutError:
                continue
            except Exception as own:
                what = getattr(own, "cause", None) or own
                if isinstance(what, NoPacket) and before is not None:
                    self.replace(before, f"{before.name} sent nonsense: {what}")
                    return
                verbs: dict[type, str] = {DeviceFault: "faulted", LinkLost: "lost its link or its memory"}
                self.replace(hand, f"{hand.name} {verbs.get(type(what), 'died')}: {_sentence(own)}")
                return
        self.replace(self.hands[-1], f"{self.hands[-1].name} lost an answer: {_sentence(error)}")

    def lied(self, why: str) -> None:
        """Handles an answer of the last stage that is none."""
        self.replace(self.hands[-1], f"{self.hands[-1].name} sent nonsense: {why}")

    def replace(self, hand: Hand, why: str) -> None:
        """Ends a worker, starts another at the same device or makes a plan without the device, and starts all requests in flight again."""
        pool = self.pool
        pool.note(why)
        self.replaced += 1
        self._kill(hand)
        count = self.restarts[hand.node.name] = self.restarts.get(hand.node.name, 0) + 1
        if hand.loading is not None:
            self.never_loaded[hand.node.name] = self.never_loaded.get(hand.node.name, 0) + 1
        gone, useless = self._node_is_gone(hand), self.never_loaded.get(hand.node.name, 0) >= LOAD_ATTEMPTS
        if count > pool.limits.restarts or gone or useless:
            with pool.lock:
                pool.cluster = pool.cluster.without(hand.node.name)
            reason = "its node left the cluster" if gone else f"it was started {count - 1} times again"
            self.hands.remove(hand)
            pool.follow(pool.cluster, f"{hand.node.name} is given up, {reason} ({why})")
            return
        self.hands[hand.number] = self._start(hand.node, hand.start, hand.stop, hand.number)
        pool.start_again(why, hand)

    def _node_is_gone(self, hand: Hand) -> bool:
        place = self.pool.places[hand.node.name]
        return bool(place.ray_node) and not any(n["NodeID"] == place.ray_node and n["Alive"] for n in self.ray.nodes())

    def loads(self) -> list[dict[str, Any]]:
        """The last report of every stage."""
        return [{"stage": h.number, "device": h.node.name, "layers": (h.start, h.stop), "up": h.loading is None,
                 "restarts": self.restarts.get(h.node.name, 0), **h.told} for h in self.hands]


def _actor_class(ray: Any) -> Any:
    """:class:`StageWorker` as an actor that answers questions while it computes."""
    from .worker import StageWorker

    class Worker(StageWorker):
        """The actor. Its methods are written out, because Ray finds the thread group of a method by the class that defines it."""

        @ray.method(concurrency_group="compute")
        def load(self, *args: Any) -> Any:
            return super().load(*args)

        @ray.method(concurrency_group="compute")
        def run(self, packet: Any) -> Any:
            return super().run(packet)

        @ray.method(concurrency_group="compute")
        def set_virtual(self, *args: Any) -> None:
            super().set_virtual(*args)

        @ray.method(concurrency_group="questions")
        def ping(self) -> Any:
            return super().ping()

        @ray.method(concurrency_group="questions")
        def misbehave(self, *args: Any) -> None:
            super().misbehave(*args)

        @ray.method(concurrency_group="questions")
        def forget(self, session: str) -> None:
            super().forget(session)

    return ray.remote(concurrency_groups={"questions": 2, "compute": 1})(Worker)


def _sentence(error: Exception) -> str:
    """The text of an error in one line."""
    cause = getattr(error, "cause", None) or error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return f"{type(cause).__name__}: {lines[0][:200] if lines else 'no reason given'}"
