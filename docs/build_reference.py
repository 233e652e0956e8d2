#!/usr/bin/env python3
"""Write docs/reference from the live objects. With --check, only report outdated pages, and fail if there are any.

python docs/build_reference.py [--check]
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import re
import sys
import tomllib
from functools import partial
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

import click

import allonym
from allonym import cli, errors, registry, replace, swap
from allonym.detection.rules import read_builtin_rules
from allonym.files import SUFFIXES, get_format, readers
from allonym.intruder import intruders
from allonym.labels import SCHEMES, TAXONOMY
from allonym.pattern import PatternRule
from allonym.policy import LabelRow, Policy, PolicyFile, TagTable, presets
from allonym.registry import Registry
from allonym.server import settings as server_settings
from allonym.server.access import ROLES
from allonym.server.app import ROUTES
from allonym.settings import REQUIRED, Setting, list_settings
from allonym.swap import settings as swap_settings
from allonym.swap.categories import CATEGORIES
from allonym.swap.embedding import embedders
from allonym.swap.sections import sections

FOLDER = Path(__file__).resolve().parent / "reference"
HEAD = "<!-- Written by docs/build_reference.py. Do not edit. -->\n\n"


def cell(value: object) -> str:
    """Escape a value for a table cell."""
    return str(value).replace("\n", " ").replace("|", "\\|")


def code(value: object) -> str:
    text = cell(value)
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}" if text else ""


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def labels() -> str:
    rows = [
        [
            code(label.name),
            code(label.parent or ""),
            label.kind,
            str(label.risk),
            cell(label.description),
            "; ".join(f"{s}: {', '.join(label.names[s])}" for s in SCHEMES if label.names.get(s)),
        ]
        for label in TAXONOMY
    ]
    return (
        "# Labels\n\n"
        f"The {len(TAXONOMY)} labels that come with allonym. A `direct` label identifies a person alone, a `quasi` "
        "label in combination with others, and a `none` label hardly ever. The risk, from 0 to 5, is the harm if the "
        "text is left in. A rule or an exclusion for a label also applies to the labels below it. `allonym.to_scheme` "
        "and `allonym.from_scheme` map labels to and from other schemes.\n\n"
        + table(["label", "parent", "kind", "risk", "meaning", "names in other schemes"], rows)
    )


def shape(pattern: str) -> str:
    """Shorten a pattern for a table."""
    return pattern if len(pattern) <= 60 else pattern[:57] + "..."


def named_numbers(lists: list[dict[str, str]]) -> str:
    """Describe the names of numbers, by label."""
    rows = []
    for row in lists:
        shown = [
            f"{key}: {cell(' '.join(row[key].split()))}"
            for key in ("short", "alone", "with_number", "near")
            if key in row
        ]
        label = code(row["label"]) if row["label"] else "none"
        rows.append([label, row.get("kind", "code"), f"{row['score']:g}", "<br>".join(shown)])
    return (
        "What calls a value, as in `order no. 4471-22`; the source of a finding is `rules:named-number`. Names in "
        "`alone` and `short` also call a value without a number word. Names in `near` tell what a number further on "
        "is the number of. Names without a label keep numbers from being called by others.\n\n"
        + table(["label", "value", "score", "names"], rows)
    )


def rules() -> str:
    out = [
        "# Detection rules\n\n"
        f"The {len(read_builtin_rules())} built-in pattern rules, by family. The source of a finding names its rule, "
        "as `rules:<name>`. `score` applies without a context word, `with context` if one of the rule's context words "
        "is near. Findings below the threshold of their label are ignored.\n"
    ]
    folder = files("allonym").joinpath("detection", "tables")
    by_name = {rule.name: rule for rule in read_builtin_rules()}
    for path in sorted((p for p in folder.iterdir() if p.name.endswith(".toml")), key=lambda p: p.name):
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        out.append(f"\n## {path.name[:-5]}\n\n")
        if "name" in data:
            out.append(named_numbers(data["name"]))
            continue
        names = [row["name"] for row in data["rule"]]
        rows = [
            [
                code(rule.name),
                code(rule.label),
                code(shape(rule.pattern)),
                code(rule.validator),
                f"{rule.score:g}",
                f"{rule.context_score:g}" if rule.context else "",
                rule.country,
            ]
            for rule in (by_name[name] for name in names)
        ]
        out.append(table(["rule", "label", "pattern", "validator", "score", "with context", "country"], rows))
    return "".join(out)


def policies() -> str:
    kinds = {int: "integer", str: "string", float: "number"}
    shapes = {"list": "list", "table": "table"}
    out = ["# Policies\n\n## Presets\n\n"]
    rows = []
    for name in presets():
        policy = Policy.load(name)
        count = sum(policy.looks_for(label.name) for label in TAXONOMY)
        rows.append(
            [
                code(name),
                cell(policy.description),
                f"{count} of {len(TAXONOMY)}",
                code(policy.default.operator),
                code(policy.style),
            ]
        )
    out.append(table(["preset", "purpose", "labels", "default operator", "style of tags"], rows))
    out.append(
        "\nEvery preset except `earnings` and `clinical-spanish` runs the [tagger](../explanation/tagger.md), "
        "which finds names in free text.\n\n## Keys of a policy file\n\nUnknown keys are errors.\n\n"
    )
    rows = [
        [code(one.name), shapes.get(one.shape) or kinds.get(one.kind, "table"), cell(one.says)]
        for one in list_settings(PolicyFile)
    ]
    out.append(table(["key", "type", "meaning"], rows))
    keys = {
        group: ", ".join(code(one.name) for one in list_settings(group))
        for group in (registry.DetectTable, TagTable, LabelRow)
    }
    out.append(
        f"\nThe keys of `[detect]` are {keys[registry.DetectTable]}. The keys of `[tag]` are {keys[TagTable]}. "
        f"The keys of a `[[labels]]` table are {keys[LabelRow]}.\n"
        "\n## Keys of a `[[patterns]]` table\n\n"
    )
    rows = []
    for one in list_settings(PatternRule):
        shown = "required" if one.default is REQUIRED else code(one.default if one.default != -1.0 else "")
        rows.append([code(one.name), shown, cell(markdown(one.says).strip())])
    out.append(table(["key", "default", "meaning"], rows))
    for name in presets():
        text = files("allonym").joinpath("policies", f"{name}.toml").read_text(encoding="utf-8")
        out.append(f"\n## `{name}`\n\n```toml\n{text.rstrip()}\n```\n")
    return "".join(out)


def operators() -> str:
    out = ["# Operators\n\n", markdown(inspect.getdoc(replace) or ""), "\n"]
    for name in registry.operators.names():
        found = registry.operators.get(name)
        options = [
            f"{p.name} = {default_shown(p.default)}"
            for p in inspect.signature(found).parameters.values()  # type: ignore[arg-type]
            if p.kind is p.KEYWORD_ONLY
        ]
        out.append(f"\n## `{name}`\n\n{markdown(inspect.getdoc(found) or '')}")
        shown = "none" if not options else ", ".join(map(code, options))
        out.append(f"\nOptions: {shown}.\n")
    return "".join(out)


def example(found: re.Match[str]) -> str:
    """Turn an indented example into a fenced block, and leave anything else unchanged."""
    if not found[0].startswith("::"):
        return found[0]
    return f":\n\n```python\n{inspect.cleandoc(found[1])}\n```"


def markdown(doc: str) -> str:
    """Convert a docstring to Markdown: double backticks become single, roles lose their names, sections are lists."""
    doc = re.sub(r":(?:func|class|meth|mod|attr|exc|data):`~?\.?([^`]+)`", r"`\1`", doc)
    doc = doc.replace("``", "`")
    doc = re.sub(r":?:\n\n((?:    .*\n|\n)*    .*)", example, doc)
    lines: list[str] = []
    section = quoted = False
    for line in doc.splitlines():
        if re.fullmatch(r"(Args|Attributes|Raises|Returns|Options|Yields|Example|Examples):", line):
            lines += [f"**{line[:-1]}**", ""]
            section = True
            continue
        if section and line.startswith("    "):
            body = line[4:]
            if body.startswith(" "):
                lines.append(f"  {body.strip()}")
            else:
                lines.append("- " + re.sub(r"^([\w`, \[\]{}|\"'=*]+?): ", lambda m: f"`{m[1].strip('`')}`: ", body))
            continue
        section = section and not line.strip()
        if line.startswith(">>>") and not quoted:
            lines += ["```pycon"]
            quoted = True
        elif quoted and not line.strip():
            lines += ["```"]
            quoted = False
        lines.append(line)
    if quoted:
        lines.append("```")
    return "\n".join(lines).rstrip() + "\n"


def default_shown(value: object) -> str:
    text = repr(value)
    if "mappingproxy" in text or "<factory>" in text or " at 0x" in text:
        return "..."
    return text


def signature(name: str, value: object) -> str:
    """Format a call as Python code, with the annotations of the source."""
    found = inspect.signature(value)  # type: ignore[arg-type]
    pieces: list[str] = []
    keyword_only = False
    for parameter in found.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            pieces.append("*")
            keyword_only = True
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        piece = f"{stars}{parameter.name}"
        if parameter.annotation is not parameter.empty:
            piece += f": {parameter.annotation}"
        if parameter.default is not parameter.empty:
            piece += f" = {default_shown(parameter.default)}"
        pieces.append(piece)
    gives = found.return_annotation
    tail = "" if gives in (found.empty, None, "None") or inspect.isclass(value) else f" -> {gives}"
    shown = f"{name}({', '.join(pieces)}){tail}"
    if len(shown) > 100:
        shown = f"{name}(\n    " + ",\n    ".join(pieces) + f",\n){tail}"
    return f"```python\n{shown}\n```\n"


def named(name: str, value: object, level: str) -> str:
    """Describe one public name: its signature, its docstring, its methods and properties."""
    out = [f"\n{level} `{name}`\n\n"]
    if isinstance(value, Registry):
        shown = ", ".join(map(code, value.names()))
        return f"{out[0]}Registry of {value.kind}s: {shown}; see `{name}.register`, `{name}.names`.\n"
    if not callable(value):
        return f"{out[0]}`{value!r}`\n"
    error = inspect.isclass(value) and issubclass(value, BaseException)
    if not error and not getattr(value, "_is_protocol", False):
        out.append(signature(name, value) + "\n")
    out.append(markdown(inspect.getdoc(value) or ""))
    if inspect.isclass(value):
        for method, held in vars(value).items():
            if method.startswith("_") or not (inspect.isfunction(held) or isinstance(held, classmethod | property)):
                continue
            bound = getattr(value, method)
            call = "" if isinstance(held, property) else f"{signature(method, bound)}\n"
            out.append(f"\n{level}# `{name}.{method}`\n\n{call}{markdown(inspect.getdoc(bound) or '')}")
    return "".join(out)


def python() -> str:
    out = ["# Python\n\nThese are the public names. Everything else may change between minor versions.\n"]
    for name in allonym.__all__:
        if name == "__version__":
            out.append("\n## `__version__`\n\nThe version of this package, as a string.\n")
        else:
            out.append(named(name, getattr(allonym, name), "##"))
    return "".join(out)


PYTHON_PAGES = {
    "swapping": (
        "`allonym.swap`, its modules, and the modules that read its results. They need the extra `swap`.",
        ("swap", "intruder", "report", "stats", "stats.partition"),
    ),
    "evaluation": (
        "`allonym.evaluate` and the statistics that it uses. [Python of swapping](swapping-python.md) has intruders, "
        "reports and estimates. They need the extra `evaluate`.",
        ("evaluate", "stats.samples", "stats.bayes"),
    ),
    "training sets": (
        "`allonym.export` writes training sets. [Python of evaluation](evaluation-python.md) has the checks of model "
        "outputs.",
        ("export",),
    ),
    "projects": (
        "`allonym.project` leads a study from its files to a release, see [a study](../how-to/study.md).",
        ("project", "project.erasing", "project.readings", "project.sheets"),
    ),
    "integrations": (
        "`allonym.integrations` connects allonym to other libraries. Each integration needs the extra of its library.",
        tuple(f"integrations.{name}" for name in ("presidio", "spacy", "spacy_pipe", "datasets", "langchain")),
    ),
    "scale": (
        "Data frames need the extra `parquet`, Ray the extra `ray` and Spark the extra `spark`. See [data frames]"
        "(../how-to/arrow-and-pandas.md) and [more than one machine](../how-to/scale.md).",
        ("scale",),
    ),
}
"""What a page of Python is about: its introduction, and the modules that it describes."""


def python_of(subject: str) -> str:
    """Describe the public names of the modules of a page, one after the other."""
    introduction, names = PYTHON_PAGES[subject]
    out = [f"# Python of {subject}\n\n{introduction} The names here may still change between minor versions.\n"]
    for module in (import_module(f"allonym.{name}") for name in names):
        about = (inspect.getdoc(module) or "").partition("\n\n")[0]
        out.append(f"\n## `{module.__name__}`\n\n{markdown(about)}")
        public = getattr(module, "__all__", None) or [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
        ]
        out += [named(name, getattr(module, name), "###") for name in public]
    return "".join(out)


def swapping() -> str:
    made = {name: swap_settings.Settings.load(name) for name in swap_settings.presets()}
    out = [
        "# Settings of swapping\n\nA settings file is TOML with the tables below. `extends` names a preset or another "
        "file. Unknown keys are errors. Presets: "
        + "; ".join(f"`{name}`: {s.description[:1].lower()}{s.description[1:-1]}" for name, s in made.items())
        + ".\n\nThe [policy](policies.md) `swap` sets what is detected and how direct identifiers are replaced. In "
        "Python, the class is `allonym.swap.Settings`; see [Python of swapping](swapping-python.md).\n\n"
        "## Categories\n\n"
        f"`[categories]` gives each category a state: {', '.join(map(code, swap.corpus.STATES))}. Any label is also a "
        "category, by its own name. `[fallback]` sets, by category, what happens to entities that were not exchanged: "
        f"{', '.join(map(code, swap_settings.FALLBACKS))}. The key `*` stands for all other categories.\n\n",
        table(
            ["category", "labels", *(f"state in {code(n)}" for n in made), *(f"fall-back in {code(n)}" for n in made)],
            [
                [
                    code(name),
                    f"{code(label)} and below",
                    *(code(s.categories.get(name, "")) or "not detected" for s in made.values()),
                    *(code(s.fallback_for(name)) for s in made.values()),
                ]
                for name, label in CATEGORIES.items()
            ],
        ),
    ]
    for group in list_settings(swap_settings.Settings):
        if group.is_group:
            head = ["setting", "default", "values", "meaning", "in presets"]
            rows = [describe_swap_setting(group.name, setting, made) for setting in list_settings(group.kind)]
            out.append(f"\n## `[{group.name}]`\n\n{inline(group.says)}\n\n{table(head, rows)}")
    out.append(
        "\n## Extensions by name\n\nYou can add these by `register`, or by an entry point of an installed package; see "
        "[extending](../how-to/extend.md).\n\n"
    )
    kinds = [
        (embedders, "allonym.swap.embedding.embedders", "`embed.name`"),
        (intruders, "allonym.intruder.intruders", "`check.intruders`"),
        (sections, "allonym.swap.sections.sections", "`read.section`"),
    ]
    out.append(
        table(
            ["kind", "setting", "names", "registry", "entry points"],
            [[k.kind, s, ", ".join(map(code, k.names())), code(w), code(f"allonym.{k.kind}s")] for k, w, s in kinds],
        )
    )
    for name in made:
        text = files("allonym.swap").joinpath("presets", f"{name}.toml").read_text(encoding="utf-8")
        out.append(f"\n## Preset `{name}`\n\n```toml\n{text.rstrip()}\n```\n")
    return "".join(out)


def describe_swap_setting(group: str, setting: Setting, presets: dict[str, swap_settings.Settings]) -> list[str]:
    values = ", ".join(map(code, setting.one_of)) or setting.bounds
    own = {name: getattr(getattr(preset, group), setting.name) for name, preset in presets.items()}
    differs = "; ".join(code(f"{name} {toml(value)}") for name, value in own.items() if value != setting.default)
    return [code(f"{group}.{setting.name}"), code(toml(setting.default)), values, inline(setting.says), differs]


def inline(text: str) -> str:
    """Format a line of a docstring for a table cell."""
    return cell(markdown(text).strip())


def toml(value: object) -> str:
    """Format a setting as TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, str):
        return f'"{value}"'
    return f"{value:g}" if isinstance(value, float) else str(value)


