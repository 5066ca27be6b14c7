"""The locks, the conda environments and the stamp of the virtual environment."""

import ast
import functools
import importlib.util
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from manybody.io import code_digest

ROOT = Path(__file__).resolve().parents[3]
ENVS = ROOT / "envs"
WORKFLOW = ROOT / "workflow"
# the families whose modules a script imports by a name from the config
BY_NAME = {
    "adopt_weights": ("models",),
    "compute_theory": ("theory",),
    "benchmark_part": ("benchmarks", "models"),
    "describe_clones": ("models",),
    "draw_sequences": ("data/cut", "data/tree"),
    "evaluate_equations": ("models",),
    "evaluate_model": ("models",),
    "make_figure": ("papers",),
    "sample_clones": ("models",),
    "sample_hamiltonian": ("data/many_body", "data/potts"),
    "train_model": ("models", "training/lbfgs"),
    "write_advice": ("models",),
}


def module(name: str) -> ModuleType:
    """A script of envs/ as a module."""
    spec = importlib.util.spec_from_file_location(f"envs_{name}", ENVS / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded  # dataclasses look their module up
    spec.loader.exec_module(loaded)
    return loaded


lock = module("lock")
install = module("install")


@pytest.fixture(scope="module")
def cuda() -> dict:
    return lock.parse((ENVS / "requirements-cuda.txt").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def cpu() -> dict:
    return lock.parse((ENVS / "requirements-cpu.txt").read_text(encoding="utf-8"))


def test_generated_files_are_what_the_lock_gives_every_environment_among_them(cuda):
    derived = lock.derived(cuda)
    for name, text in derived.items():
        assert (ENVS / name).read_text(encoding="utf-8") == text, f"envs/{name}: run `make lock`"
    assert {path.name for path in ENVS.glob("*.yaml")} <= derived.keys()


def test_locks_hold_the_direct_requirements_as_pinned(cpu, cuda):
    pins = re.findall(r"^([a-z0-9-]+)==(\S+)$", (ENVS / "requirements.in").read_text(), re.M)
    assert len(pins) > 20
    for name, version in pins:
        assert cuda[name].version == version
        assert cpu[name].version.removesuffix("+cpu") == version


def test_locks_agree_but_for_the_accelerator(cpu, cuda):
    assert set(cpu) < set(cuda)
    assert all(lock.ACCELERATOR.fullmatch(name) for name in set(cuda) - set(cpu))
    assert {"triton", "nvidia-cublas"} <= set(cuda) - set(cpu)
    for name in set(cpu) - {"torch"}:
        assert (cpu[name].version, cpu[name].hashes) == (cuda[name].version, cuda[name].hashes)


def test_cpu_lock_takes_the_listed_cpu_wheels_only(cpu, cuda):
    table = (ENVS / "torch-cpu.sha256").read_text(encoding="utf-8")
    digests = {f"sha256:{d}" for d in re.findall(r"^[0-9a-f]{64}", table, re.M)}
    assert len(digests) == len(lock.PYTHONS) * len(lock.MACHINES)
    assert set(cpu["torch"].hashes) == digests
    assert not digests & set(cuda["torch"].hashes)


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_a_missing_cpu_wheel_is_named(cuda, python):
    table = (ENVS / "torch-cpu.sha256").read_text(encoding="utf-8")
    tag = f"cp{python.replace('.', '')}-"
    less = "\n".join(x for x in table.splitlines() if not (tag in x and "aarch64" in x))
    with pytest.raises(ValueError, match=rf"no line for torch-.*\+cpu-{tag}.*aarch64"):
        lock.without_accelerator(cuda, less)


@pytest.mark.parametrize("file", ["requirements-cpu.txt", "requirements-cuda.txt"])
def test_locks_name_no_host_and_no_machine(file):
    text = (ENVS / file).read_text(encoding="utf-8")
    assert "://" not in text
    assert " ; " not in text
    assert not re.search(r"^\s*-", re.sub(r"^ +--hash=sha256:[0-9a-f]{64}", "", text, flags=re.M))


def test_conda_environments_are_exact_and_complete(cpu):
    needs = tomllib.loads((ENVS / "environments.toml").read_text(encoding="utf-8"))
    assert set(needs) == {"numerics", "learning", "figures"}
    for name, roots in needs.items():
        content = yaml.safe_load((ENVS / f"{name}.yaml").read_text(encoding="utf-8"))
        assert content["channels"] == ["conda-forge", "nodefaults"]
        *conda, last = content["dependencies"]
        assert [re.split("=", entry)[0] for entry in conda] == ["python", "pip"]
        pins = dict(pin.split("==") for pin in last["pip"])
        assert set(roots) <= set(pins)
        assert pins.items() <= {n: p.version.removesuffix("+cpu") for n, p in cpu.items()}.items()
        for package, entry in cpu.items():
            if package not in pins:
                continue
            children = {n for n, p in cpu.items() if package in p.parents}
            assert children <= set(pins), f"{name} has {package} without all that it needs"
            assert entry.version.startswith(pins[package])


def scripts_of_rules() -> list[tuple[str, str]]:
    """Each rule's script and the environment that its `conda:` names."""
    rule = r"^ *rule\b.*?(?=^ *rule\b|\Z)"
    found = []
    for file in sorted((WORKFLOW / "rules").glob("*.smk")):
        for block in re.findall(rule, file.read_text(encoding="utf-8"), re.M | re.S):
            script = re.search(r'script:\s+"\.\./scripts/(\w+)\.py"', block)
            if script is not None:
                named = re.search(r'conda:\s+"\.\./\.\./envs/(\w+)\.yaml"', block)
                assert named, f"the rule with {script[1]}.py in {file.name} names no environment"
                found.append((script[1], named[1]))
    return found


distributions = functools.cache(packages_distributions)  # reads every installed file list


@functools.cache
def names_imported(path: Path) -> set[str]:
    """What a file imports from outside the standard library and this package, by first name."""
    names = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module.split(".")[0])
    # Its functions about torch are called where torch is imported, and have no other callers.
    given = {"torch"} if path.name == "quick_start.py" else set()
    # Snakemake itself, and what is beside the package, follow an environment in a script's path.
    given |= {"snakemake", "display"} if path.name == "price.py" else set()
    return names - sys.stdlib_module_names - given - {"manybody"}


def distribution(name: str) -> str:
    """The distribution that a module of this name belongs to; of one that is not there its name."""
    return re.sub(r"[-_.]+", "-", distributions().get(name, [name])[0]).lower()


def reached(script: str) -> list[Path]:
    """The files of a script and of the package's modules that it may import."""
    path = WORKFLOW / "scripts" / f"{script}.py"
    source = WORKFLOW / "src"
    named = [
        ".".join(module.relative_to(source).with_suffix("").parts)
        for family in BY_NAME.get(script, ())
        for pattern in (f"{family}.py", f"{family}/**/*.py")
        for module in (source / "manybody").glob(pattern)
        if module.name != "__init__.py"
    ]
    modules = {*code_digest.import_closure(path, tuple(named)), *code_digest.SILENT}
    places = [source.joinpath(*name.split(".")) for name in modules]
    files = [f for p in places for f in (p.with_suffix(".py"), p / "__init__.py") if f.is_file()]
    return [path, *files]


def test_every_script_has_a_rule_with_an_environment():
    assert {script for script, _ in scripts_of_rules()} == {
        path.stem for path in (WORKFLOW / "scripts").glob("*.py")
    }


@pytest.mark.parametrize(("script", "environment"), scripts_of_rules())
def test_environments_name_what_their_scripts_import(script, environment):
    """A package that an environment lacks would silently come from Snakemake's own."""
    needs = tomllib.loads((ENVS / "environments.toml").read_text(encoding="utf-8"))[environment]
    named = {name for file in reached(script) for name in names_imported(file)}
    missing = {distribution(name) for name in named} - set(needs)
    assert not missing, f"environments.toml: {environment} lacks them, `make lock` after adding"


def test_text_of_docstrings_is_locked_in_the_environment_that_reads_it():
    name = dict(scripts_of_rules())["collect_corpus"]
    content = yaml.safe_load((ENVS / f"{name}.yaml").read_text(encoding="utf-8"))
    pinned = {pin.split("==")[0] for pin in content["dependencies"][-1]["pip"]}
    config = yaml.safe_load((ROOT / "config" / "config.yaml").read_text(encoding="utf-8"))
    packages = {p for c in config["corpora"].values() for p in c.get("packages", ())}
    assert packages
    assert packages <= pinned
    assert "torch" not in packages  # its files differ between the builds


def test_a_need_that_is_not_locked_is_named(cpu):
    with pytest.raises(KeyError, match="no-such-package"):
        lock.conda_environment("x", ["numpy", "no-such-package"], cpu)


def test_markers_are_dropped_only_where_all_machines_agree():
    assert lock.everywhere("a", "sys_platform == 'linux' and python_version < '3.14'")
    assert not lock.everywhere("a", "sys_platform == 'win32'")
    with pytest.raises(ValueError, match="holds on some of"):
        lock.everywhere("a", "python_version < '3.12'")
    with pytest.raises(ValueError, match="holds on some of"):
        lock.everywhere("a", "platform_machine == 'x86_64'")


def test_an_entry_without_hashes_is_refused():
    with pytest.raises(ValueError, match="numpy==2"):
        lock.parse("numpy==2 \\\n    # via pandas\n")


def made(folder: Path, locks: Path) -> Path:
    """A folder that looks like an environment which the installer made."""
    venv = folder / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").touch()
    (venv / install.STAMP).write_text(install.stamp(venv, locks, "cpu"))
    return venv


@pytest.fixture
def locks(tmp_path) -> Path:
    for build in ("cpu", "cuda"):
        (tmp_path / f"requirements-{build}.txt").write_text(f"# {build}\n")
    return tmp_path


def test_an_environment_is_ready_for_its_own_torch_and_lock(tmp_path, locks):
    venv = made(tmp_path, locks)
    assert [install.ready(venv, locks, torch) for torch in ("", "cpu", "cuda")] == [1, 1, 0]
    (locks / "requirements-cuda.txt").write_text("# another list, of the other build\n")
    assert install.ready(venv, locks, "")
    (locks / "requirements-cpu.txt").write_text("# another list\n")
    assert not install.ready(venv, locks, "")


def test_a_moved_or_broken_or_half_made_environment_is_not_ready(tmp_path, locks):
    venv = made(tmp_path, locks)
    venv.rename(tmp_path / "elsewhere")
    assert not install.ready(tmp_path / "elsewhere", locks, "")
    (tmp_path / "elsewhere").rename(venv)
    assert install.ready(venv, locks, "")
    (venv / "bin" / "python").unlink()
    assert not install.ready(venv, locks, "")
    install.empty(venv)
    assert not install.ready(venv, locks, "")
    assert [p.name for p in venv.iterdir()] == [install.STAMP]


def test_a_folder_that_is_no_environment_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(SystemExit, match="is no virtual environment"):
        install.empty(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_old_pythons_can_read_the_installer_and_be_told():
    ast.parse((ENVS / "install.py").read_text(encoding="utf-8"), feature_version=(3, 7))
