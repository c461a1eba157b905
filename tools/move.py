"""Move every module of the package to its room; thrown away when that is done.

    git apply tools/move_before.patch           what would close a circle of imports is split first
    python -m tools.move tools/move.json        names that a merge makes ambiguous
    python -m tools.move tools/move.json --write
    ruff check --fix --select I,F401 src tests benchmarks examples; ruff format .

move.json lists target files with their sources: the map of the target rooms, and the modules that
are newer. Imports, module aliases, names that collide, dotted names in strings and documents, and
paths are rewritten; pyproject.toml's contracts and folders of tests are not.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "headway"
# Names are imported from these by others, whoever defines them.
FACADES = {"headway", "headway.history", "headway.celery"}
# Names whose sense is lost beside others.
RENAMED = {
    ("headway.store.urls", "shown"): "shown_url",
    ("headway.cli.azolla.desk", "echo_json"): "echo_artifacts",
}
TEXT_FILES = ("Makefile", "run", "full", "parts")
TEXTS = (".md", ".toml", ".ini", ".cfg", ".html", ".txt", ".json", ".sh")


def module_of(path: str, base: str = "headway") -> str:
    """The dotted name of a file below the package."""
    parts = (base, *Path(path).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@dataclass
class Source:
    """A module as it is: its text and what its names mean."""

    name: str
    file: Path
    text: str
    tree: ast.Module
    defined: dict[str, ast.stmt] = field(default_factory=dict)
    imported: dict[str, tuple[str, str | None]] = field(default_factory=dict)

    @classmethod
    def read(cls, name: str, file: Path) -> Source:
        text = file.read_text("utf-8")
        made = cls(name, file, text, ast.parse(text))
        for node in made.tree.body:
            for bound in bound_by(node):
                made.defined[bound] = node
        for one in ast.walk(made.tree):
            if isinstance(one, ast.ImportFrom) and ours(one.module):
                for alias in one.names:
                    made.imported[alias.asname or alias.name] = (str(one.module), alias.name)
        return made


def ours(module: str | None) -> bool:
    return module is not None and module.split(".")[0] == "headway"


def bound_by(node: ast.AST) -> Iterator[str]:
    """The names a statement at the top defines."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                yield from (one.id for one in ast.walk(target) if isinstance(one, ast.Name))
        case ast.If() | ast.Try() | ast.With() | ast.For():
            inner = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.stmt)]
            for statement in inner:
                yield from bound_by(statement)


class Plan:
    """Where each module and name goes, and what it is called there."""

    def __init__(self, entries: list[dict[str, object]]) -> None:
        self.targets: dict[str, list[str]] = {}
        self.new: dict[str, str] = {}
        self.renamed = dict(RENAMED)
        self.sources: dict[str, Source] = {}
        self.doubles: set[tuple[str, str]] = set()  # defined to the letter elsewhere in the target
        for entry in entries:
            target = str(entry["target"])
            paths = [str(one) for one in entry["sources"]]  # type: ignore[attr-defined]
            for path in paths:
                old = module_of(path)
                if target.endswith("/"):
                    new = module_of(f"{target}{Path(path).name}", base="").strip(".")
                else:
                    new = module_of(target)
                    self.targets.setdefault(target, []).append(old)
                self.new[old] = new
                self.sources[old] = Source.read(old, PACKAGE / path)

    def origin(self, module: str, name: str) -> tuple[str, str]:
        """The module that defines what *module* knows by a *name*."""
        source = self.sources.get(module)
        if source is None or module in FACADES or name in source.defined:
            return module, name
        if name in source.imported:
            there, that = source.imported[name]
            assert that is not None
            return (module, name) if f"{there}.{that}" in self.sources else self.origin(there, that)
        return module, name

    def goes_to(self, module: str, name: str) -> tuple[str, str]:
        """The new module and name of what *module* knows by a *name*."""
        there, that = self.origin(module, name)
        return self.new.get(there, there), self.renamed.get((there, that), that)

    def is_same(self, name: str, one: str, other: str) -> bool:
        """Return whether two modules define a name by the same statement."""
        statements = [self.sources[old].defined[name] for old in (one, other)]
        return one != other and len({ast.dump(statement) for statement in statements}) == 1

    def settle_collisions(self) -> list[str]:
        """Give one of two different things of one name in one target another name."""
        said = []
        for target, sources in self.targets.items():
            taken: dict[str, tuple[str, ...]] = {}
            for old in sources:
                source = self.sources[old]
                own = {name: ("def", old) for name in source.defined}
                for name, identity in own.items():
                    if (old, name) in self.renamed:
                        continue
                    if name in taken and self.is_same(name, old, taken[name][1]):
                        self.doubles.add((target, name))
                    elif name in taken and taken[name] != identity:
                        suffix = old.rpartition(".")[2]
                        new = f"{name}_{suffix.upper() if name.isupper() else suffix}"
                        self.renamed[old, name] = new
                        said.append(f"{target}: {name} of {old} -> {new} (also {taken[name][1]})")
                    else:
                        taken[name] = identity
        return said


