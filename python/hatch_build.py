"""What a wheel contains beside the Python files: the libraries, headers and files for pkg-config and CMake, the demo, `tegrarm-sim`, man
pages and completions.

`make wheels` puts libraries that it has built for old systems into `built`, and names the platform. Where there are none, as in the source
distribution, cargo builds them here and now. An editable install uses those of the tree and takes nothing along.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sysconfig
import tempfile

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HERE = pathlib.Path(__file__).resolve().parent
# In the source distribution the rest of the tree lies in `tree`, in a checkout around us.
TREE = HERE / "tree" if (HERE / "tree").is_dir() else HERE.parent
# What was built, and what it is called in the package.
LIBRARIES = {"libtegrarm.so": "libtegrarm.so", "libtegrarm_preload.so": "libtegrarm_preload.so",
             "libtegrarm_nvml.so": "nvml/libnvidia-ml.so.1",
             "libtegrarm_cuda.so": "cuda/libcuda.so.1",
             "tegrarm_cudart12": "cuda/libcudart.so.12", "tegrarm_cudart13": "cuda/libcudart.so.13"}
SIMULATOR = "tegrarm-sim"
# What `make install` puts below PREFIX, and a wheel into the package, which is the prefix there: `tegrarm cflags` prints it.
TEMPLATES = {"tegrarm.pc": "lib/pkgconfig", "tegrarm-config.cmake": "lib/cmake/tegrarm",
             "tegrarm-config-version.cmake": "lib/cmake/tegrarm"}
DEMO = "examples/python/demo.py"
PAGES = "share/man/man1"
COMPLETIONS = {".bash": "share/bash-completion/completions/{stem}", "": "share/zsh/site-functions/{name}",
               ".fish": "share/fish/vendor_completions.d/{name}"}


class PlatformHook(BuildHookInterface):
    """Adds the files, and says for which machines the wheel is."""

    def initialize(self, version, build_data):
        """Called before a wheel is built."""
        if self.target_name != "wheel" or version == "editable":
            return
        built = HERE / "built"
        platform = os.environ.get("TEGRARM_WHEEL_PLATFORM")
        if not platform:
            built, platform = self.build_now(), sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"], build_data["tag"] = False, f"py3-none-{platform}"
        build_data["force_include"].update({str(built / name): f"tegrarm/{place}" for name, place in LIBRARIES.items()})
        build_data["force_include"].update(self.development())
        build_data["force_include"][str(TREE / DEMO)] = "tegrarm/demo.py"
        build_data["shared_scripts"][str(built / SIMULATOR)] = SIMULATOR
        shared = build_data["shared_data"]
        for page in sorted((TREE / "packaging" / "man").glob("*.1")):
            shared[str(page)] = f"{PAGES}/{page.name}"
        for file in sorted((TREE / "packaging" / "completions").iterdir()):
            shared[str(file)] = COMPLETIONS[file.suffix].format(stem=file.stem, name=file.name)

    def development(self) -> dict[str, str]:
        """Headers, and files for pkg-config and CMake: what is where, and where it goes."""
        files = {str(header): f"tegrarm/include/{header.name}" for header in sorted((TREE / "include").glob("tegrarm*.h"))}
        soname = re.search(r"libtegrarm\.so\.(\d+)", (TREE / "build.rs").read_text())[1]
        values = {"VERSION": self.metadata.version, "SOVERSION": soname, "LIBDIR": "lib", "UP": ".."}
        made = pathlib.Path(tempfile.mkdtemp(prefix="tegrarm-wheel-"))
        for name, place in TEMPLATES.items():
            text = (TREE / "packaging" / f"{name}.in").read_text()
            (made / name).write_text(re.sub(r"@(\w+)@", lambda word: values[word[1]], text))
            files[str(made / name)] = f"tegrarm/{place}/{name}"
        return files

    def build_now(self) -> pathlib.Path:
        """The libraries of this machine, built by cargo: a directory with them."""
        if not shutil.which(os.environ.get("CARGO", "cargo")):
            raise SystemExit("libtegrarm is written in Rust: install cargo (https://github.com/rust-lang/rustup), or take a wheel")
        target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", TREE / "target"))
        packages = ["-p", "tegrarm", "-p", "tegrarm-preload", "-p", "tegrarm-nvml", "-p", "tegrarm-cuda",
                    "-p", "tegrarm-cudart", "-p", "tegra-sim"]
        env = {**os.environ, "CARGO_TARGET_DIR": str(target)}
        subprocess.run([os.environ.get("CARGO", "cargo"), "build", "--release", "--locked", *packages], cwd=TREE, check=True, env=env)
        # For whoever installs it; in a checkout, what is built is what the tests use.
        return self.stripped(target / "release") if TREE.name == "tree" else target / "release"

    def stripped(self, built: pathlib.Path) -> pathlib.Path:
        """Copies without symbols, which take six times the space. Cargo's own setting leaves packages alone that have a profile."""
        strip = shutil.which(os.environ.get("STRIP", "strip"))
        if not strip:
            return built
        copies = built / "stripped"
        copies.mkdir(exist_ok=True)
        for name in (*LIBRARIES, SIMULATOR):
            subprocess.run([strip, "-o", copies / name, built / name], check=True)
        return copies
