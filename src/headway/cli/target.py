"""From ``module:app`` on the command line to the Headway it names, or to a sentence why not."""

import difflib
import importlib
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

import headway
from headway.cli.applications import applications
from headway.cli.terminal import plain
from headway.cli.usage import APP_VARIABLE, APPLICATION
from headway.definition.app import Headway
from headway.domain.text import describe_exception, shown
from headway.errors import (
    AppNotFound,
    DefinitionError,
    HeadwayError,
    SettingsError,
    UnknownWorkflow,
)

Target = Annotated[
    str,
    typer.Argument(
        metavar=APPLICATION,
        envvar=APP_VARIABLE,
        show_envvar=False,
        autocompletion=applications,
        help=f"Where the Headway is: hello:hw means hw in hello.py. Else {APP_VARIABLE}.",
    ),
]

OWN_FOLDER = str(Path(headway.__file__).parent)


def load(target: str) -> Headway:
    """Import the module, with the current folder on the path, and return the Headway it names.

    >>> load("hello:hw")  # doctest: +SKIP
    """
    module_name, name = _split(target)
    module = _import(module_name)
    found = getattr(module, name, None)
    if isinstance(found, Headway):
        return found
    raise AppNotFound(_why_not(module, module_name, name, found))


def _split(target: str) -> tuple[str, str]:
    module, _, name = target.partition(":")
    dotted = module.removesuffix(".py").strip("./").replace("/", ".")
    if dotted != module and _is_dotted(dotted):
        raise AppNotFound(f"{shown(target)} is not module:app; write {dotted}:{name or 'hw'}")
    if not _is_dotted(module) or not name.isidentifier():
        example = module if _is_dotted(module) else "hello"
        raise AppNotFound(f"{shown(target)} is not module:app; for example {example}:hw")
    return module, name


def _is_dotted(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))


def _import(name: str) -> ModuleType:
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise AppNotFound(_not_here(name)) from error
        raise _broken(error) from error
    except (Exception, SystemExit) as error:
        raise _broken(error) from error


def _not_here(name: str) -> str:
    file = name.replace(".", "/") + ".py"
    neighbours = [path.stem for path in Path().glob("*.py") if path.stem.isidentifier()]
    close = difflib.get_close_matches(name, neighbours, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"no module {name!r} here; run this in the folder that holds {file}{hint}"


def _broken(error: BaseException) -> HeadwayError:
    """What went wrong while the user's module was imported, and where in it."""
    where = _place(error)
    if isinstance(error, HeadwayError):
        usage = isinstance(error, DefinitionError | SettingsError | UnknownWorkflow)
        kind = DefinitionError if usage else HeadwayError
        return kind(f"{where}{error}")
    name, message, _ = describe_exception(error)
    if isinstance(error, SyntaxError):
        message = error.msg
    if isinstance(error, SystemExit):
        message += ' (importing must not end the program; use if __name__ == "__main__":)'
    lines = message.strip().splitlines()
    return HeadwayError(f"{where}{name}: {lines[0]}" if lines else f"{where}{name}")


def _place(error: BaseException) -> str:
    """``file:line: `` of the user's last line that had a part in it, if any."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_relative(error.filename)}:{error.lineno}: "
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((OWN_FOLDER, "<frozen"))
        and frame.filename != importlib.__file__
    ]
    here = [frame for frame in frames if _is_in_this_folder(frame.filename)]
    chosen = (here or frames)[-1:]
    return "".join(f"{_relative(frame.filename)}:{frame.lineno}: " for frame in chosen)


def _is_in_this_folder(file: str) -> bool:
    return Path(file).is_relative_to(Path.cwd()) and "site-packages" not in file


def _relative(file: str) -> str:
    return os.path.relpath(file) if _is_in_this_folder(file) else file


def _why_not(module: ModuleType, module_name: str, name: str, found: object) -> str:
    others = [key for key, value in vars(module).items() if isinstance(value, Headway)]
    instead = f"; write {' or '.join(f'{module_name}:{other}' for other in others)}"
    if found is not None:
        problem = f"{module_name}:{name} is a {plain(type(found).__name__)}, not a Headway"
    elif module is headway:
        return "'headway' is headway itself; give your own file another name, for example hello.py"
    else:
        problem = f"module {module_name!r} has no {name!r}"
    return problem + (instead if others else f"; write {name} = Headway(...) in it")
