"""Make the environment in .venv: `python3 tools/environment.py demo|test`. Standard library only, Python 3.7+.

If the Python that runs this script has torch 2.11 or newer, that torch is used and not changed.
Otherwise pip installs a version of the range in constraints.txt. What is there is not installed
again; a broken or incomplete .venv is replaced.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
CONSTRAINTS = ROOT / "constraints.txt"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
EXTRAS = (
    "graph-coloring,graph-coloring-proof,stock-trading,gymnasium,chess,selfplay,chess-spiking,chess-value,"
    "video-behavior,hub"
)
OLDEST_PYTHON = (3, 11)
OLDEST_TORCH = (2, 11)
OLDEST_PIP = (25, 1)
"""The first that reads dependency groups."""


def main() -> None:
    """Install in .venv what `demo` or `test` needs."""
    check_python()
    os.chdir(ROOT)
    outer_torch = None if inside_venv() else torch_of(sys.executable)
    make_venv(share=outer_torch is not None)
    if pip_release() < OLDEST_PIP:
        pip("pip itself", "--upgrade", "pip>=" + ".".join(map(str, OLDEST_PIP)))
    torch = torch_of(PYTHON) or install_torch()
    keep_torch = VENV / "keep-torch.txt"
    keep_torch.write_text(f"torch=={torch}\n")
    is_test = "test" in sys.argv[1:]
    what = "ranks, what its workloads need" + (", and the tools of the tests" if is_test else "")
    pip(what, "-c", str(keep_torch), "-e", f".[{EXTRAS}]", *(["--group", "test"] if is_test else []))
    compile_packages()


def check_python() -> None:
    """Exit with one clear line if Python is too old."""
    found = sys.version_info[:2]
    if found < OLDEST_PYTHON:
        needed = ".".join(map(str, OLDEST_PYTHON))
        sys.exit(
            f"ranks needs Python {needed} or newer, and {sys.executable} is {found[0]}.{found[1]}: "
            f"name another one after make, for example PYTHON=python{needed}"
        )


def inside_venv() -> bool:
    """Whether this script runs with the Python of .venv (an activated environment)."""
    return VENV.exists() and Path(sys.prefix).resolve() == VENV.resolve()


def output_of(*command: object) -> str | None:
    """The output of a command, or None if it fails."""
    try:
        done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return None
    return done.stdout.decode().strip() if done.returncode == 0 else None


def torch_of(python: object) -> str | None:
    """The version of torch that a Python imports, if it is new enough. It is the one that pip knows: torch from PyPI
    calls itself 2.11.0+cu130, and pip cannot keep a torch of that version, which PyPI does not have."""
    version = output_of(python, "-c", "import torch; from importlib.metadata import version; print(version('torch'))")
    return version if version and release(version) >= OLDEST_TORCH else None


def release(version: str) -> tuple[int, ...]:
    """'2.13.0+cpu' -> (2, 13)."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def pip_release() -> tuple[int, ...]:
    """The version of pip in .venv: 'pip 25.1.1 from ...' -> (25, 1)."""
    return release((output_of(PYTHON, "-m", "pip", "--version") or "").partition(" from ")[0])


def make_venv(share: bool) -> None:
    """Make .venv with this Python; with `share` it also sees the packages of this Python."""
    works = output_of(PYTHON, "-m", "pip", "--version") is not None
    if inside_venv() or (works and output_of(PYTHON, "-V") == output_of(sys.executable, "-V")):
        return
    say(f"environment in .venv, of {sys.executable}" + (" with its torch" if share else ""))
    if VENV.exists():
        shutil.rmtree(VENV)
    options = ["--system-site-packages"] if share else []
    if subprocess.run([sys.executable, "-m", "venv", *options, str(VENV)], stdout=subprocess.DEVNULL).returncode != 0:
        sys.exit(f"{sys.executable} lacks its venv module (Debian and Ubuntu: apt install python3-venv)")
    if share and sys.prefix != sys.base_prefix:  # --system-site-packages does not reach an outer environment's packages
        outer = [path for path in sys.path if path.endswith("site-packages")]
        inner = output_of(PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
        Path(str(inner), "outer.pth").write_text("\n".join(outer) + "\n")


def install_torch() -> str:
    """Print the size of the download, install a tested version of torch, and return the version."""
    limits = re.findall(r"torch>=([\d.]+),<([\d.]+)", CONSTRAINTS.read_text())[0]
    lowest, below = release(limits[0]), release(limits[1])
    listed = json.loads(output_of(PYTHON, "-m", "pip", "index", "versions", "--json", "torch") or '{"versions": []}')
    offered = [version for version in listed["versions"] if lowest <= release(version) < below]
    small = sys.platform == "darwin" or "+cpu" in "".join(offered[:1])
    index: list[str] = []
    if not small and not has_nvidia() and reachable(f"{CPU_INDEX}/torch/"):
        small, index = True, ["--extra-index-url", CPU_INDEX]
    size = "the CPU build, about 200 MB to download" if small else "the CUDA build, about 3 GB to download"
    pip(f"torch: {size}", "-c", str(CONSTRAINTS), *index, "torch")
    version = torch_of(PYTHON)
    if version is None:
        sys.exit(f"torch was installed but cannot be imported; see: {PYTHON} -c 'import torch'")
    return version


def has_nvidia() -> bool:
    """Whether this machine has an NVIDIA driver."""
    return shutil.which("nvidia-smi") is not None or Path("/proc/driver/nvidia/version").exists()


def reachable(url: str) -> bool:
    """Whether a URL answers within five seconds."""
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False


def pip(what: str, *arguments: str) -> None:
    """Print what is installed, then install it quietly."""
    say(what)
    command = [str(PYTHON), "-m", "pip", "install", "-q", "--no-compile", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, stderr=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(f"{done.stderr.decode().strip()}\nset-up: pip failed; remove the cause above and run make again")


def compile_packages() -> None:
    """Compile what pip has installed, on all cores, without its tests. pip would use one core."""
    say("compile the packages")
    output_of(PYTHON, "-m", "compileall", "-q", "-j", "0", "-x", "site-packages/.*/tests?/", VENV / "lib")


def say(what: str) -> None:
    """Print one line per stage."""
    print(f"set-up: {what}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\nset-up: interrupted; run make again to continue")
