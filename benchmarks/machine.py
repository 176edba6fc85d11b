"""Describe the machine (without its name) and the package versions of a measurement."""

import os
import platform
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

PACKAGES = (
    *("torch", "numpy", "transformers", "rotary-embedding-torch"),
    *("triton", "liger-kernel", "flash-attn"),
)


def describe(device: str) -> dict[str, Any]:
    """Return the CPU, its SIMD width, its caches, and the GPU if ``device`` is one."""
    gpu = torch.cuda.get_device_name() if device == "cuda" else None
    processor, cores = _processor(), os.cpu_count() or 1
    instructions = torch.backends.cpu.get_cpu_capability()
    whole = f"{processor} {cores} core {instructions}"
    return {
        "name": slug(gpu.removeprefix("NVIDIA ") if gpu else whole),
        "processor": processor,
        "cores": cores,
        "instructions": instructions,
        "threads": torch.get_num_threads(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": " ".join((platform.system(), platform.machine(), *platform.libc_ver())).strip(),
        "caches": _caches(),
        "gpu": gpu,
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages under comparison."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def slug(text: str) -> str:
    """Convert text to a safe file name: lower-case letters, digits and single hyphens."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if not name:
        raise ValueError(f"name must contain a letter or a digit, got {text!r}")
    return name


def has_glibc() -> bool:
    """Whether glibc's tunables can make the allocator keep its memory."""
    return sys.platform == "linux" and platform.libc_ver()[0] == "glibc"


def _processor() -> str:
    """Return the CPU's name."""
    info = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*: (.+)$", info.read_text(), re.M) if info.exists() else None
    return found[1].strip() if found else platform.processor() or platform.machine()


def _caches() -> dict[str, str]:
    """Return the size of each cache of the first core, for example {"L2": "1024K"}."""
    caches = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = ((index / key).read_text().strip() for key in ("level", "type", "size"))
        caches[f"L{level}" + {"Data": "d", "Instruction": "i"}.get(kind, "")] = size
    return caches
