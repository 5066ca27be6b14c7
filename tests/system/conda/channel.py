"""A conda channel of two packages: the running interpreter, and a pip from the package index."""

import asyncio
import hashlib
import io
import json
import os
import platform
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

from rattler import Subdir
from rattler.index import index_fs

# not the interpreter's own, or of no use to a workflow
LEFT_OUT = {
    "site-packages", "dist-packages", "__pycache__", "test", "tests", "idlelib", "tkinter",
    "turtledemo", "lib2to3", "ensurepip",
}  # fmt: skip


class NoIndex(Exception):
    """pip could not fetch a package: holds what it said."""


def make(channel: Path, pip: str) -> None:
    """Fills the folder `channel`; `pip` is the release to be had from the index ("25")."""
    for subdir in (str(Subdir.current()), "noarch"):
        (channel / subdir).mkdir(parents=True)
    python_package(channel)
    pip_package(channel, pip)
    asyncio.run(index_fs(channel))


def python_package(channel: Path) -> None:
    """Packs the interpreter that runs this, or that its virtual environment is made of."""
    executable = Path(sys._base_executable).resolve()
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    files = {f"bin/{name}": executable}
    links = {f"bin/{link}": name for link in ("python", "python3")}
    # without what marks an unreleased version, which conda's versions do not know
    version = platform.python_version().removesuffix("+")
    with tempfile.TemporaryDirectory() as folder:
        if "posix_local" in sysconfig.get_scheme_names():
            # Debian's own, when moved, looks for packages where no environment has them: it keeps
            # its library where it is, as in a virtual environment.
            files["pyvenv.cfg"] = Path(folder) / "pyvenv.cfg"
            keys = ("home = " + str(executable.parent), "include-system-site-packages = false")
            files["pyvenv.cfg"].write_text("\n".join(keys) + "\n", encoding="utf-8")
        else:
            files |= library(f"lib/{name}")
        pack(channel, str(Subdir.current()), "python", version, files, links)


def library(target: str) -> dict[str, Path]:
    """The standard library, as it is to lie in the folder `target`, and that of C."""
    found = {}
    if sysconfig.get_config_var("Py_ENABLE_SHARED"):
        shared = sysconfig.get_config_var("INSTSONAME")
        found[f"lib/{shared}"] = Path(sysconfig.get_config_var("LIBDIR")) / shared
    top = Path(sysconfig.get_path("stdlib"))
    for folder, folders, names in os.walk(top):
        inside = Path(folder).relative_to(top)
        # the folder config-* is for embedding the interpreter in other programs
        folders[:] = [f for f in folders if f not in LEFT_OUT and not f.startswith("config-")]
        found |= {f"{target}/{inside / file}": Path(folder) / file for file in names}
    return found


def pip_package(channel: Path, release: str) -> None:
    """Packs a wheel of pip, whole, as conda packages of pure Python are: for any Python."""
    with tempfile.TemporaryDirectory() as folder:
        fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
        done = subprocess.run(
            [*fetch, "--only-binary", ":all:", f"pip=={release}.*"], capture_output=True, text=True
        )
        if done.returncode:
            raise NoIndex(done.stderr.strip())
        (wheel,) = Path(folder).iterdir()
        with zipfile.ZipFile(wheel) as opened:
            opened.extractall(Path(folder) / "whole")
        version = wheel.name.split("-")[1]
        files = {
            f"site-packages/{path.relative_to(Path(folder) / 'whole')}": path
            for path in sorted((Path(folder) / "whole").rglob("*"))
            if path.is_file()
        }
        entry_points = ["pip = pip._internal.cli.main:main"]
        pack(channel, "noarch", "pip", version, files, {}, ["python >=3.9"], entry_points)


def pack(channel, subdir, name, version, files, links, depends=(), entry_points=()):
    """Writes one package: `files` from paths by their names in it, `links` to other names."""
    about = {
        "name": name, "version": version, "build": "0", "build_number": 0, "subdir": subdir,
        "depends": list(depends), "timestamp": int(time.time() * 1000),
    }  # fmt: skip
    held = []
    with tarfile.open(
        channel / subdir / f"{name}-{version}-0.tar.bz2", "w:bz2", compresslevel=1
    ) as package:

        def add(path: str, content: bytes, mode: int = 0o644) -> None:
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(content), mode
            package.addfile(entry, io.BytesIO(content))

        for path, source in files.items():
            content = source.read_bytes()
            add(path, content, source.stat().st_mode & 0o777)
            held.append(_held(path, "hardlink", content))
        for path, target in links.items():
            entry = tarfile.TarInfo(path)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            package.addfile(entry)
            held.append(
                _held(path, "softlink", files[str(Path(path).parent / target)].read_bytes())
            )
        if subdir == "noarch":
            about["noarch"] = "python"
            noarch = {"type": "python", "entry_points": list(entry_points)}
            link = {"noarch": noarch, "package_metadata_version": 1}
            add("info/link.json", json.dumps(link).encode())
        add("info/index.json", json.dumps(about).encode())
        add("info/paths.json", json.dumps({"paths": held, "paths_version": 1}).encode())


def _held(path: str, kind: str, content: bytes) -> dict:
    digest = hashlib.sha256(content).hexdigest()
    return {"_path": path, "path_type": kind, "sha256": digest, "size_in_bytes": len(content)}
