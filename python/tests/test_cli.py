"""python -m tegrarm."""

import os

import pytest

RUN = ["-m", "tegrarm"]


def test_info(python):
    out = python([*RUN, "info"])
    assert "sm_87" in out and ("virtual Orin" in out or os.path.exists("/dev/nvgpu"))


def test_doctor_is_content(python):
    out = python([*RUN, "doctor"])
    assert "MISSING" not in out and "tinygrad" in out


def test_doctor_prints_the_kernels_interface_for_a_report(python):
    if os.path.exists("/dev/nvgpu"):
        pytest.skip("this machine has a board")
    for l4t, size, known in (("r35", 312, "R35"), ("r36", 328, "R36"), ("r39", 336, "R39")):
        out = python([*RUN, "doctor", "--kernel"], env={"TEGRARM_SIM_L4T": l4t})
        assert f"GET_CHARACTERISTICS: {size} bytes" in out and f"nvgpu is that of {known}" in out
        assert sum("EINVAL, known" in line for line in out.splitlines()) == 1
    assert "GET_CHARACTERISTICS" not in python([*RUN, "doctor"])


def test_doctor_names_what_is_missing(python):
    if os.path.exists("/dev/nvgpu"):
        pytest.skip("this machine has a board")
    out = python([*RUN, "doctor"], env={"TEGRARM_BACKEND": "nvgpu"}, status=1)
    assert "MISSING node       /dev/nvmap does not exist" in out


def test_run_needs_a_backend(python, tmp_path):
    if os.path.exists("/dev/nvgpu"):
        pytest.skip("this machine has a board")
    script = tmp_path / "s.py"
    script.write_text("print('ran')")
    out = python([*RUN, "run", str(script)], env={"TEGRARM_BACKEND": ""}, status=1)
    assert "TEGRARM_BACKEND=sim" in out and "ran" not in out


def test_run_gives_the_script_its_arguments_and_the_device(python, tmp_path):
    script = tmp_path / "s.py"
    script.write_text("import sys, os\nfrom tinygrad import Tensor\nprint(sys.argv[1:], os.environ['DEV'], (Tensor([2]) * 3).tolist())")
    assert python([*RUN, "run", str(script), "-x", "y"]) == "['-x', 'y'] TEGRA+NV [6]\n"


def test_run_respects_a_chosen_device(python, tmp_path):
    script = tmp_path / "s.py"
    script.write_text("import os; print(os.environ['DEV'])")
    assert python([*RUN, "run", str(script)], env={"DEV": "CPU"}) == "CPU\n"


def test_trace_lists_kernel_calls(python, tmp_path):
    script = tmp_path / "s.py"
    script.write_text("from tinygrad import Tensor; print((Tensor([2]) * 3).tolist())")
    record = tmp_path / "calls.jsonl"
    assert "[6]" in python([*RUN, "trace", "-o", str(record), str(script)])
    assert record.stat().st_size > 0


def test_sim_runs_a_command_there(python):
    assert "virtual Orin" in python([*RUN, "sim", "--", os.sys.executable, "-m", "tegrarm", "info"], env={"TEGRARM_BACKEND": ""})
