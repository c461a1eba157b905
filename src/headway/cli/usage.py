"""What is wrong with a command line, in a sentence that names argument, value, rule and example."""

import difflib
import re
from typing import Any

from pydantic import ValidationError

from headway.domain.text import clause, shown

APP_VARIABLE = "HEADWAY_APP"
APPLICATION = "MODULE:APP"
EXAMPLE = re.compile(r"Example: (.+)")
# What the API and the settings call it.
OTHER_NAMES = {"--max-active-jobs": "--cap"}
RULES = {
    "int_parsing": "must be a whole number",
    "float_parsing": "must be a number",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
}


def explained(error: Any) -> str:
    """The message of an error that Typer has found in the command line.

    >>> import typer
    >>> explained(typer.BadParameter("give one external id"))
    'give one external id'
    """
    name = str(_named(error))
    if type(error).__name__ == "MissingParameter" and name:
        return _missing(name, _example(error))
    if isinstance(error.__cause__, ValidationError):
        return _refused(name, error.__cause__, _example(error))
    if type(error).__name__ == "NoSuchOption":
        return _unknown(error)
    message: str = error.format_message()
    return message.replace("Value error, ", "").removeprefix("Invalid value: ")


def _unknown(error: Any) -> str:
    """An option that does not exist, with the one that was probably meant."""
    wrong = str(error.option_name)
    known = [name for one in error.ctx.command.params for name in (*one.opts, *one.secondary_opts)]
    options = [name for name in known if name.startswith("--")]
    named = wrong.replace("_", "-")
    other = OTHER_NAMES.get(named, "")
    close = [other] if other in options else difflib.get_close_matches(named, options, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"No such option: {wrong}{hint}"


def _missing(name: str, example: str) -> str:
    if name == APPLICATION:
        return f"{name} is missing; name it ({example}), or set {APP_VARIABLE}=shop:hw"
    return f"{name} is missing; for example {example}"


def _refused(name: str, error: ValidationError, example: str) -> str:
    first = error.errors()[0]
    rule = RULES.get(first["type"], first["msg"].replace("Value error, ", ""))
    told = rule.format_map(first.get("ctx", {})) if first["type"] in RULES else rule
    return f"{name} = {shown(first['input'])}: {clause(told)}; for example {example}"


def _named(error: Any) -> str:
    """The argument or option, as the help calls it."""
    parameter = getattr(error, "param", None)
    if parameter is None:
        return ""
    longest: str = max(parameter.opts, key=len)
    return longest if longest.startswith("-") else parameter.metavar or longest.upper()


def _example(error: Any) -> str:
    """The one that the command's help gives."""
    context = getattr(error, "ctx", None)
    found = EXAMPLE.search(context.command.help or "") if context else None
    path = context.command_path if context else "headway"
    return found[1] if found else f"{path} --help"
