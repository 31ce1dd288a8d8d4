"""Small C libraries that replace functions of the system, or the whole NVIDIA library."""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmarks.faults.injected.registry import NotPossibleHere

HEAD = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
"""
SLOW_FSYNC = """
int fsync(int fd) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "fsync");
    usleep(1500000);
    return real(fd);
}
"""
CLOCK_AHEAD = """
#define AHEAD 37
int clock_gettime(clockid_t id, struct timespec *t) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(id, t);
    if (!code && id == CLOCK_REALTIME) t->tv_sec += AHEAD;
    return code;
}
"""
"""Only the clock: the times of files stay, as on a machine whose file server has the right time."""
CLOCK_STEPS = """
int clock_gettime(clockid_t id, struct timespec *t) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(id, t);
    struct timespec now;
    if (!code && id == CLOCK_REALTIME && !real(CLOCK_MONOTONIC, &now) && now.tv_sec % 4 < 2) t->tv_sec -= 60;
    return code;
}
"""
FSYNC_FAILS = """
int fsync(int fd) { errno = EIO; return -1; }
"""
NO_LOCKS = """
/* Files below a folder work/ are on a file system that has no locks. */
static int no_locks_on(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return strstr(path, "/work/") != NULL;
}
int flock(int fd, int operation) {
    static int (*real)(int, int);
    if (!real) real = dlsym(RTLD_NEXT, "flock");
    if (no_locks_on(fd)) { errno = ENOSYS; return -1; }
    return real(fd, operation);
}
int fcntl(int fd, int command, ...) {
    static int (*real)(int, int, ...);
    if (!real) real = dlsym(RTLD_NEXT, "fcntl");
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    int locks = command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW;
    if (locks && no_locks_on(fd)) { errno = ENOSYS; return -1; }
    return real(fd, command, argument);
}
int fcntl64(int fd, int command, ...) __attribute__((alias("fcntl")));
"""
NVML = """
/* Two cards of 24 GiB as the NVIDIA library describes them, but for what MEMORY, USED, NAME and INIT change. */
typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned pid; unsigned long long used; unsigned instance, compute; } process_t;
static char handle[2];
int nvmlInitWithFlags(unsigned flags) { INIT; return 0; }
int nvmlInit_v2(void) { INIT; return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return "an error"; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { strncpy(text, "580.95.05", size); return 0; }
int nvmlSystemGetCudaDriverVersion(int *version) { *version = 13000; return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **device) { *device = &handle[i]; return 0; }
int nvmlDeviceGetName(void *device, char *text, unsigned size) { strncpy(text, NAME, size); return 0; }
int nvmlDeviceGetUUID(void *device, char *text, unsigned size) {
    snprintf(text, size, "GPU-0000000%d", (int)((char *)device - handle)); return 0;
}
int nvmlDeviceGetMemoryInfo(void *device, memory_t *m) {
    m->total = (MEMORY) << 30; m->used = (USED) << 30; m->free = m->total - m->used; return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process_t *found) {
    if (!(USED)) { *count = 0; return 0; }
    if (*count < 1 || !found) { *count = 1; return 7; }
    FILE *file = fopen(PID_FILE, "r");
    if (!file || fscanf(file, "%u", &found[0].pid) != 1) found[0].pid = 1;
    if (file) fclose(file);
    found[0].used = (USED) << 30; *count = 1; return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) { *reasons = 0; return 0; }
int nvmlDeviceGetTotalEccErrors(void *d, int a, int b, unsigned long long *count) { *count = 0; return 0; }
int nvmlDeviceGetCurrPcieLinkWidth(void *device, unsigned *width) { *width = 16; return 0; }
int nvmlDeviceGetMaxPcieLinkWidth(void *device, unsigned *width) { *width = 16; return 0; }
int nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *later) { return 3; }
"""


@functools.cache
def library(source: str, name: str = "preload.so") -> Path:
    """Compile C source into a shared library. Raises NotPossibleHere without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise NotPossibleHere("there is no C compiler")
    folder = Path(tempfile.mkdtemp(prefix="ranks-faults-"))
    (folder / "source.c").write_text(HEAD + source)
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(folder / name), str(folder / "source.c"), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return folder / name


def nvml(
    *,
    memory_gib: int = 24,
    used_gib: int = 0,
    name: str = "NVIDIA GeForce RTX 4090",
    init: str = "",
    pid_file: str = "",
) -> str:
    """The folder of a libnvidia-ml.so.1, for LD_LIBRARY_PATH."""
    values = {"MEMORY": f"{memory_gib}ULL", "USED": f"{used_gib}ULL", "NAME": f'"{name}"', "INIT": init}
    values["PID_FILE"] = f'"{pid_file}"'
    defines = "".join(f"#define {key} {value}\n" for key, value in values.items())
    return str(library(defines + NVML, "libnvidia-ml.so.1").parent)