@dataclass(order=True)
class Edit:
    start: int
    end: int
    text: str


class Rewriter(ast.NodeVisitor):
    """The text of one file after the move; *old* is its module, None outside the package."""

    def __init__(self, plan: Plan, text: str, old: str | None) -> None:
        self.plan, self.text, self.old = plan, text, old
        self.tree = ast.parse(text)
        self.own = plan.new.get(old, old) if old else None
        self.edits: list[Edit] = []
        self.problems: list[str] = []
        self.aliases: dict[str, str] = {}  # local name -> old module
        self.names: dict[str, str] = {}  # local name -> name from now on
        self.used: dict[str, set[tuple[str, str]]] = defaultdict(set)
        self.seen: set[str] = set()
        self.emitted: set[str] = set()
        self.given: dict[str, str] = {}  # new module -> what it is called in this file
        self.scopes: list[set[str]] = []
        self.lines = [0]
        for line in text.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line.encode()))
        self.bytes = text.encode()

    def place(self, line: int, column: int) -> int:
        return self.lines[line - 1] + column

    def span(self, node: ast.AST) -> tuple[int, int]:
        return (
            self.place(node.lineno, node.col_offset),  # type: ignore[attr-defined]
            self.place(node.end_lineno, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def run(self) -> str:
        self.learn_imports()
        self.visit(self.tree)
        self.write_imports()
        done = self.bytes
        for edit in sorted(self.edits, reverse=True):
            done = done[: edit.start] + edit.text.encode() + done[edit.end :]
        return done.decode()

    def learn_imports(self) -> None:  # noqa: C901
        if self.old:
            for name in self.plan.sources[self.old].defined:
                if (new := self.plan.renamed.get((self.old, name))) is not None:
                    self.names[name] = new
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.ImportFrom) or not ours(node.module):
                continue
            for alias in node.names:
                whole, local = f"{node.module}.{alias.name}", alias.asname or alias.name
                if whole in self.plan.sources and not self.is_attribute(node.module, alias.name):
                    self.aliases[local] = whole
                else:
                    there, that = self.plan.goes_to(str(node.module), alias.name)
                    if that != local and (there == self.own or alias.asname is None):
                        self.names[local] = that
        self.taken = {
            one.id
            for one in ast.walk(self.tree)
            if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)
        }
        self.taken |= {one.arg for one in ast.walk(self.tree) if isinstance(one, ast.arg)}
        self.taken |= {
            one.name
            for one in ast.walk(self.tree)
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        }
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                self.taken |= {one.asname or one.name for one in node.names} - set(self.aliases)

    def is_attribute(self, module: str | None, name: str) -> bool:
        """A package may offer a function by the name of one of its modules."""
        source = self.plan.sources.get(str(module))
        if source is None:
            return False
        known = source.imported.get(name, (module, name))
        return name in source.defined or known != (module, name)

    def alias_for(self, module: str, old_alias: str) -> str:
        """What the new *module* is called in this file."""
        if module not in self.given:
            _, room, *rest = module.split(".")
            last = rest[-1] if rest else room
            wanted = {self.plan.new[one].rpartition(".")[2] for one in self.aliases.values()}
            others = self.taken | set(self.given.values())
            free = [last, *({old_alias} - wanted), f"{room}_{last}"]
            self.given[module] = next(one for one in free if one not in others)
        return self.given[module]

    # names -------------------------------------------------------------------------------------

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.value, ast.Name) and self.is_alias(node.value.id):
            local = node.value.id
            self.seen.add(local)
            there, that = self.plan.goes_to(self.aliases[local], node.attr)
            if there == self.own:
                if any(that in scope for scope in self.scopes):
                    self.problems.append(f"line {node.lineno}: {local}.{node.attr} is shadowed")
                text = that
            else:
                alias = self.alias_for(there, local)
                self.used[local].add((there, alias))
                text = f"{alias}.{that}"
            self.edits.append(Edit(*self.span(node), text))
            return
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if self.is_alias(node.id) and isinstance(node.ctx, ast.Load):
            there = self.plan.new[self.aliases[node.id]]
            alias = self.alias_for(there, node.id)
            self.used[node.id].add((there, alias))
            self.edits.append(Edit(*self.span(node), alias))
        elif node.id in self.names and not any(node.id in scope for scope in self.scopes):
            self.edits.append(Edit(*self.span(node), self.names[node.id]))

    def is_alias(self, name: str) -> bool:
        return name in self.aliases and not any(name in scope for scope in self.scopes)

    def in_scope(self, node: ast.AST, bound: set[str]) -> None:
        self.scopes.append(bound)
        self.generic_visit(node)
        self.scopes.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if not self.scopes and node.name in self.names:
            start = self.bytes.index(node.name.encode(), self.place(node.lineno, node.col_offset))
            self.edits.append(Edit(start, start + len(node.name), self.names[node.name]))
        defaults = (*node.args.defaults, *filter(None, node.args.kw_defaults))
        for expression in (*node.decorator_list, *defaults):
            self.visit(expression)
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        arguments += [one for one in (node.args.vararg, node.args.kwarg) if one]
        for annotation in (*(arg.annotation for arg in arguments), node.returns):
            if annotation is not None:
                self.visit(annotation)
        bound = {one.arg for one in arguments} | local_names(node.body)
        self.scopes.append(bound)
        for statement in node.body:
            self.visit(statement)
        self.scopes.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.in_scope(node, {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)})

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if not self.scopes and node.name in self.names:
            start = self.bytes.index(node.name.encode(), self.place(node.lineno, node.col_offset))
            self.edits.append(Edit(start, start + len(node.name), self.names[node.name]))
        self.generic_visit(node)

    def visit_ListComp(self, node: ast.AST) -> None:
        targets = {
            one.id
            for generator in node.generators  # type: ignore[attr-defined]
            for one in ast.walk(generator.target)
            if isinstance(one, ast.Name)
        }
        self.in_scope(node, targets)

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

    # imports -----------------------------------------------------------------------------------

    def write_imports(self) -> None:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and ours(node.module):
                start, end = self.span(node)
                indent = " " * node.col_offset
                lines = list(dict.fromkeys(self.imports_of(node)))
                if not node.col_offset:
                    lines = [line for line in lines if line not in self.emitted]
                    self.emitted |= set(lines)
                text = f"\n{indent}".join(lines) or ("pass" if node.col_offset else "")
                self.edits.append(Edit(start, end, text))
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if ours(alias.name) and self.plan.new.get(alias.name, alias.name) != alias.name:
                        self.problems.append(f"line {node.lineno}: import {alias.name}")

    def imports_of(self, node: ast.ImportFrom) -> list[str]:
        lines = []
        for alias in node.names:
            local = alias.asname or alias.name
            if local in self.aliases:
                old = self.aliases[local]
                if local in self.seen and not self.used[local]:
                    continue  # everything of it is in this module now
                used = self.used[local] or {
                    (self.plan.new[old], self.alias_for(self.plan.new[old], local))
                }
                for there, name in sorted(used):
                    if there == self.own:
                        self.problems.append(f"line {node.lineno}: {local} is this module")
                        continue
                    parent, _, last = there.rpartition(".")
                    kept = f" as {name}" if name != last else ""
                    lines.append(f"from {parent} import {last}{kept}")
                continue
            there, that = self.plan.goes_to(str(node.module), alias.name)
            if there == self.own or self.is_passed_on(alias):
                continue
            kept = f" as {local}" if alias.asname else ""
            lines.append(f"from {there} import {that}{kept}")
        return lines

    def is_passed_on(self, alias: ast.alias) -> bool:
        """Return whether others alone used this import; they import from its origin now."""
        if self.old is None or self.old in FACADES or alias.asname != alias.name:
            return False
        return not any(
            isinstance(one, ast.Name) and one.id == alias.name for one in ast.walk(self.tree)
        )