def formats() -> str:
    out = ["# Formats\n\nThe suffix of a file, or the option `--format`, sets its format.\n"]
    for name in readers.names():
        kind = get_format(name)
        homes = (m for path, m in sorted(sys.modules.items()) if path.startswith("allonym.files."))
        about = inspect.getdoc(next(m for m in homes if any(value is kind for value in vars(m).values()))) or ""
        others = [code(f".{suffix}") for suffix, format in SUFFIXES.items() if format == name]
        also = f" Other suffixes: {', '.join(others)}." if others else ""
        out.append(f"\n## `.{name}`\n\n{markdown(about).strip()}{also}\n")
    return "".join(out)


def error_tree() -> str:
    doc = inspect.getdoc(errors) or ""
    tree = inspect.cleandoc(doc.partition("::\n")[2].partition("\n\nMessages")[0])
    rows = [
        [code(n), str(c.exit_code), str(c.status), cell((inspect.getdoc(c) or "").splitlines()[0])]
        for n, c in inspect.getmembers(errors, inspect.isclass)
        if issubclass(c, errors.AllonymError)
    ]
    return (
        "# Errors\n\nA message names the place, what is required and what was given. It shows configuration, never "
        "data.\n\n"
        f"```text\n{tree}\n```\n\n" + table(["error", "exit code", "HTTP status", "raised when"], rows)
    )


