"""Make the virtual environment from a hash-locked list: `make env`.

    python3 envs/install.py VENV LOCKS [cpu|cuda]

Standard library only. Every distribution is checked against the sha256 in the lock, and nothing
is built but one package without a wheel, by the locked setuptools. The stamp in the environment
is written last and holds the lock's digest: with it a second call has nothing to do, without it
(a killed install) or with another one (a new lock) the environment is made again from nothing.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

OLDEST, NEWEST = (3, 11), (3, 13)  # what the locks have digests for
SOURCE_ONLY = "connection-pool"  # a package without a wheel
STAMP = "manybody.json"


def check_machine():
    """Stop, naming what to install, where no environment could be made."""
    version = sys.version_info[:2]
    found = f"{sys.executable} is Python {platform.python_version()}"
    if not OLDEST <= version <= NEWEST:
        stop(
            f"{found}; the locked packages are for Python 3.11 to 3.13.\n"
            "Install one (Debian: apt-get install python3.11 python3.11-venv) and name it: "
            "make env PYTHON=python3.11"
        )
    if sys.platform != "linux" or sys.implementation.name != "cpython":
        stop(f"{found} ({sys.implementation.name}, {sys.platform}); expected CPython on Linux.")
    if platform.machine() not in ("x86_64", "aarch64"):
        stop(f"this machine is {platform.machine()}; the locked packages are for x86_64, aarch64.")
    try:
        import ensurepip  # noqa: F401  Debian packs these two apart from python3
        import venv  # noqa: F401
    except ImportError as error:
        stop(
            f"{found}, without its module {error.name}, which makes virtual environments.\n"
            f"Install it (Debian: apt-get install python{version[0]}.{version[1]}-venv)."
        )


def stop(message):
    sys.exit(f"make env: {message}")


def lock_of(locks, build):
    return locks / f"requirements-{build}.txt"


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def ready(venv, locks, wanted):
    """Whether the environment is whole, where it was made, and as the lock says."""
    try:
        stamp = json.loads((venv / STAMP).read_text(encoding="utf-8"))
        return (
            stamp["folder"] == str(venv)
            and wanted in ("", stamp["torch"])
            and stamp["lock"] == digest(lock_of(locks, stamp["torch"]))
            and (venv / "bin" / "python").exists()
        )
    except (OSError, ValueError, KeyError):  # no stamp, or one that no whole install wrote
        return False


@contextlib.contextmanager
def one_at_a_time(folder):
    """Let one process at a time make the environment; the others wait, then find it ready."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks goes without
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def empty(venv):
    """Begin a new environment folder, in the place of an old environment but of nothing else."""
    if venv.exists():
        if any(venv.iterdir()) and not ((venv / STAMP).exists() or (venv / "pyvenv.cfg").exists()):
            stop(f"{venv} is there and is no virtual environment; move it, or name another: VENV=")
        shutil.rmtree(venv)
    venv.mkdir(parents=True)
    (venv / STAMP).touch()  # ours, and not ready


def pip(venv, *arguments):
    return [str(venv / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", *arguments]


def would_take(venv, requirement):
    """The version that pip would install for `requirement`; None if it finds none."""
    question = ["install", "--dry-run", "--no-deps", "--ignore-installed", "--only-binary", ":all:"]
    answer = subprocess.run(
        pip(venv, *question, "--quiet", "--report", "-", requirement),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    if answer.returncode:
        return None
    return json.loads(answer.stdout)["install"][0]["metadata"]["version"]


def torch_build(venv, release):
    """Which build of torch pip would take: "cpu" or "cuda".

    The CPU build is asked for first: pip can say that there is none without fetching the CUDA
    build. Where there is one, pip may still prefer another (+cu130 sorts after +cpu).
    """
    if would_take(venv, f"torch=={release}+cpu") is None:
        print(
            f"make env: pip finds no CPU build of torch {release}, so this takes the CUDA build "
            "(5 GB; it runs without a GPU too).\nFor the CPU build, configure pip with a folder "
            "or an index that has it (find-links, extra-index-url).",
            flush=True,
        )
        return "cuda"
    return "cpu" if would_take(venv, f"torch=={release}").endswith("+cpu") else "cuda"


def install(venv, lock):
    """Install all of `lock`, and nothing whose digest it does not hold."""
    text = lock.read_text(encoding="utf-8")
    # --no-compile: bytecode of 1.8 GB doubles the time; Python writes what it imports anyway
    checked = ["install", "--quiet", "--no-compile", "--require-hashes", "--only-binary", ":all:"]
    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder) / "setuptools.txt"
        first.write_text(re.search(r"^setuptools==(?:.*\\\n)+.*\n", text, re.M)[0], "utf-8")
        subprocess.run(pip(venv, *checked, "-r", str(first)), check=True)
    source = ["--no-binary", SOURCE_ONLY, "--no-build-isolation", "--use-pep517"]
    subprocess.run(pip(venv, *checked, *source, "-r", str(lock)), check=True)


def main(venv, locks, wanted=""):
    venv, locks = Path(venv).absolute(), Path(locks).absolute()
    if wanted not in ("", "cpu", "cuda"):
        stop(f"TORCH={wanted}: expected cpu or cuda, or nothing for what pip would take.")
    if ready(venv, locks, wanted):
        return
    check_machine()
    with one_at_a_time(locks):
        if ready(venv, locks, wanted):
            return
        empty(venv)
        # sys._base_executable: where this runs inside an environment, perhaps the old one
        subprocess.run([sys._base_executable, "-m", "venv", str(venv)], check=True)
        release = re.search(
            r"^torch===([0-9.]+)\+cpu", lock_of(locks, "cpu").read_text(encoding="utf-8"), re.M
        )[1]
        build = wanted or torch_build(venv, release)
        lock = lock_of(locks, build)
        count = len(re.findall(r"^\S+==", lock.read_text(encoding="utf-8"), re.M))
        print(
            f"make env: installing the {count} packages of {lock.name} into {venv}, which takes a "
            "minute or two",
            flush=True,
        )
        try:
            install(venv, lock)
        except subprocess.CalledProcessError:
            other = "cuda" if build == "cpu" else "cpu"
            stop(
                f"pip could not install {lock}, the list for the {build} build of torch; its "
                f"reason is above.\nThe other list: TORCH={other}. A file whose digest is not in "
                "the list is refused: envs/torch-cpu.sha256 says how to add one."
            )
        stamp = {"folder": str(venv), "torch": build, "lock": digest(lock)}
        whole = venv / (STAMP + ".new")
        whole.write_text(json.dumps(stamp) + "\n", encoding="utf-8")
        whole.rename(venv / STAMP)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        stop("interrupted; the next call begins again.")
