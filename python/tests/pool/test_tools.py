"""Profiles, simulation, pictures, the command line and weights: everything that needs no worker."""

import dataclasses
import json
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

pytest.importorskip("simpy")
pytest.importorskip("scipy")

from tegrarm.pool import plan, published, simulate  # noqa: E402
from tegrarm.pool.cluster import named, read  # noqa: E402
from tegrarm.pool.live import bar, line  # noqa: E402
from tegrarm.pool.model import Layer, Model  # noqa: E402
from tegrarm.pool.profile import Profile, ProfileError, catalogue, from_device  # noqa: E402
from tegrarm.pool.scale import measure  # noqa: E402
from tegrarm.pool.simulation import Conditions  # noqa: E402
from tegrarm.pool.timeline import Span, gantt, perfetto  # noqa: E402
from tegrarm.pool.weights import Weights, save  # noqa: E402


@pytest.mark.parametrize("model,batch,where", [("vit-l16", 32, "desk-10g"), ("sd15-unet", 8, "cards-pcie")])
def test_one_batch_takes_what_the_planner_says(model, batch, where):
    made = plan(published(model), named()[where], batch=batch, objective="step")
    assert simulate(made, passes=1, window=batch).seconds == pytest.approx(made.step, rel=0.02)


@pytest.mark.parametrize("model,batch,where", [("llama3-70b-q4.5", 8, "rack-orin"), ("llama3-8b-q4.5", 8, "desk-10g")])
def test_a_decoder_keeps_the_planners_pace(model, batch, where):
    made = plan(published(model), named()[where], batch=batch)
    assert simulate(made, passes=8).steady_throughput == pytest.approx(made.throughput, rel=0.02)


def test_stragglers_and_failures_cost_and_lose_nothing():
    made = plan(published("vit-l16"), named()["desk-10g"], batch=32)
    clean = simulate(made, passes=4)
    late = simulate(made, passes=4, conditions=Conditions(jitter=0.2, stragglers=0.05))
    failing = simulate(made, passes=4, conditions=Conditions(fail_at=((clean.seconds / 2, 1),), repair_seconds=1.0))
    assert late.steady_throughput < clean.steady_throughput
    assert failing.items == clean.items and failing.failures == 1 and failing.retried >= 1
    assert clean.seconds + 0.9 < failing.seconds < clean.seconds + 2
    again = [simulate(made, passes=4, conditions=Conditions(jitter=0.2), seed=3) for _ in range(2)]
    assert again[0] == again[1]


def test_a_shared_uplink_is_shared():
    layers = tuple(Layer(f"l{i}", 1e6, 4e6, {"float16": 1e8}) for i in range(4))
    where = read("4*orin-nx-16gb@1gbe")
    # Each of two sites has two stages. Traffic in both directions between the sites uses the same uplinks.
    nodes = tuple(dataclasses.replace(n, site="ab"[i % 2]) for i, n in enumerate(where.nodes))
    from tegrarm.pool import evaluate
    from tegrarm.pool.costs import Work
    where = dataclasses.replace(where, nodes=nodes)
    made = evaluate(where, Work(Model("m", layers), 8, 8), tuple((i, i + 1, n) for i, n in enumerate(nodes)))
    apart = simulate(made, passes=4, conditions=Conditions(contention=False))
    assert simulate(made, passes=4).steady_throughput < apart.steady_throughput * 0.6


def test_scale_row():
    row = measure(10, layers=20, batch=8, passes=2)
    assert row.stages == 10 and row.simulated == pytest.approx(row.predicted, rel=0.1) and row.failure_cost > 0


def test_picture_and_trace():
    spans = [Span("a<b", "run", 0, 0.0, 0.5), Span("a<b", "run", 1, 0.5, 1.0), Span("link to c", "link", 0, 0.5, 0.6)]
    root = ElementTree.fromstring(gantt(spans, "x & y"))
    titles = [e.text for e in root.iter("{http://www.w3.org/2000/svg}title")]
    assert titles[0] == "run, micro-batch 0: 0 to 500 ms" and len(titles) == 3
    events = json.loads(json.dumps(perfetto(spans)))["traceEvents"]
    assert [(e["ts"], e["dur"]) for e in events if e["ph"] == "X"] == [(0, 5e5), (5e5, 5e5), (5e5, pytest.approx(1e5))]


def test_profiles_survive_json_and_bad_ones_are_refused():
    for profile in catalogue().values():
        assert Profile.from_json(json.loads(json.dumps(profile.to_json()))) == profile
        assert Profile.from_json({**profile.to_json(), "of_a_later_version": 1}) == profile
    good = catalogue()["l4"].to_json()
    with pytest.raises(ProfileError, match="local_bandwidth is 0"):
        Profile.from_json({**good, "local_bandwidth": 0})
    with pytest.raises(ProfileError, match="lacks memory_size"):
        Profile.from_json({k: v for k, v in good.items() if k != "memory_size"})
    with pytest.raises(ProfileError, match="no rate of any dtype"):
        Profile.from_json({**good, "matrix_rates": {}, "scalar_rates": {}})


