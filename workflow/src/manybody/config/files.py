"""Config files as they are written, and the config that Snakemake merges of them.

Snakemake reads the config files of a command line before the Snakefile: what is not there ends in a
traceback, what is no YAML in a sentence without file and line, and of two equal keys YAML keeps the
last. So the profiles run this file, with the arguments of snakemake, before that.

Snakemake compares a rule's parameters as text. It puts the keys of an overlay first, so that an
overlay that repeats a default would make jobs run again; and it takes every number in a mapping of
`--config` for text. So what it merged is made the same, however parts were laid over one another.
"""

import argparse
import json
import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path

import yaml

MERGE, WHOLE = (f"tag:yaml.org,2002:{name}" for name in ("merge", "int"))


def problems(names: Iterable[str | Path]) -> list[str]:
    """Sentences on config files that cannot be read, and on keys that come twice in one."""
    return [said for path in map(Path, names) for said in _problems(path)]


def _problems(path: Path) -> Iterable[str]:
    if not path.is_file():
        return [_missing(path)]
    content = path.read_bytes()
    if space := re.search(rb"^[^#'\"\n]*\xc2\xa0", content, re.MULTILINE):
        return [
            f"{path}, line {len(content[: space.end()].splitlines())}: found U+00A0, a space that "
            f"YAML takes for a letter; expected plain spaces; type them, or put quotes around it"
        ]
    # The slower one of the two is Snakemake's, and takes no tab where the other does.
    loader = yaml.SafeLoader if b"\t" in content else getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        node = yaml.compose(content.decode(), loader)
        yaml.load(content.decode(), loader)  # of tags, days and merges it may make no value
    except (ValueError, yaml.YAMLError) as error:
        with suppress(ValueError):
            json.loads(content)  # which may be indented with tabs
            return []
        return [f"{path}{_unreadable(content, error)}"]
    if isinstance(node, yaml.MappingNode):
        try:
            return list(_misread(path, "", node))
        except RecursionError:
            return [
                f"{path}: found an anchor (&name) whose own value has its alias (*name); expected "
                f"none; write out what the alias stands for"
            ]
    return [
        f"{path}: found {'no mapping' if node else 'nothing'}; expected keys, such as `results: "
        f"results/mine`; write {{}} for none"
    ]


def _missing(path: Path) -> str:
    folder = path.parent if path.parent.is_dir() else Path("config")
    there = sorted(str(file) for file in folder.glob("*.y*ml"))
    near = get_close_matches(str(path), there, 1, cutoff=0.5)
    fix = f"did you mean {near[0]}?" if near else f"{folder} has {', '.join(there) or 'none'}"
    own = Path(__file__).resolve().parents[4] / path  # of the clone
    if own.is_file():
        fix = f"looked in {Path.cwd()}; give {own}, which is there"
    if path.suffix not in (".yaml", ".yml"):
        fix += "; if it is what is to be made, write -- before it"
    return f"--configfile: found {path}, which does not exist; expected a YAML file; {fix}"


def _unreadable(content: bytes, error: ValueError | yaml.YAMLError) -> str:
    """Where YAML stops, and where the brace, bracket or quote that it stops in opens."""
    mark, around = (getattr(error, f"{name}_mark", None) for name in ("problem", "context"))
    if mark is None:
        # UTF-16 without a mark is ASCII with bytes 0 between.
        other = b"\0" in content or isinstance(error, UnicodeDecodeError)
        fix = "save it as UTF-8" if other else "mend it there"
        return f": {' '.join(str(error).split())}; expected YAML in UTF-8; {fix}"
    line = "".join(content.decode().splitlines()[mark.line : mark.line + 1])  # or behind the end
    found, fix = error.problem, "mend it there, or put quotes around the value"
    if found == "but found another document":
        found = "found a second document, behind ---"
        fix = "write it into a file of its own, or remove ---"
    if line[mark.column :].startswith("\t"):
        found, fix = "found a tab", "indent with spaces"
    elif around and re.search("flow|quoted", error.context):
        fix = f"close the brace, bracket or quote that opens in line {around.line + 1}"
    return f", line {mark.line + 1}, column {mark.column + 1}: {found}; expected YAML; {fix}"


