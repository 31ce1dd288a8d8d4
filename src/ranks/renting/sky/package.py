"""What SkyPilot's package says that a cloud cannot do. SkyPilot is asked in its own environment, which need not be that
of ranks."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ranks.errors import UserError

LIMIT_S = 120
MULTI_NODE, SPOT, DOCKER, AUTODOWN = "multi-node", "spot_instance", "docker_image", "autodown"
SCRIPT = """
import json, sys
import sky
from sky import clouds, exceptions
from sky.utils import registry
cloud = registry.CLOUD_REGISTRY.from_str(sys.argv[1])
if cloud is None:
    sys.exit(f"there is no cloud {sys.argv[1]}")
found = {}
for feature in clouds.CloudImplementationFeatures:
    try:
        cloud.check_features_are_supported(sky.Resources(cloud=cloud), {feature})
    except exceptions.NotSupportedError as error:
        found[feature.value] = " ".join(str(error).rpartition(feature.value)[2].split())[:300]
print("\\n" + json.dumps({"version": sky.__version__, "unsupported": found}))
"""


def interpreter() -> str | None:
    """The Python that has SkyPilot: that of the program `sky`, or this one. None without SkyPilot."""
    program = shutil.which("sky")
    if program is not None:
        with open(program, "rb") as file:
            first = file.readline(500)
        python = first.removeprefix(b"#!").strip().decode(errors="replace")
        if first.startswith(b"#!") and Path(python).is_file():
            return python
    return sys.executable if importlib.util.find_spec("sky") is not None else None


def unsupported(cloud: str, asked: str) -> tuple[str, Mapping[str, str]] | None:
    """(version of SkyPilot, feature -> why this cloud has it not). None without SkyPilot. Raises UserError where
    SkyPilot does not answer."""
    python = interpreter()
    if python is None:
        return None
    try:
        done = subprocess.run([python, "-c", SCRIPT, cloud], capture_output=True, text=True, timeout=LIMIT_S)
        answer = json.loads(done.stdout.splitlines()[-1])
        return str(answer["version"]), {str(k): str(v) for k, v in answer["unsupported"].items()}
    except (OSError, subprocess.TimeoutExpired, ValueError, LookupError, TypeError) as error:
        said = done.stderr.strip().splitlines()[-1:] if "done" in locals() else [type(error).__name__]  # pyright: ignore[reportPossiblyUnboundVariable]
        found = f"SkyPilot does not say what {cloud} can do: {' '.join(said) or 'no answer'}"
        raise UserError(asked, found, f"try it alone: {python} -c 'import sky'") from None


def refuse_unsupported(features: Mapping[str, str], wanted: Sequence[tuple[str, str, str]], cloud: str) -> None:
    """`wanted`: (feature, what asks for it, what to do). Raises UserError for one that the cloud has not."""
    for feature, asked, do in wanted:
        if feature in features:
            raise UserError(asked, f"SkyPilot says of {cloud}: {features[feature]}", do)
