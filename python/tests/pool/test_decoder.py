"""The tinygrad decoder over a pool, the clock of virtual time, and a Ray cluster of several nodes. These tests take long: make test-pool.
"""

import os

import numpy as np
import pytest

pytest.importorskip("ray")
pytest.importorskip("nvidia.cuda_nvrtc")

from tegrarm.pool import Pool, affine, transformer, virtual  # noqa: E402
from tegrarm.pool.live import ROWS, compare, decode_all, measured_plan, prompts, spread  # noqa: E402
from tegrarm.pool.model import Layer, Model  # noqa: E402
from tegrarm.pool.runtime import Limits  # noqa: E402

LONG = os.environ.get("TEGRARM_TEST_POOL") == "long"
pytestmark = [pytest.mark.timeout(1800), pytest.mark.skipif(not LONG, reason="long: make test-pool")]


@pytest.mark.parametrize("modules", [["agx-orin", "orin-nx", "orin-nano"], ["orin-nano", "agx-orin"]])
def test_measured_throughput_is_what_was_simulated(tmp_path, modules):
    shape, path, requests, tokens = transformer.Shape(), tmp_path / "weights.safetensors", 4, 6
    transformer.write_weights(path, shape)
    steps = 2 + tokens
    made = spread(measured_plan(shape, path, modules, requests, steps, slow=100.0), modules)
    split = tuple((s.start, s.stop, s.node.name) for s in made.stages)
    with Pool(made.model, transformer.factory(shape, path), modules=modules, split=split, batch=made.work.batch, micro_batches=requests,
              limits=Limits(hang_seconds=240)) as pool:
        pool.ready(600)
        virtual.start_clock(pool, [np.full(ROWS, i, np.int32) for i in range(steps)], 100.0)
        decode_all(pool, prompts(requests, shape), tokens)
        ratio = compare(made, pool, steps, None)
    assert 0.85 < ratio < 1.15, ratio


def test_the_demo(python):
    assert "the tokens are the same" in python(["examples/python/demo_pool.py"], timeout=1200)


def test_a_node_that_leaves_a_cluster_is_planned_around():
    """Two nodes with a virtual Orin each are found by their resources. Then one of them is removed."""
    import ray
    from ray.cluster_utils import Cluster

    layer = Layer("affine", 8.0, 1024.0, scalar_work={"float32": 1e12}, kernels=1)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        nodes = [cluster.add_node(num_cpus=1, resources={"tegrarm:orin-nx": 1}) for _ in range(2)]
        ray.init(address=cluster.address, log_to_driver=False)
        with Pool(Model("affine", (layer,) * 6), affine.factory(), address=cluster.address, batch=4, micro_batches=4,
                  limits=Limits(hang_seconds=20)) as pool:
            pool.ready(300)
            assert len(pool.plan.stages) == 2
            rng = np.random.default_rng(0)
            data = [rng.integers(0, 2**32, 256, dtype=np.uint32) for _ in range(30)]
            futures = [pool.submit(x) for x in data[:10]]
            cluster.remove_node(nodes[1], allow_graceful=False)
            futures += [pool.submit(x) for x in data[10:]]
            for x, future in zip(data, futures, strict=True):
                np.testing.assert_array_equal(future.result(300), affine.expected(x, 6))
            for _ in range(100_000):  # A worker of the node may live, and answer, a little longer than the node.
                if len(pool.plan.stages) == 1:
                    break
                np.testing.assert_array_equal(pool.submit(data[0]).result(300), affine.expected(data[0], 6))
            assert len(pool.plan.stages) == 1 and any("its node left the cluster" in text for _, text in pool.events)
    finally:
        ray.shutdown()
        cluster.shutdown()
