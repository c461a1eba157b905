"""``headway azolla keygen``: a secret for two deployments to share."""

import os
import secrets
from pathlib import Path
from typing import Annotated

import typer

from headway.cli.output import AsJson, done
from headway.errors import HeadwayError


def keygen(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Write it there, readable only for you."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a random secret; both deployments need the same one, under the same key id.

    Example: headway azolla keygen sales.key
    """
    secret = secrets.token_urlsafe(32)
    if file is None:
        done(secret, {"secret": secret}, as_json=as_json)
        return
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise HeadwayError(f"cannot write {file}: {error.strerror}; choose a new file") from None
    with os.fdopen(descriptor, "w") as opened:
        opened.write(secret + "\n")
    told = f"wrote {file}; copy it to the other deployment, over a channel you trust"
    done(told, {"file": str(file)}, as_json=as_json)
