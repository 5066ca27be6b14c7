"""Write the locks and the conda environments: `make lock`.

    requirements.in ──uv──> requirements-cuda.txt ──> requirements-cpu.txt ──> *.yaml
                                     torch-cpu.sha256 ──┘   environments.toml ──┘

The cpu lock is the one resolution without what only CUDA needs, with the digests of the CPU wheels.
Versions already locked stay; delete requirements-cuda.txt first to take the newest of everything.
"""

import re
import subprocess
import sys
import tomllib
from itertools import product
from pathlib import Path
from typing import NamedTuple

from packaging.markers import Marker

HERE = Path(__file__).resolve().parent
CUDA = HERE / "requirements-cuda.txt"
PYTHONS = ("3.11", "3.12", "3.13")
MACHINES = ("x86_64", "aarch64")
ACCELERATOR = re.compile(r"(nvidia|cuda)-.*|triton")  # what the CUDA build of torch adds


class Package(NamedTuple):
    """One entry of a lock: `parents` are the packages, or the file, that ask for it."""

    version: str
    hashes: tuple[str, ...]
    parents: tuple[str, ...]


def parse(text: str) -> dict[str, Package]:
    """The packages of a hash-locked requirements file with `# via` notes, by name."""
    entry = r"^([a-z0-9._-]+)={2,3}([^ ;\\]+)(?: ; (.+?))? \\\n((?: .*\n?)+)"
    packages = {}
    for name, version, marker, rest in re.findall(entry, text, re.M):
        if marker and not everywhere(name, marker):
            continue
        hashes = tuple(re.findall(r"--hash=(sha256:[0-9a-f]{64})", rest))
        parents = tuple(filter(None, re.findall(r"# +(?:via(?: |$))?(.*)", rest, re.M)))
        if not hashes or not parents:
            raise ValueError(f"{name}=={version}: expected hashes and `# via` notes in its entry")
        packages[name] = Package(version, hashes, parents)
    return packages


def everywhere(name: str, marker: str) -> bool:
    """Says if a marker holds on all supported machines; locks have no markers."""
    holds = Marker(marker).evaluate
    answers = {
        holds(dict(python_version=p, python_full_version=f"{p}.0", platform_machine=machine))
        for p, machine in product(PYTHONS, MACHINES)
    }
    if len(answers) == 2:
        raise ValueError(f"{name}: {marker!r} holds on some of {PYTHONS}, {MACHINES}; pin another")
    return answers.pop()


def closure(packages: dict[str, Package], roots: list[str]) -> set[str]:
    """The named packages and all that they need in turn."""
    if missing := [root for root in roots if root not in packages]:
        raise KeyError(f"{', '.join(missing)}: not in the lock; add it to requirements.in")
    found: set[str] = set()
    while roots:
        found.update(roots)
        roots = [n for n, p in packages.items() if n not in found and found & set(p.parents)]
    return found


def without_accelerator(cuda: dict[str, Package], wheels: str) -> dict[str, Package]:
    """The cpu lock: `cuda` less what only CUDA needs, torch hashed by the table `wheels`."""
    release = cuda["torch"].version
    rows = [line.split() for line in wheels.splitlines() if line and not line.startswith("#")]
    for python, machine in product(PYTHONS, MACHINES):
        start, end = f"torch-{release}+cpu-cp{python.replace('.', '')}-", f"_{machine}.whl"
        if not any(file.startswith(start) and file.endswith(end) for _, file in rows):
            raise ValueError(f"torch-cpu.sha256: no line for {start}...{end}")
    cpu = {
        name: p._replace(parents=tuple(q for q in p.parents if not ACCELERATOR.fullmatch(q)))
        for name, p in cuda.items()
        if not ACCELERATOR.fullmatch(name)
    }
    hashes = tuple(sorted(f"sha256:{digest}" for digest, _ in rows))
    cpu["torch"] = Package(f"{release}+cpu", hashes, cuda["torch"].parents)
    return cpu


def requirements(packages: dict[str, Package], what: str) -> str:
    """A lock as text, for pip. torch is pinned by `===`, as `==2.13.0` also takes 2.13.0+cpu."""
    lines = [f"# {what}. Written by `make lock`: edit requirements.in instead.\n"]
    for name, package in sorted(packages.items()):
        lines += [name, "===" if name == "torch" else "==", package.version]
        lines += [f" \\\n    --hash={h}" for h in package.hashes] + ["\n    # via"]
        lines += [f"\n    #   {p}" for p in package.parents] + ["\n"]
    return "".join(lines)


def conda_environment(name: str, needs: list[str], packages: dict[str, Package]) -> str:
    """A conda environment as text: python and pip from conda-forge, the rest as exact pins."""
    pins = [  # torch with its plain release, so that pip takes whichever build it finds
        f"      - {package}=={packages[package].version.removesuffix('+cpu')}\n"
        for package in sorted(closure(packages, needs))
    ]
    return (
        f"# The environment of the {name} rules. Written by `make lock`: edit environments.toml "
        f"instead.\nname: manybody-{name}\nchannels:\n  - conda-forge\n  - nodefaults\n"
        "dependencies:\n  - python=3.11\n  - pip=25\n  - pip:\n" + "".join(pins)
    )


def derived(cuda: dict[str, Package]) -> dict[str, str]:
    """Every generated file, as text by name, from the resolution."""
    cpu = without_accelerator(cuda, (HERE / "torch-cpu.sha256").read_text(encoding="utf-8"))
    needs = tomllib.loads((HERE / "environments.toml").read_text(encoding="utf-8"))
    return {
        "requirements-cuda.txt": requirements(cuda, "Where pip takes the CUDA build of torch"),
        "requirements-cpu.txt": requirements(cpu, "Where pip takes the CPU build of torch"),
        **{f"{name}.yaml": conda_environment(name, needs[name], cpu) for name in needs},
    }


def resolve() -> dict[str, Package]:
    """Ask uv for a resolution of requirements.in; the machines are in pyproject.toml."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal"]
    command += ["--python-version", PYTHONS[0], "--fork-strategy", "fewest"]
    # the one package without a wheel; install.py builds it
    command += ["--only-binary", ":all:", "--no-binary", "connection-pool"]
    command += ["--generate-hashes", "--no-header", "envs/requirements.in"]
    subprocess.run([*command, "--output-file", str(CUDA)], check=True, cwd=HERE.parent)
    return parse(CUDA.read_text(encoding="utf-8"))


if __name__ == "__main__":
    for file, text in derived(resolve()).items():
        (HERE / file).write_text(text, encoding="utf-8")
        print(f"envs/{file}: {text.count('==')} packages")