def command_line() -> str:
    out = [
        "# Command line\n\nExit codes: 0 means success; 1 means that some data could not be processed or went to "
        "quarantine; 2 means that the call or the policy is wrong; 130 means that the run was interrupted.\n"
    ]

    def walk(command: click.Command, names: list[str]) -> None:
        arguments = [p for p in command.params if isinstance(p, click.Argument)]
        options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
        usage = [
            *names,
            *(["[OPTIONS]"] if options else []),
            *(a.metavar or a.human_readable_name.upper() for a in arguments),
        ]
        usage += ["COMMAND"] if isinstance(command, click.Group) else []
        about, _, examples = inspect.cleandoc(command.help or "").partition("\b\n")
        out.append(f"\n## `{' '.join(names)}`\n\n```text\n{' '.join(usage)}\n```\n\n{about.strip()}\n")
        if examples:
            head, _, lines = examples.partition("\n")
            out.append(f"\n{head}\n\n```sh\n{inspect.cleandoc(lines)}\n```\n")
        if options:
            rows = []
            for option in options:
                given = "" if option.is_flag else f" {option.metavar or option.type.name.upper()}"
                default = option.default if option.show_default and not option.is_flag else ""
                shown = ", ".join([*option.opts, *option.secondary_opts]) + given
                rows.append([code(shown), code(default), cell(option.help or "")])
            out.append("\n" + table(["option", "default", "meaning"], rows))
        if isinstance(command, click.Group):
            with click.Context(command, info_name=names[-1]) as context:
                for name in command.list_commands(context):
                    child = command.get_command(context, name)
                    if child is not None and not child.hidden:
                        walk(child, [*names, name])

    walk(cli.app, ["allonym"])
    return "".join(out)