def local_names(body: list[ast.stmt]) -> set[str]:
    """The names a function binds itself, but those of functions in it."""
    found: set[str] = set()
    globals_: set[str] = set()

    def look(node: ast.AST) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.add(node.name)
                return
            case (
                ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp()
            ):
                return
            case ast.Name() if not isinstance(node.ctx, ast.Load):
                found.add(node.id)
            case ast.ExceptHandler() if node.name:
                found.add(node.name)
            case ast.Global():
                globals_.update(node.names)
            case ast.MatchAs() | ast.MatchStar() if node.name:
                found.add(node.name)
        for one in ast.iter_child_nodes(node):
            look(one)

    for statement in body:
        look(statement)
    return found - globals_


def merged(plan: Plan, target: str, problems: list[str]) -> str:  # noqa: C901
    """The text of a *target* made of all its sources, in an order in which names are known."""
    parts = []
    for old in in_order(plan, plan.targets[target]):
        rewriter = Rewriter(plan, plan.sources[old].text, old)
        parts.append((old, rewriter.run()))
        problems += [f"{old}: {one}" for one in rewriter.problems]
    if len(parts) == 1:
        return parts[0][1]
    head, imports, bodies = "", [], []
    first = plan.targets[target][0]
    locals_: dict[str, str] = {}
    written: set[str] = set()
    for old, text in parts:
        tree = ast.parse(text)
        lines = text.splitlines(keepends=True)
        docstring = ast.get_docstring(tree, clean=False)
        skip: set[int] = set()
        if docstring is not None:
            node = tree.body[0]
            skip |= set(range(node.lineno, (node.end_lineno or 0) + 1))
            if old == first:
                head = "".join(lines[node.lineno - 1 : node.end_lineno])
        for node in tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                skip |= set(range(node.lineno, (node.end_lineno or 0) + 1))
                said = "".join(lines[node.lineno - 1 : node.end_lineno])
                said = said if said.endswith("\n") else f"{said}\n"
                imports += [said] if said not in imports else []
                module = getattr(node, "module", None) or ""
                for alias in node.names:
                    local, what = alias.asname or alias.name, f"{module}:{alias.name}"
                    if locals_.setdefault(local, what) != what:
                        problems.append(f"{target}: {local} is {locals_[local]} and {what} ({old})")
        for node in tree.body:
            twice = {name for name in bound_by(node) if (target, name) in plan.doubles}
            if twice & written:
                skip |= set(range(node.lineno, (node.end_lineno or 0) + 1))
            written |= twice
        body = "".join(line for number, line in enumerate(lines, 1) if number not in skip)
        if old != first and docstring is not None:
            title = docstring.strip().splitlines()[0]
            body = f"# {title}\n\n{body.lstrip()}"
        bodies.append(body.strip() + "\n" if body.strip() else "")
    for name in locals_:
        for old in plan.targets[target]:
            if name in plan.sources[old].defined and (old, name) not in plan.renamed:
                problems.append(
                    f"{target}: {name} is imported as {locals_[name]} and defined in {old}"
                )
    return head + "\n" + "".join(imports) + "\n\n" + "\n\n".join(filter(None, bodies))


