"""How a machine ends itself: the requests of each provider's own API, or a command.

Sources: docs.runpod.io/api-reference/pods, docs.lambda.ai (POST /instance-operations/terminate), docs.vast.ai (DELETE
/instances/ID/), read in November 2026.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import psutil

from ranks.errors import UserError, nearest
from ranks.secrets import hide

ANSWER_S = 10.0
"""How long one request may take."""
COMMAND_S = 60.0
MOST_BYTES = 4000
ALARM_S = 40.0
"""After the first request to end a machine: if it still runs then, that is an alarm."""


@dataclass(frozen=True)
class ProviderAnswer:
    """`accepted`: the other side has taken the request. That is no proof that the machine ends."""

    accepted: bool
    text: str


class EndableMachine(Protocol):
    """A machine that can be asked to end. `rental`: another text where the same run is on
    a machine that was rented again."""

    @property
    def title(self) -> str: ...
    @property
    def alarm_s(self) -> float: ...
    @property
    def rental(self) -> str: ...
    def end(self) -> ProviderAnswer: ...
    def look(self) -> ProviderAnswer: ...


@dataclass(frozen=True)
class Provider:
    """Paths are below `api`; {id} is the machine's id. `body`: of the request that ends it, empty for DELETE."""

    title: str
    api: str
    id_variables: tuple[str, ...]
    key_variables: tuple[str, ...]
    end_path: str
    look_path: str
    body: str = ""


PROVIDERS: Mapping[str, Provider] = {
    "runpod": Provider(
        "RunPod", "https://rest.runpod.io/v1", ("RUNPOD_POD_ID",), ("RUNPOD_API_KEY",), "/pods/{id}", "/pods/{id}"
    ),
    "lambda": Provider(
        "Lambda",
        "https://cloud.lambda.ai/api/v1",
        ("LAMBDA_INSTANCE_ID",),
        ("LAMBDA_API_KEY",),
        "/instance-operations/terminate",
        "/instances/{id}",
        '{"instance_ids": ["{id}"]}',
    ),
    "vast": Provider(
        "Vast.ai",
        "https://console.vast.ai/api/v0",
        ("CONTAINER_ID", "VAST_INSTANCE_ID"),
        ("CONTAINER_API_KEY", "VAST_API_KEY"),
        "/instances/{id}/",
        "/instances/{id}/",
    ),
}


@dataclass(frozen=True)
class RentedMachine:
    """A machine of a provider whose API ends it."""

    provider: Provider
    machine_id: str
    key: str = field(repr=False)
    api: str
    alarm_s: float = ALARM_S

    @property
    def title(self) -> str:
        return f"{self.provider.title} machine {self.machine_id}"

    @property
    def rental(self) -> str:
        return self.title

    def end(self) -> ProviderAnswer:
        """Ask the provider to end the machine."""
        body = self.provider.body.replace("{id}", self.machine_id).encode()
        return self._request("POST" if body else "DELETE", self.provider.end_path, body or None)

    def look(self) -> ProviderAnswer:
        """What the provider says of the machine."""
        return self._request("GET", self.provider.look_path, None)

    def _request(self, method: str, path: str, body: bytes | None) -> ProviderAnswer:
        url = self.api + path.replace("{id}", self.machine_id)
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json", "User-Agent": "ranks"}
        try:
            request = urllib.request.Request(url, body, headers, method=method)
            with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
                return ProviderAnswer(True, f"{answer.status} {_words(answer.read(MOST_BYTES))}".strip())
        except urllib.error.HTTPError as error:
            with error:
                return ProviderAnswer(False, f"{error.code} {error.reason} {_words(error.read(MOST_BYTES))}".strip())
        except (OSError, ValueError) as error:  # no connection, no answer in time, no HTTP
            return ProviderAnswer(False, hide(str(getattr(error, "reason", error)) or type(error).__name__))


@dataclass(frozen=True)
class CommandMachine:
    """A machine that a command of the user ends."""

    command: str
    alarm_s: float = ALARM_S

    @property
    def title(self) -> str:
        return "this machine"

    @property
    def rental(self) -> str:
        """A machine that was switched off and on again counts again."""
        with suppress(OSError):
            return f"{self.title} {Path('/proc/sys/kernel/random/boot_id').read_text().strip()}"
        return self.title

    def end(self) -> ProviderAnswer:
        """Run the command."""
        try:
            done = subprocess.run(self.command, shell=True, capture_output=True, text=True, timeout=COMMAND_S)
        except subprocess.TimeoutExpired:
            return ProviderAnswer(False, f"the command has not ended within {COMMAND_S:.0f} s")
        text = hide((done.stderr.strip() or done.stdout.strip())[-300:])
        return ProviderAnswer(done.returncode == 0, f"exit code {done.returncode} {text}".strip())

    def look(self) -> ProviderAnswer:
        """Nothing can be asked."""
        return ProviderAnswer(True, "")