def server() -> str:
    rows = []
    for one in dataclasses.fields(server_settings.Settings):
        default = str(one.default) if isinstance(one.default, Path) else one.default
        says = str(one.metadata["says"])
        rows.append([code(one.name), code(toml(default)), inline(f"{says[0].upper()}{says[1:]}.")])
    out = [
        "# Server\n\nSee [how to run the server](../how-to/serve.md).\n\n## Settings\n\nEach setting is a key of the "
        "TOML file (`max_body_mb`), an environment variable (`ALLONYM_MAX_BODY_MB`) and an option of `allonym serve` "
        "(`--max-body-mb`). Options override the environment, and the environment overrides the file.\n\n",
        table(["setting", "default", "meaning"], rows),
        "\n## Roles\n\nAn API key has all or some of the permissions of its owner.\n\n",
        table(["role", "permissions"], [[code(role), ", ".join(map(code, may))] for role, may in ROLES.items()]),
        "\n## Scopes\n\nWhoever first writes into a scope of the vault owns it. Nobody else may use it without a grant "
        "of the owner or an admin.\n\n",
        table(
            ["who", "writes into a scope", "restores from it", "lets users in"],
            [
                ["its owner", "yes", "with the permission `restore`", "yes, in a session"],
                ["a user with a grant", "yes", "with the permission `restore`", "–"],
                ["an admin", "with a grant", "with a grant", "yes, also themselves"],
                ["anybody else", "–", "–", "–"],
            ],
        ),
        "\nA scope that was in the vault before, or whose owner was removed, belongs to nobody until an admin grants "
        "it.\n",
        "\n## Routes\n\n`/v1/openapi.json` describes requests and responses. A route with a dash needs no account. The "
        "last columns say which roles may use a route.\n",
    ]
    for name in ROUTES:
        module = import_module(f"allonym.server.routes.{name}")
        about = inline((inspect.getdoc(module) or "").partition("\n")[0])
        head = ["route", "needs", "what it does", *ROLES]
        out.append(f"\n{about}\n\n{table(head, [route_row(one) for one in module.router.routes])}")
    return "".join(out)