def in_order(plan: Plan, sources: list[str]) -> list[str]:
    """The sources of a target, each after those it imports from."""
    needs = {
        old: {
            plan.origin(module, name or "")[0]
            for module, name in plan.sources[old].imported.values()
        }
        | {f"{module}.{name}" for module, name in plan.sources[old].imported.values()}
        for old in sources
    }
    done: list[str] = []

    def add(old: str, on_the_way: tuple[str, ...] = ()) -> None:
        if old in done or old in on_the_way:
            return
        for other in sources:
            if other in needs[old] and other != old:
                add(other, (*on_the_way, old))
        done.append(old)

    for old in sources:
        add(old)
    return done


def in_texts(plan: Plan, text: str) -> str:
    """Dotted names and paths of modules in a text that is no program."""

    def dotted(found: re.Match[str]) -> str:
        parts = found[0].split(".")
        for length in range(len(parts), 1, -1):
            module = ".".join(parts[:length])
            if module in plan.sources:
                rest = parts[length:]
                if rest:
                    there, that = plan.goes_to(module, rest[0])
                    return ".".join((there, that, *rest[1:]))
                return plan.new[module]
        return found[0]

    def path(found: re.Match[str]) -> str:
        old = module_of(found[2])
        if old not in plan.sources:
            return found[0]
        new = plan.new[old]
        if not ours(new):
            return f"{new.replace('.', '/')}.py"
        file = next(one for one, olds in plan.targets.items() if old in olds)
        return f"{found[1]}{file}"

    text = re.sub(r"(src/headway/)([\w/]+\.py)", path, text)
    return re.sub(r"\bheadway(?:\.[A-Za-z_]\w*)+", dotted, text)