def _misread(path: Path, place: str, node: yaml.Node) -> Iterator[str]:
    """Sentences on what YAML reads as something else, here or below: keys that come twice in a
    mapping, and numbers in the notation of base 8 or 60."""
    if node.tag == WHOLE and re.match("[-+]?0[0-7_]|.*:", node.value):
        yield (
            f"{path}, line {node.start_mark.line + 1}: found {place}: {node.value}, which YAML "
            f"reads as {yaml.safe_load(node.value)}; expected a whole number without a 0 before it "
            f"and without a colon; write it so"
        )
    lines: dict[tuple[str, str], int] = {}
    for part in () if isinstance(node, yaml.ScalarNode) else node.value:
        if isinstance(node, yaml.SequenceNode):
            yield from _misread(path, place, part)
            continue
        key, value = part
        name, line = (key.tag, str(key.value)), key.start_mark.line + 1
        where = f"{place}.{key.value}".lstrip(".")
        if name in lines and key.tag != MERGE:
            yield (
                f"{path}, line {line}: found the key {where} again, after line {lines[name]}; "
                f"expected it once, as YAML keeps only the last; write what both hold under one, "
                f"or one of them into a further file behind --configfile"
            )
        lines[name] = line
        yield from _misread(path, where, value)


def asked(arguments: list[str], *option: str) -> tuple[list[str], int, list[str]]:
    """The words that snakemake is given behind an `option`, by default its config files, how often
    the option is there, and other words."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(
        *option or ("--configfile", "--configfiles"),
        dest="found", nargs="*", action="append", default=[],
    )  # fmt: skip
    found, others = parser.parse_known_args(arguments)
    return [word for given in found.found for word in given], len(found.found), others


def command(arguments: list[str], added: str, target: str) -> str:
    """The call of snakemake with these arguments and one more config file, without `target`."""
    words = arguments[: arguments.index("--")] if "--" in arguments else arguments
    names, _, others = asked([word for word in words if word != target])
    return shlex.join(["snakemake", *others, "--configfile", *dict.fromkeys([*names, added])])


def in_order(config, default):
    """`config`; the keys of a mapping in the order of `default`, then those not in it, by name."""
    if not isinstance(config, dict):
        return config
    known = default if isinstance(default, dict) else {}
    names = [key for key in known if key in config]
    names += sorted(config.keys() - known.keys(), key=str)
    return {key: in_order(config[key], known.get(key)) for key in names}


def typed(arguments: Iterable[str]) -> dict:
    """The mappings among the arguments of `--config`, `key={...}`, as YAML."""
    found = {}
    for key, text in (argument.split("=", 1) for argument in arguments):
        with suppress(yaml.YAMLError):
            value = yaml.safe_load(text)
            if isinstance(value, dict):
                found[key] = value
    return found


if __name__ == "__main__":
    names, _, others = asked(sys.argv[1:])
    said = problems(names)
    for option in (("--configfile", "--configfiles"), ("--config", "-C")):
        words, times, _ = asked(sys.argv[1:], *option)
        if times > 1:
            said.append(
                f"{option[0]}: found {times} times, of which snakemake takes the last; expected it "
                f"once; write all behind one: {option[0]} {shlex.join(words)}"
            )
    dotted = (word.split("=", 1) for word in others if re.match(r"[A-Za-z][\w-]*\.[\w.-]+=", word))
    said += [
        f"--config: found {key}={value}; expected a key without dots; write --config "
        f"'{key.replace('.', '={', 1).replace('.', ': {')}: {value}{'}' * key.count('.')}'"
        for key, value in dotted
    ]
    if said:
        sys.exit("\n".join(said))