def route_row(route: Any) -> list[str]:
    """Format one route: path, permissions, purpose."""
    methods = " ".join(sorted(getattr(route, "methods", None) or ("WebSocket",)))
    waiting = list(route.dependant.dependencies)
    needed: list[str] = []
    known = route.path == "/metrics" or methods == "WebSocket"
    while waiting:
        one = waiting.pop()
        waiting += one.dependencies
        known = known or hasattr(one.call, "permissions")
        needed += getattr(one.call, "permissions", ())
    special = {"/metrics": "`metrics`", "/v1/stream": "`detect`; transcripts: `anonymize`"}
    need = special.get(route.path) or ", ".join(map(code, needed)) or ("an account" if known else "–")
    says = getattr(route, "summary", None) or "Detect while a user types, anonymise while people speak"
    permissions = set(re.findall("`([a-z]+)`", need))
    roles = ["yes" if permissions <= set(may) else "–" for may in ROLES.values()]
    return [code(f"{methods} {route.path}"), need, inline(says), *roles]


PAGES = {
    "labels.md": labels,
    "rules.md": rules,
    "policies.md": policies,
    "formats.md": formats,
    "operators.md": operators,
    "python.md": python,
    "swapping.md": swapping,
    "swapping-python.md": partial(python_of, "swapping"),
    "evaluation-python.md": partial(python_of, "evaluation"),
    "export-python.md": partial(python_of, "training sets"),
    "project-python.md": partial(python_of, "projects"),
    "scale-python.md": partial(python_of, "scale"),
    "integrations-python.md": partial(python_of, "integrations"),
    "errors.md": error_tree,
    "cli.md": command_line,
    "server.md": server,
}


def main(arguments: list[str]) -> int:
    check = arguments == ["--check"]
    if arguments and not check:
        sys.stderr.write(__doc__ or "")
        return 2
    FOLDER.mkdir(exist_ok=True)
    stale = 0
    for name, make in PAGES.items():
        path = FOLDER / name
        new = HEAD + make()
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        if new == old:
            continue
        if not check:
            path.write_text(new, encoding="utf-8")
            continue
        stale += 1
        difference = difflib.unified_diff(
            old.splitlines(), new.splitlines(), f"{name} (stored)", f"{name} (live)", "", "", 1
        )
        sys.stderr.write("\n".join(list(difference)[:12]) + "\n")
    if stale:
        sys.stderr.write(f"{stale} pages are out of date; run: python docs/build_reference.py\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