def tracked() -> list[Path]:
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in done.stdout.splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("map", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    plan = Plan(json.loads(options.map.read_text("utf-8")))
    known = set(plan.sources)
    there = {module_of(str(one.relative_to(PACKAGE))) for one in PACKAGE.rglob("*.py")}
    print("not in the map:", sorted(there - known), "not there:", sorted(known - there))
    for said in plan.settle_collisions():
        print("renamed:", said)
    problems: list[str] = []
    texts = {target: merged(plan, target, problems) for target in plan.targets}
    for old, new in plan.new.items():
        if not ours(new):
            rewriter = Rewriter(plan, plan.sources[old].text, old)
            beside = "__init__" if "." not in new else new.partition(".")[2]
            texts[f"../../chaos/{beside}.py"] = rewriter.run()
            problems += [f"{old}: {one}" for one in rewriter.problems]
    outside: dict[Path, str] = {}
    for file in tracked():
        inside = file.is_relative_to(PACKAGE)
        if file.suffix == ".py" and not inside:
            rewriter = Rewriter(plan, file.read_text("utf-8"), None)
            outside[file] = strings(plan, rewriter.run())
            problems += [f"{file.relative_to(ROOT)}: {one}" for one in rewriter.problems]
        elif (
            file.suffix in TEXTS or file.name == "Makefile" or ".ci" in file.parts
        ) and not inside:
            outside[file] = in_texts(plan, file.read_text("utf-8"))
    print(*problems, sep="\n")
    print(len(plan.renamed), "names,", len(problems), "problems,", len(texts), "targets")
    if options.write:
        write(plan, texts, outside)


STRING = re.compile(r"""(["'])(headway(?:\.\w+)+)\1""")


def strings(plan: Plan, text: str) -> str:
    """Dotted names in strings of a program, such as what a test patches or starts."""
    return STRING.sub(lambda found: f"{found[1]}{in_texts(plan, found[2])}{found[1]}", text)


def write(plan: Plan, texts: dict[str, str], outside: dict[Path, str]) -> None:
    stay = {(PACKAGE / target).resolve() for target in texts}
    for source in plan.sources.values():
        if source.file.resolve() not in stay:
            source.file.unlink()
    for target, text in texts.items():
        file = (PACKAGE / target).resolve()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(strings(plan, text), "utf-8")
    for file, text in outside.items():
        file.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
