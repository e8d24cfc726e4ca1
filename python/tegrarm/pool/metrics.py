"""The figures of a pool in the text format of Prometheus, computed whenever Prometheus asks. Workers also report theirs to Ray.

Ray passes metrics on only where the agents of its dashboard run. These figures come from the process of the pool and need no agents.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .runtime import Pool

# Only programs on this computer can connect. The figures are not secret, but other computers have no use for them.
HOST = "127.0.0.1"
# The name, what it counts, and the key of the figure in a row of `Pool.loads`.
STAGES = [
    ("micro_batches", "Micro-batches that the stage's worker has computed", "runs"),
    ("busy_seconds", "Seconds that the stage's worker computed", "seconds"),
    ("bytes_in", "Bytes of activations that came into the stage's worker", "bytes"),
    ("restarts", "How often the worker at the stage's device was started again", "restarts"),
]


class Collector:
    """Collects the figures. Prometheus's library calls it at each scrape."""

    def __init__(self, pool: Pool):
        self.pool = pool

    def collect(self) -> Iterator[Any]:
        """One family of figures after the other."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        pool, answers = self.pool, self.pool.answers
        requests = CounterMetricFamily("tegrarm_pool_requests", "Requests that have ended, by how", labels=["end"])
        for end in ("answered", "failed", "dropped"):
            requests.add_metric([end], getattr(answers, end))
        yield requests
        yield GaugeMetricFamily("tegrarm_pool_waiting", "Requests in the queue", value=len(pool.queue))
        yield GaugeMetricFamily("tegrarm_pool_flying", "Requests that the stages have", value=len(pool.flying))
        yield CounterMetricFamily("tegrarm_pool_replaced", "Workers that were replaced", value=pool.health.replaced)
        rows = pool.loads()
        labels = ["stage", "device", "layers"]
        names = [[str(row["stage"]), row["device"], "{}-{}".format(*row["layers"])] for row in rows]
        loaded = GaugeMetricFamily("tegrarm_pool_loaded", "Share of the stage's part that is loaded", labels=labels)
        for name, row in zip(names, rows, strict=True):
            loaded.add_metric(name, 1.0 if row["up"] else row.get("loaded", 0.0))
        yield loaded
        for what, words, key in STAGES:
            family = CounterMetricFamily(f"tegrarm_pool_stage_{what}", words, labels=labels)
            for name, row in zip(names, rows, strict=True):
                family.add_metric(name, row.get(key, 0))
            yield family


class Server:
    """Answers Prometheus at ``/metrics`` of a port of this computer. Port 0 chooses a free port."""

    def __init__(self, pool: Pool, port: int):
        from prometheus_client import CollectorRegistry, start_http_server

        registry = CollectorRegistry()
        registry.register(Collector(pool))  # type: ignore[arg-type]
        self.server, self.thread = start_http_server(port, addr=HOST, registry=registry)
        self.address = f"http://{HOST}:{self.server.server_port}/metrics"

    def close(self) -> None:
        """Ends the server."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
