"""What the environment is made of: `make audit`.

Lists the licence of every locked package from its installed metadata, which needs no network, and
asks pip-audit for known vulnerabilities of the locked versions where it is installed and its
service can be reached; where not, that is said. The exit status is 1 for a lock without digests, an
installed version that is not the locked one, or a known vulnerability.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from importlib import metadata
from pathlib import Path

LOCKED = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)={2,3}(?P<version>\S+)(?P<rest>(?: \\\n.*)*)", re.M)
HERE = Path(__file__).resolve().parent
LONGEST = 60  # characters of a licence's name
PATIENCE = 300  # seconds for pip-audit


def locked(lock):
    """(name, version, whether it has a digest) of every package of a lock."""
    text = lock.read_text(encoding="utf-8")
    return [(m["name"], m["version"], "--hash=sha256:" in m["rest"]) for m in LOCKED.finditer(text)]


def licence(about):
    """The licence that a package's metadata declare, in short."""
    declared = about.get("License-Expression")
    classifiers = [
        line.rpartition(" :: ")[2]
        for line in about.get_all("Classifier", [])
        if line.startswith("License :: ") and not line.endswith("OSI Approved")
    ]
    first = (about.get("License") or "").strip().partition("\n")[0]
    # Some put the whole text into the field.
    short = first if first.upper() != "UNKNOWN" and len(first) <= LONGEST else ""
    return declared or " / ".join(classifiers) or short or "not declared in its metadata"


def list_licences(packages):
    """Prints name, version and licence of each package; how many installed versions differ."""
    found, absent, other = Counter(), [], []
    for name, version, _ in packages:
        try:
            about = metadata.metadata(name)
        except metadata.PackageNotFoundError:
            absent.append(name)
            continue
        kind = licence(about)
        found[kind] += 1
        print(f"{name} {about['Version']}: {kind}")
        if about["Version"] != version:
            other.append(f"{name} {about['Version']}, locked {version}")
    print(f"\n{found.total()} packages:")
    for kind, count in found.most_common():
        print(f"  {count:4} {kind}")
    if absent:
        print(f"not installed here: {', '.join(absent)}")
    for line in other:
        print(f"not the locked version: {line}")
    return len(other)


def list_vulnerabilities(packages):
    """Prints what pip-audit knows of the locked versions, or why it was not asked; how many."""
    command = shutil.which("pip-audit")
    if not command:
        print(
            "known vulnerabilities: NOT CHECKED, there is no pip-audit here; install it in an "
            "environment of its own (pipx install pip-audit) and run make audit again"
        )
        return 0
    asked = [command, "--progress-spinner", "off", "--format", "json", "--no-deps", "--disable-pip"]
    try:
        with tempfile.TemporaryDirectory() as folder:
            # Not the lock itself: pip-audit cannot read `===`, and services know no `+cpu`.
            public = Path(folder) / "requirements.txt"
            lines = (f"{name}=={version.partition('+')[0]}\n" for name, version, _ in packages)
            public.write_text("".join(lines), encoding="utf-8")
            asked += ["--requirement", str(public)]
            done = subprocess.run(
                asked, capture_output=True, text=True, timeout=PATIENCE, check=False
            )
        answer = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        reason = (done.stderr.strip() or "no answer").splitlines()[-1]
        print(f"known vulnerabilities: NOT CHECKED, pip-audit could not answer: {reason}")
        return 0
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"known vulnerabilities: NOT CHECKED, pip-audit could not answer: {error}")
        return 0
    found = [(package, known) for package in answer for known in package.get("vulns", [])]
    skipped = [package["name"] for package in answer if "skip_reason" in package]
    if len(skipped) == len(answer):
        print(
            f"known vulnerabilities: NOT CHECKED, the service knows none of {len(answer)} packages"
        )
        return 0
    print(f"known vulnerabilities: {len(found)} in {len(answer) - len(skipped)} packages")
    for package, known in found:
        fixed = ", ".join(known.get("fix_versions", [])) or "no version yet"
        print(f"  {package['name']} {package['version']}: {known['id']}, fixed in {fixed}")
    if skipped:
        print(f"  not known to the service: {', '.join(skipped)}")
    return len(found)


def main(lock):
    packages = locked(Path(lock))
    if not packages:
        sys.exit(f"make audit: {lock} locks no package; make lock writes it")
    bare = [name for name, _, digest in packages if not digest]
    others = list_licences(packages)
    print(
        f"\ndigests in {Path(lock).name}: {len(packages) - len(bare)} of {len(packages)} packages"
    )
    if bare:
        print(f"  without: {', '.join(bare)}")
    return bool(list_vulnerabilities(packages) + len(bare) + others)


if __name__ == "__main__":
    build = "cpu" if "+cpu" in metadata.version("torch") else "cuda"
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else HERE / f"requirements-{build}.txt"))
