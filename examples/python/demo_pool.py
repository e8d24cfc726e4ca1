"""A transformer decodes over three virtual Orins of different modules, and then again while one of its workers is killed.

`make demo-pool` runs it. It needs `tegrarm[pool]`, tinygrad and NVRTC. The tokens must be equal to those of one device.
"""

import pathlib
import sys
import tempfile

import numpy as np

from tegrarm.pool import Pool, transformer
from tegrarm.pool.live import Ticker, decode_all, measured_plan, prompts, spread
from tegrarm.pool.runtime import Limits

MODULES, REQUESTS, TOKENS = ["agx-orin", "orin-nx", "orin-nano"], 2, 6
STEPS = 2 + TOKENS


def over(modules: list[str], split, shape, path, kill: bool = False) -> list:
    """Computes the tokens of all requests over a pool."""
    model, factory = transformer.model(shape), transformer.factory(shape, path)
    with Pool(model, factory, modules=modules, split=split, limits=Limits(hang_seconds=240)) as pool, Ticker(pool):
        pool.ready(600)
        if kill:
            pool.ray.get(pool.health.up()[1].actor.misbehave.remote("kill", REQUESTS * STEPS // 2))
        said = decode_all(pool, prompts(REQUESTS, shape), TOKENS)
        assert pool.health.replaced == int(kill), pool.events
        for _, text in pool.events:
            print(f"  {text}")
    return said


def main() -> int:
    shape = transformer.Shape()
    with tempfile.TemporaryDirectory(prefix="tegrarm-demo-pool-") as folder:
        path = pathlib.Path(folder, "weights.safetensors")
        transformer.write_weights(path, shape)
        plan = spread(measured_plan(shape, path, MODULES, REQUESTS, STEPS, slow=100.0), MODULES)
        print(plan.table())
        split = tuple((s.start, s.stop, s.node.name) for s in plan.stages)
        runs = {
            "one device": over(MODULES[:1], ((0, shape.layers, "agx-orin-0"),), shape, path),
            "three devices": over(MODULES, split, shape, path),
            "three devices, a worker killed": over(MODULES, split, shape, path, kill=True),
        }
    for name, said in runs.items():
        print(f"{name:32} {said}")
    same = all(said == runs["one device"] for said in runs.values())
    print("the tokens are the same" if same else "THE TOKENS DIFFER")
    return 0 if same and len(np.unique(runs["one device"])) > 1 else 1


if __name__ == "__main__":
    sys.exit(main())