def test_published_shapes_have_published_sizes():
    billions = {"llama3-8b": 8.03, "llama3-70b": 70.6, "qwen2.5-7b": 7.6, "qwen2.5-32b": 32.8, "vit-l16": 0.304, "sd15-unet": 0.86}
    for name, count in billions.items():
        parameters = sum(layer.weight_bytes for layer in published(name).layers) / 2e9
        assert parameters == pytest.approx(count, rel=0.02), name


def test_device_profile_of_each_virtual_module(python):
    for chip, name in (("orin-nx", "orin-nx-16gb"), ("orin-nano", "orin-nano-8gb")):
        out = json.loads(python(["-m", "tegrarm", "pool", "profile"], env={"TEGRARM_BACKEND": "sim", "TEGRARM_SIM_CHIP": chip}))
        assert out["name"] == name and out["simulated"] and out["sources"]["memory_size"] == "device"
    assert from_device().compute_units == 16


def test_rates_by_counted_instructions(python):
    pytest.importorskip("nvidia.cuda_nvrtc")
    out = json.loads(python(["-m", "tegrarm", "pool", "profile", "--measure"], env={"TEGRARM_SIM_CHIP": "orin-nano"}))
    peak = 4 * 32 * 2 * 8 * 624.75e6
    assert out["sources"]["scalar_rates"] == "virtual-time"
    assert 0.5 * peak < out["scalar_rates"]["float32"] <= peak
    assert out["scalar_rates"]["float16"] == pytest.approx(2 * out["scalar_rates"]["float32"], rel=0.2)


def test_the_librarys_own_measurement_takes_the_sheets_place(python):
    """On a board it is what ``--measure`` does. Here its times are the host's, and the profile says so."""
    out = json.loads(python("""
import json
from tegrarm.pool.measure import measured
from tegrarm.pool.profile import from_device
print(json.dumps([from_device().to_json(), measured(from_device(), host_time=True).to_json()]))
"""))
    sheet, found = out
    fields = ["scalar_rates", "matrix_rates", "local_bandwidth", "transfer_bandwidth", "launch_latency"]
    assert {found["sources"][field] for field in fields} == {"host-time"} and found["efficiency"] == 1
    assert all(found[field] != sheet[field] for field in fields)
    assert set(found["scalar_rates"]) == {"float32", "float16", "int32"}
    assert set(found["matrix_rates"]) == {"float16", "bfloat16", "int8"}
    assert sheet["sources"]["matrix_rates"] == "device"


def test_a_bar_and_a_line_of_loads():
    assert bar(0.0, 4) == "[....]   0%" and bar(0.5, 4) == "[##..]  50%" and bar(7.0, 4) == "[####] 100%"
    rows = [{"device": "a", "up": True, "runs": 12}, {"device": "b", "up": False, "loaded": 0.25}, {"device": "c", "up": False}]
    shown = line(rows, {"a": 0.5})
    assert shown.split(" | ") == ["a  50%   12 runs", "b loading [####............]  25%", "c loading [................]   0%"]


def test_command_line(python, tmp_path):
    stem = tmp_path / "made"
    out = python(["-m", "tegrarm", "pool", "plan", "llama3-8b-q4.5", "2*orin-nx-16gb+orin-nano-8gb@10gbe", "-o", str(stem), "--compare"])
    assert "limited by" in out and "by memory" in out and "tokens/s" in out
    assert json.loads((tmp_path / "made.plan.json").read_text())["stages"] and ElementTree.parse(tmp_path / "made.svg")
    assert "traceEvents" in json.loads((tmp_path / "made.json").read_text())
    assert "there is no model 'gpt'" in python(["-m", "tegrarm", "pool", "plan", "gpt", "desk-two"], status=1)
    assert "llama3-70b" in python(["-m", "tegrarm", "pool", "list"]) and "usage:" in python(["-m", "tegrarm", "pool", "--help"])
    assert "add devices" in python(["-m", "tegrarm", "pool", "plan", "llama3-70b", "desk-two"], status=1)


def test_weights_are_views_of_the_file(tmp_path):
    tensors = {"a": np.arange(64, dtype=np.float32).reshape(8, 8), "b": np.full(128, 3, np.float16)}
    save(tmp_path / "w", tensors)
    found = Weights(tmp_path / "w")
    for name, array in tensors.items():
        np.testing.assert_array_equal(found[name], array)
        assert found.place(name)[0] % 256 == 0 and not found[name].flags.owndata
    with pytest.raises(ValueError, match="no tensor 'c'"):
        found["c"]
    with pytest.raises(ValueError, match="takes multiples of 256"):
        save(tmp_path / "x", {"odd": np.ones(3, np.float32)})
