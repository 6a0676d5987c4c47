"""The static index over HTTP, for a try or a small team (PEP 503, and PEP 691's negotiation)."""

import socket
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import uvicorn
from simple_repository.content_negotiation import Format, select_response_format
from simple_repository.errors import UnsupportedSerialization
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from scripts.errors import UsageError
from scripts.workspace import Workspace

if TYPE_CHECKING:
    from starlette.types import Scope

LOOPBACK = "127.0.0.1"
_FOR_EVER = "public, max-age=31536000, immutable"  # a published name has one content


class Static(StaticFiles):
    """The folder of an index. Pages are always asked for anew, or clients miss new versions."""

    def __init__(self, folder: Path) -> None:
        super().__init__(directory=folder, html=True)

    async def get_response(self, path: str, scope: "Scope") -> Response:
        parts = PurePosixPath(path).parts
        if any(part.startswith(".") for part in parts):
            raise HTTPException(404)  # locks, and what is being written
        chosen = None
        if parts[:1] == ("simple",) and scope["path"].endswith("/"):
            chosen = _negotiated(Headers(scope=scope).get("accept", ""))
            if chosen is Format.JSON_V1:
                path = f"{path}/index.json"
        response = await super().get_response(path, scope)
        if path.endswith((".whl", ".metadata")):
            response.headers["cache-control"] = _FOR_EVER
            response.headers["content-type"] = "application/octet-stream"
        else:
            response.headers["cache-control"] = "no-cache"
        if chosen is not None and response.status_code == 200:
            response.headers["content-type"] = _types[chosen]
            response.headers["vary"] = "Accept"
        return response


_types = {
    Format.JSON_V1: Format.JSON_V1.value,
    Format.HTML_V1: Format.HTML_V1.value,
    Format.HTML_LEGACY: "text/html; charset=utf-8",
}


def _negotiated(accept: str) -> Format:
    try:
        return select_response_format(accept)
    except (UnsupportedSerialization, ValueError) as error:
        raise HTTPException(406, "neither PEP 691's JSON nor HTML is accepted") from error


def serve(folder: Path, workspace: Workspace, *, host: str = LOOPBACK, port: int = 8000) -> None:
    """Serve `folder` until Ctrl-C. Port 0 takes a free one; what it is, is said.

    Raises UsageError where there is no index, or the address cannot be taken.
    """
    listening, server = ready(folder, host=host, port=port)
    with listening:
        workspace.say(f"{address(listening)} serves {folder}; Ctrl-C ends it")
        server.run(sockets=[listening])


def ready(folder: Path, *, host: str, port: int) -> tuple[socket.socket, uvicorn.Server]:
    """A server of `folder` that is still to be run, and the socket that is its own already.

    Raises UsageError as serve() does.
    """
    if not (folder / "simple" / "index.html").is_file():
        raise UsageError(f"there is no index in {folder}", then="nox -s publish")
    try:
        listening = socket.create_server((host, port))
    except OSError as error:
        raise UsageError(
            f"{host}:{port} cannot be served at: {error.strerror}", then="nox -s serve -- --port 0"
        ) from error
    app = Starlette(routes=[Mount("/", Static(folder))])
    return listening, uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))


def address(listening: socket.socket) -> str:
    """The URL of simple/ on a socket."""
    host, port = listening.getsockname()[:2]
    return f"http://{host}:{port}/simple/"
