"""Make the virtual environment from a hash-locked list: `make env`.

    python3 envs/install.py VENV LOCKS [cpu|cuda]

Standard library only. Every distribution is checked against the sha256 in the lock, and nothing is
built but one package without a wheel. The stamp, written last, holds the digest of the lock.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from importlib import util
from pathlib import Path

BUILDS = ("cpu", "cuda")
STAMP = "manybody.json"
# Python runs it whenever it starts: Snakemake makes a folder in that of caches before all else.
CACHE = """\
import os

home = os.path.expanduser("~/.cache")
if "XDG_CACHE_HOME" not in os.environ and not os.access(home, os.W_OK | os.X_OK):
    try:
        os.makedirs(home)
    except OSError:  # a container, or a node of a cluster
        import tempfile
        os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="cache-")
"""


def check_machine():
    """Stop, naming what to install, where no environment could be made."""
    version = "{}.{}".format(*sys.version_info)
    machine = f"{sys.implementation.name} {sys.platform} {os.uname().machine}"
    machines = ("cpython linux x86_64", "cpython linux aarch64")
    if version not in ("3.11", "3.12", "3.13") or machine not in machines:
        stop(
            f"{sys.executable} is Python {version}, {machine}; the locked packages are for Python "
            f"3.11 to 3.13, {' or '.join(machines)}.\nInstall one (Debian: apt-get install "
            "python3.11 python3.11-venv) and name it: make env PYTHON=python3.11"
        )
    if not util.find_spec("ensurepip"):  # Debian packs it, with venv, apart from python3
        stop(f"{sys.executable} lacks ensurepip (Debian: apt-get install python{version}-venv).")


def stop(message):
    sys.exit(f"make env: {message}")


def stamp(venv, locks, build):
    """The text that an environment holds once the whole list of a build is installed."""
    lock = hashlib.sha256((locks / f"requirements-{build}.txt").read_bytes()).hexdigest()
    return json.dumps({"folder": str(venv), "torch": build, "lock": lock})


def ready(venv, locks, wanted):
    """Whether the environment is whole, where it was made, and as the lock says."""
    whole = [stamp(venv, locks, build) for build in BUILDS if wanted in ("", build)]
    there = (venv / "bin" / "python").exists() and (venv / STAMP).exists()
    return there and (venv / STAMP).read_text(encoding="utf-8").strip() in whole


def where(venv):
    """The folder of the environment; of a link that to which it points."""
    folder = venv.resolve() if venv.is_symlink() else venv.absolute()
    found = set(str(folder)) & set('"$`:\\\n')
    if found:
        stop(f"{folder} holds {' '.join(sorted(found))}, which its `activate` cannot; rename it.")
    return folder


def empty(venv):
    """Begin a new environment folder, in the place of an old environment but of nothing else."""
    if venv.exists():
        if any(venv.iterdir()) and not ((venv / STAMP).exists() or (venv / "pyvenv.cfg").exists()):
            stop(f"{venv} is there and is no virtual environment; move it, or name another: VENV=")
        shutil.rmtree(venv)
    venv.mkdir(parents=True)
    (venv / STAMP).touch()  # ours, and not ready


def add_cache(venv):
    """Have each Python of the environment name another folder of caches where home has none."""
    module = next(venv.glob("lib/python3*/site-packages")) / "manybody_cache.py"
    if not module.exists() or module.read_text("utf-8") != CACHE:
        module.write_text(CACHE, encoding="utf-8")
        module.with_suffix(".pth").write_text("import manybody_cache\n", encoding="utf-8")


def pip(venv, *arguments):
    install = "-m pip --disable-pip-version-check install --quiet --only-binary :all:"
    return [str(venv / "bin" / "python"), *install.split(), *arguments]


def torch_build(venv, release):
    """The build of torch to install: "cpu" where pip finds it, else "cuda"."""
    question = pip(venv, "--dry-run", "--no-deps", "--ignore-installed", f"torch=={release}+cpu")
    if subprocess.run(question, capture_output=True, check=False).returncode == 0:
        return "cpu"
    print(f"make env: pip finds no CPU build of torch {release}: this takes the CUDA build (5 GB;")
    print("it needs no GPU). For the other, name pip a folder or an index that has it.", flush=True)
    return "cuda"


def install(venv, lock):
    """Install all of `lock`, and nothing whose digest it does not hold."""
    # Compiling all packages doubles the time, and Python keeps the bytecode of what it imports.
    # Where it may not (PYTHONDONTWRITEBYTECODE), each job would compile torch anew, in 2 s.
    compiled = "--compile" if sys.dont_write_bytecode else "--no-compile"
    checked = [compiled, "--require-hashes"]
    first = re.search(r"^setuptools==(?:.*\\\n)+.*\n", lock.read_text("utf-8"), re.M)[0]
    subprocess.run(pip(venv, *checked, "-r", "/dev/stdin"), input=first, text=True, check=True)
    # the one package without a wheel
    source = ["--no-binary", "connection-pool", "--no-build-isolation", "--use-pep517"]
    subprocess.run(pip(venv, *checked, *source, "-r", str(lock)), check=True)


def main(venv, locks, wanted=""):
    link, venv, locks = Path(venv), where(Path(venv)), Path(locks).absolute()
    if wanted not in ("", *BUILDS):
        stop(f"TORCH={wanted}: expected cpu or cuda, or nothing for what pip finds.")
    one = os.open(locks, os.O_RDONLY)  # of several calls one makes it, until it ends
    with contextlib.suppress(OSError):  # a file system without locks goes without
        fcntl.flock(one, fcntl.LOCK_EX)
    if ready(venv, locks, wanted):
        return add_cache(venv)
    check_machine()
    if link.is_symlink() and (venv / STAMP).exists() and (venv / STAMP).stat().st_size:
        stop(
            f"{link} is a link to {venv}, an environment with other packages than {locks} lists, "
            "and perhaps in use. Remove the link, or that folder, or name another: VENV="
        )
    empty(venv)
    # sys._base_executable: where this runs inside an environment, perhaps the old one
    subprocess.run([sys._base_executable, "-m", "venv", str(venv)], check=True)
    text = (locks / "requirements-cpu.txt").read_text(encoding="utf-8")
    build = wanted or torch_build(venv, re.search(r"^torch===([0-9.]+)\+cpu", text, re.M)[1])
    lock = locks / f"requirements-{build}.txt"
    print(f"make env: installing {lock.name} into {venv}, a minute or two", flush=True)
    try:
        install(venv, lock)
    except subprocess.CalledProcessError:
        stop(
            f"pip could not install {lock}, the list for the {build} build of torch: see above.\n"
            f"The other list: TORCH={'cuda' if build == 'cpu' else 'cpu'}. A file whose digest is "
            "not in the list is refused: envs/torch-cpu.sha256 says how to add one."
        )
    add_cache(venv)
    (venv / STAMP).write_text(stamp(venv, locks, build), encoding="utf-8")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        stop("interrupted; the next call begins again.")
