"""A machine that ssh reaches: shell scripts on it, and the sha256 sums of its files."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ranks.errors import UserError

KEEP_ALIVE = ("-o", "ConnectTimeout=20", "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4")
"""A connection that does not answer for a minute is closed. Options of the user come first, and ssh takes the first."""
SSH_FAILED = 255
MARK = "ranks-output"
"""The line before the output of a script. What a login shell prints comes before it."""
SHA256 = 'sum=$(command -v sha256sum) || sum="$(command -v shasum) -a 256"'
HOST = re.compile(
    r"((?:[^@:/\s\[\]-][^@:/\s\[\]]*@)?)(\[[0-9A-Fa-f:.%\w]+\]|[^@:/\s\[\]-][^@:/\s\[\]]*)(?::(.*))?", re.DOTALL
)


class ConnectionCut(Exception):
    """The connection ended in the middle; the same work may be tried again."""


@dataclass(frozen=True)
class Remote:
    """`host`: as ssh takes it, such as gpu-box or root@10.1.2.3. `options`: more arguments of ssh, such as -p 2222."""

    host: str
    options: tuple[str, ...] = ()

    @property
    def ssh(self) -> list[str]:
        """The start of an ssh command line, without the host."""
        return ["ssh", *self.options, *KEEP_ALIVE]

    @property
    def rsync_host(self) -> str:
        """As rsync takes it: an IPv6 address is in brackets."""
        user, at, name = self.host.rpartition("@")
        return f"{user}{at}[{name}]" if ":" in name else self.host

    def run(self, script: str, asked: str, *, stdin: bytes = b"", place: str = "") -> bytes:
        """The output of a POSIX shell script, which starts in the home folder there. `place`: what the script is about,
        for the error. Raises UserError where it fails, and ConnectionCut where ssh fails."""
        command = shlex.join(["sh", "-c", f"echo {MARK}; {script}"])
        done = subprocess.run([*self.ssh, self.host, command], input=stdin, capture_output=True)
        said = last_line(done.stderr)
        if done.returncode == SSH_FAILED or done.returncode < 0:
            raise ConnectionCut(said or f"ssh {self.host} failed")
        _, marked, output = done.stdout.partition(f"{MARK}\n".encode())
        if done.returncode or not marked:
            found = f"{self.host} says: {said or f'exit code {done.returncode}'}"
            raise UserError(asked, found, f"look at {place or 'it'} there: ssh {self.host}")
        return output

    def check(self, asked: str) -> None:
        """Raises UserError where this machine or the other one lacks a program, or ssh does not get in."""
        for program in ("ssh", "rsync"):
            if shutil.which(program) is None:
                raise UserError(asked, f"there is no {program} here", install(program))
        script = 'for p in rsync xargs; do command -v $p >/dev/null || echo "$p"; done; '
        script += f"({SHA256}) || echo sha256sum"
        try:
            missing = self.run(script, asked).decode().split()
        except ConnectionCut as cut:
            raise UserError(asked, f"ssh {self.host} failed: {cut}", f"try it alone: {self.typed}") from None
        if missing:
            found = f"there is no {missing[0]} on {self.host}"
            raise UserError(asked, found, f"{install(missing[0])} (on {self.host})")

    @property
    def typed(self) -> str:
        """The ssh command that a person types to look at the machine."""
        return shlex.join(["ssh", *self.options, self.host])

    def sha256(
        self, folder: str, names: Sequence[str], asked: str, starts: Mapping[str, int] | None = None
    ) -> dict[str, str]:
        """The sha256 sum of each of some files below `folder`; files that are not there are left out. `starts`: plain
        names of files of which only so many bytes count. Raises ConnectionCut, or UserError."""
        if not names and not starts:
            return {}
        # a missing file is named on standard error, and costs only its own line
        script = f"{SHA256}; cd {shlex.quote(folder)} && xargs -0 $sum 2>/dev/null; [ $? -ne 127 ] || exit 1"
        for name, num_bytes in (starts or {}).items():
            script += f'; echo "$(head -c {num_bytes} {name} | $sum | cut -c 1-64)  ./{name}"'
        stdin = "\0".join(f"./{name}" for name in names).encode("utf-8", "surrogateescape")
        output = self.run(script, asked, stdin=stdin, place=folder).decode("utf-8", "surrogateescape")
        return dict(map(_sum_and_name, output.splitlines()))


def _sum_and_name(line: str) -> tuple[str, str]:
    r"""'9f86d0...  ./a.bin' -> ('a.bin', '9f86d0...'). A line that begins with a backslash has escapes in its name."""
    escaped = line.startswith("\\")
    sha256, name = line[escaped : escaped + 64], line[escaped + 66 :]
    if escaped:
        name = re.sub(r"\\(.)", lambda found: {"n": "\n", "r": "\r"}.get(found[1], found[1]), name)
    return name.removeprefix("./"), sha256


def parse_place(text: str, asked: str, form: str) -> tuple[str, str]:
    """'me@gpu-box:data' -> ('me@gpu-box', 'data'). The second part is empty where there is none. `form`: of the
    argument, for the error, such as HOST[:DIR]. Raises UserError."""
    found = HOST.fullmatch(text)
    if found is None:
        raise UserError(
            asked, f"'{text}' does not begin with the name of a host", f"write {form}, such as gpu-box:data"
        )
    user, name, path = found.groups()
    return user + name.strip("[]"), (path or "").removeprefix("~/")


def last_line(said: bytes) -> str:
    """The last line that is not empty, without what ssh says at the end of every session."""
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines()]
    lines = [line for line in lines if line and not re.match(r"(Connection to \S+ closed|Shared connection)", line)]
    return lines[-1][:300] if lines else ""


def install(program: str) -> str:
    """How to get a program."""
    packages: Mapping[str, str] = {"ssh": "openssh-client", "sha256sum": "coreutils", "xargs": "findutils"}
    return f"install it: apt-get install {packages.get(program, program)}"
