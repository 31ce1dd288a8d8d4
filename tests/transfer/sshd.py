"""A real sshd on the loopback interface, with keys of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

PROGRAMS = ("ssh", "rsync", "ssh-keygen")
SSHD = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
CONF = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/key.pub
StrictModes no
PidFile none
PasswordAuthentication no
MaxStartups 100
"""


def missing_program() -> str | None:
    """What this machine lacks for an sshd of this user; None where all is there."""
    if SSHD is None:
        return "sshd"
    if os.geteuid() == 0 and not Path("/run/sshd").is_dir():
        return "/run/sshd, which the service ssh makes"
    return next((name for name in PROGRAMS if shutil.which(name) is None), None)


class LocalSshd:
    """While entered, `host` is reached with the arguments `options` of ssh."""

    host = "127.0.0.1"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> LocalSshd:
        for name in ("host", "key"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name)]
            subprocess.run(command, check=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        conf = self.folder / "sshd_config"
        conf.write_text(CONF.format(port=self.port, folder=self.folder))
        assert SSHD is not None
        command = [SSHD, "-D", "-e", "-f", str(conf)]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        deadline_s = time.monotonic() + 30
        while True:
            try:
                socket.create_connection((self.host, self.port), timeout=1).close()
                return self
            except OSError:
                if time.monotonic() > deadline_s or self._process.poll() is not None:
                    raise
                time.sleep(0.02)

    def __exit__(self, *error: object) -> None:
        self._process.terminate()
        self._process.wait()

    @property
    def options(self) -> str:
        trusted = f"-o UserKnownHostsFile={self.folder}/known -o StrictHostKeyChecking=accept-new"
        return f"-F none -p {self.port} -i {self.folder}/key {trusted} -o LogLevel=ERROR"