@dataclass(frozen=True)
class SkyPilotMachine:
    """A machine that SkyPilot ends when it has been idle for some minutes: the job on it has to end. `job_pid`: the
    shell of the job. `task_id`: SkyPilot's, the same on all machines of a managed job."""

    job_pid: int
    idle_s: float
    task_id: str = ""
    kill_s: float = 300.0
    """After the first request: the job, which may still evaluate, is killed."""
    _asked_at: list[float] = field(default_factory=list[float], init=False, repr=False)

    @property
    def title(self) -> str:
        return "this machine of SkyPilot"

    @property
    def alarm_s(self) -> float:
        """SkyPilot looks once a minute, and a cloud takes some minutes to end a machine."""
        return self.kill_s + self.idle_s + 300.0

    @property
    def rental(self) -> str:
        return f"{self.title} {self.task_id}".strip()

    def end(self) -> ProviderAnswer:
        """End the job: its shell is asked, which waits for the program that it runs; after `kill_s` all of its
        processes are killed."""
        self._asked_at.append(time.monotonic())
        force = len(self._asked_at) > 1 and self._asked_at[-1] - self._asked_at[0] >= self.kill_s
        try:
            shell = psutil.Process(self.job_pid)
            if force:
                kill_tree(shell)
            else:
                shell.terminate()
        except psutil.NoSuchProcess:
            return ProviderAnswer(True, f"its job has ended; SkyPilot waits {self.idle_s / 60:g} minutes")
        except psutil.AccessDenied:
            return ProviderAnswer(False, f"process {self.job_pid} belongs to another user")
        return ProviderAnswer(True, "its job is killed" if force else "its job is asked to end")

    def look(self) -> ProviderAnswer:
        """Nothing can be asked on the machine itself."""
        return ProviderAnswer(True, "")


def kill_tree(root: psutil.Process) -> None:
    """Kill a process and all that it has started, but not this one. They are stopped first, so that none of them starts
    another one meanwhile."""
    stopped = {psutil.Process()}
    while new := {root, *root.children(recursive=True)} - stopped:
        stopped |= new
        for process in new:
            with suppress(psutil.NoSuchProcess):
                process.suspend()
    for process in stopped - {psutil.Process()}:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def machine_of(provider: str | None, command: str | None, api: str | None, asked: str) -> EndableMachine:
    """The machine that this process is on. `provider`: None to find it by its process variables. Raises UserError."""
    if command is not None:
        if provider is not None or not command.strip():
            raise UserError(asked, "one way to end the machine is needed", "give --provider, or --command CMD")
        return CommandMachine(command)
    environ = {**_first_process(), **os.environ}
    listed = f"known: {', '.join(PROVIDERS)}; any other machine: --command CMD"
    if provider is None:
        found = [name for name, p in PROVIDERS.items() if any(environ.get(v) for v in p.id_variables)]
        if len(found) != 1:
            raise UserError(asked, "the provider of this machine is not known", f"give --provider NAME ({listed})")
        provider = found[0]
    if provider not in PROVIDERS:
        raise UserError(f"--provider {provider}", "there is no such provider", nearest(provider, [*PROVIDERS], listed))
    chosen = PROVIDERS[provider]
    values = list[str]()
    for what, names in (("id", chosen.id_variables), ("key", chosen.key_variables)):
        value = next((environ[name] for name in names if environ.get(name)), None)
        if value is None:
            raise UserError(asked, f"the process variable {names[0]} is missing", f"set it to the machine's {what}")
        values.append(value)
    if not values[0].replace("-", "").replace("_", "").isalnum():
        raise UserError(asked, f"{chosen.id_variables[0]} holds no machine's id", "set it to the machine's id")
    return RentedMachine(chosen, values[0], values[1], (api or chosen.api).rstrip("/"))


def _first_process() -> dict[str, str]:
    """Variables of a container's first process: a shell of ssh often has none of the provider's variables."""
    try:
        pairs = Path("/proc/1/environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return {}
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs) if value}


def _words(content: bytes) -> str:
    """The state in a provider's answer, or its beginning."""
    text = content.decode(errors="replace").strip()
    try:
        tree = json.loads(text)
    except ValueError:
        return hide(" ".join(text.split())[:200])
    while isinstance(tree, dict):
        inner = next((tree[key] for key in ("desiredStatus", "actual_status", "status") if key in tree), None)  # pyright: ignore[reportUnknownVariableType]
        if isinstance(inner, str):
            return inner[:100]
        tree = next((tree[key] for key in ("data", "instances") if isinstance(tree.get(key), dict)), None)  # pyright: ignore[reportUnknownVariableType,reportUnknownMemberType]
    return hide(" ".join(text.split())[:200])
