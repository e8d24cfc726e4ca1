"""``python -m tegrarm pool`` makes plans, profiles, simulations and runs from the command line."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys

from ..grammar import Grammar
from ..say import Refused

NEEDED = {"numpy", "scipy", "simpy", "ray", "prometheus_client"}


def _plan(args: argparse.Namespace) -> int:
    """Prints a plan, and writes its picture and its trace."""
    from . import baselines, planner, timeline
    from .cluster import read
    from .model import Model
    from .shapes import published
    from .simulation import simulate

    model = Model.from_json(json.loads(pathlib.Path(args.model).read_text())) if args.model.endswith(".json") else published(args.model)
    made = planner.plan(model, read(args.nodes), batch=args.batch, micro_batches=args.micro_batches, objective=args.objective)
    print(made.table())
    if args.compare:
        found = baselines.compare(model, made.cluster, batch=args.batch)
        for name, other in (("planned, best step", found.planned), ("by memory", found.memory), ("equal parts", found.even)):
            print(f"{name:20} " + (f"step {other.step * 1e3:.3f} ms" if other.fits else "does not fit"))
    passes = 3 if model.autoregressive else 1
    spans = simulate(made, passes=passes, record=True).spans
    tracks = [name for i, s in enumerate(made.stages) for name in ([f"link to {s.node.name}"] if i else []) + [s.node.name]]
    stem = pathlib.Path(args.output or f"{made.model.name}-plan")
    picture, trace = timeline.write(spans, f"{model.name} on {made.cluster.name}: {made.throughput:.1f} {model.unit}s/s", stem, tracks)
    stem.with_name(stem.name + ".plan.json").write_text(json.dumps(made.to_json(), indent=1) + "\n")
    print(f"picture {picture}, trace for ui.perfetto.dev {trace}")
    return 0


def _profile(args: argparse.Namespace) -> int:
    """Prints the profile of this device, or the resources that Ray must be given for it."""
    from .profile import from_device

    profile = from_device()
    if args.measure:
        from .measure import measured
        profile = measured(profile)
    if args.ray:
        from .nodes import resources
        print(json.dumps(resources(profile)))
    else:
        print(json.dumps(profile.to_json(), indent=1))
    return 0


def _list(_args: argparse.Namespace) -> int:
    """Prints the names that ``plan`` accepts."""
    from . import cluster, profile, shapes

    for what, names in (("models", shapes.names()), ("clusters", cluster.named()), ("profiles", profile.catalogue()),
                        ("links", cluster.known_links())):
        print(f"{what:9} {', '.join(names)}")
    return 0


def _table(args: argparse.Namespace) -> int:
    """Prints one of the tables of docs/pool.md."""
    from . import baselines, scale

    print(baselines.table() if args.which == "compare" else scale.table())
    return 0


def _run(args: argparse.Namespace) -> int:
    """Runs the example transformer over a pool and shows the loads. Then it prints the predicted and the measured values."""
    from .live import run

    return run(args)


def parser() -> argparse.ArgumentParser:
    """Makes the grammar of ``pool``."""
    top = Grammar(prog="tegrarm pool", description="a model over several devices")
    commands = top.add_subparsers(dest="pool_command", required=True, metavar="COMMAND")
    command = commands.add_parser("plan", help="split a model over devices; writes a picture and a trace")
    command.add_argument("model", help="a published model's name, or a JSON file")
    command.add_argument("nodes", help="a cluster's name, a JSON file, or 2*agx-orin-64gb+orin-nx-16gb@10gbe")
    command.add_argument("--batch", type=int, default=8)
    command.add_argument("--micro-batches", type=int)
    command.add_argument("--objective", choices=("throughput", "latency", "step"), default="throughput")
    command.add_argument("--compare", action="store_true", help="also the splits by memory and into equal parts")
    command.add_argument("-o", "--output", help="stem of the files' names")
    command.set_defaults(do=_plan)
    command = commands.add_parser("run", help="decode with a small transformer over virtual Orins, live loads, predicted against measured")
    command.add_argument("--devices", default="agx-orin,orin-nx,orin-nano", help="modules of the virtual Orins")
    command.add_argument("--address", help="a Ray cluster instead of virtual Orins")
    command.add_argument("--tokens", type=int, default=6)
    command.add_argument("--requests", type=int, default=3)
    command.add_argument("--slow", type=float, default=100, help="what one instruction counts as; the decoder is small")
    command.add_argument("--kill", action="store_true", help="kill a worker in the middle")
    command.add_argument("--metrics-port", type=int, metavar="PORT", help="answer Prometheus at this port, or at a free one: 0")
    command.add_argument("-o", "--output", help="stem of the files' names")
    command.set_defaults(do=_run)
    command = commands.add_parser("profile", help="this device's profile as JSON")
    command.add_argument("--measure", action="store_true", help="with short kernels, instead of the data sheet's figures")
    command.add_argument("--ray", action="store_true", help="the resources for `ray start --resources`")
    command.set_defaults(do=_profile)
    commands.add_parser("list", help="names of models, clusters, profiles and links").set_defaults(do=_list)
    command = commands.add_parser("table", help="the tables of docs/pool.md")
    command.add_argument("which", choices=("compare", "scale"))
    command.set_defaults(do=_table)
    return top


def main(arguments: list[str]) -> int:
    """Runs one command. Mistakes in arguments and files end with a sentence."""
    try:
        args = parser().parse_args(arguments)
    except Refused as refused:
        print(f"tegrarm: {refused}", file=sys.stderr)
        return refused.status
    try:
        return int(args.do(args))
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] in NEEDED:
            sys.exit(f"tegrarm pool: {error.name} is not installed: pip install 'tegrarm[pool]'")
        raise
    except (ValueError, OSError) as error:
        sys.exit(f"tegrarm pool: {error}")
