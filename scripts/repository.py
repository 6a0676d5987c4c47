"""A package repository by the name that the user's settings have for it: address, what it lists.

The settings are twine's: ~/.pypirc, TWINE_REPOSITORY_URL, TWINE_USERNAME, TWINE_PASSWORD, keyring.
"""

import base64
import hashlib
import re
import ssl
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx
from simple_repository import parser
from simple_repository.content_negotiation import Format
from simple_repository.model import File

from scripts.errors import PublishError, UsageError
from scripts.workspace import Workspace

_ACCEPT = f"{Format.JSON_V1.value}, {Format.HTML_V1.value};q=0.2, {Format.HTML_LEGACY.value};q=0.1"
_PAGES = ("+simple/", "simple/")  # devpi's place below the address of uploads, and pypiserver's
_ANSWER = 30  # seconds that a server may take to begin to answer
_HOPS = 4
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[ \t]+$", re.MULTILINE)
_WIDE = "70000"  # columns: more than a line of HTTP may have (http.client, 65,536)
_WHY = {
    401: "the user or the password is wrong, or none is set",
    403: "this user may not do that",
    404: "there is nothing at this address",
    409: "it has a file of that name already",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """`upload` is the address that takes files; without `user` and `password` where none is set.

    `by_address` says that it comes from TWINE_REPOSITORY_URL, not from a section.
    """

    name: str
    upload: str
    config_file: Path
    user: str | None
    password: str | None = field(repr=False)
    ca_file: str | None = None
    simple: str | None = None
    by_address: bool = False

    def redact(self, text: str) -> str:
        """`text` without this repository's credentials, in any form that a server may echo.

        Terminal codes and padding go first: codes could stand in the middle of a password.
        """
        text = _CODES.sub("", text)
        if not self.password:
            return text
        pair = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        return text.replace(self.password, "***").replace(pair, "***")

    def listed(self, project: str) -> Mapping[str, File]:
        """The files that it lists for `project`, by name; their links are whole.

        Raises PublishError where it cannot be read, or is no package index.
        """
        candidates = [self.simple] if self.simple else self._candidates()
        with self._client() as client:
            for base in candidates:
                if (page := self._get(client, f"{base}{project}/")) is not None:
                    return {file.filename: file for file in _parse(page, project)}
            for base in candidates:
                if self._get(client, base) is not None:
                    return {}
        raise PublishError(
            f"{self.name}: no package index at {' or '.join(candidates)}",
            then=f"nox -s publish -- --to {self.name} --simple URL (the address that pip uses)",
        )

    def sha256(self, file: File) -> str:
        """The SHA-256 of a listed file: as the page has it, else of the bytes themselves."""
        if "sha256" in file.hashes:
            return file.hashes["sha256"].lower()
        digest = hashlib.sha256()
        try:
            with self._client() as client, client.stream("GET", file.url) as answer:
                self._refuse(answer)
                for chunk in answer.iter_bytes():
                    digest.update(chunk)
        except httpx.TransportError as error:
            raise self._unreachable(file.url, error) from None
        return digest.hexdigest()

    def _candidates(self) -> list[str]:
        base = self.upload.rstrip("/")
        return [f"{base.removesuffix('/legacy')}/{page}" for page in _PAGES]

    def _client(self) -> httpx.Client:
        given = (self.user, self.password) if self.user and self.password else None
        verify = ssl.create_default_context(cafile=self.ca_file) if self.ca_file else True
        return httpx.Client(auth=given, timeout=_ANSWER, verify=verify, headers={"Accept": _ACCEPT})

    def _get(self, client: httpx.Client, url: str) -> httpx.Response | None:
        """The page at `url`, None where there is none. Credentials stay with their host."""
        for _ in range(_HOPS):
            try:
                answer = client.get(url)
            except httpx.TransportError as error:
                raise self._unreachable(url, error) from None
            if not answer.is_redirect:
                break
            url = urljoin(url, answer.headers.get("location", ""))
            if urlsplit(url)[:2] != urlsplit(self.upload)[:2]:
                return None  # pypiserver sends the client on to another index
        if answer.status_code == 404 or answer.is_redirect:
            return None
        self._refuse(answer)
        return answer

    def _refuse(self, answer: httpx.Response) -> None:
        if answer.status_code != 200:
            why = _WHY.get(answer.status_code, "the server's own log will say why")
            raise PublishError(
                f"{self.name}: {answer.request.url} answered {answer.status_code}: {why}",
                then=f"check [{self.name}] in {self.config_file}, and run this again",
            )

    def _unreachable(self, url: str, error: httpx.TransportError) -> PublishError:
        what = "no answer" if isinstance(error, httpx.TimeoutException) else self.redact(str(error))
        return PublishError(
            f"{self.name}: {url} cannot be read: {what}",
            then="check the address and the network, and run this again",
        )


def _parse(page: httpx.Response, project: str) -> list[File]:
    kind = page.headers.get("content-type", "").partition(";")[0]
    try:
        if kind == Format.JSON_V1.value:
            found = parser.parse_json_project_page(page.text)
        elif kind in (Format.HTML_V1.value, Format.HTML_LEGACY.value):
            found = parser.parse_html_project_page(page.text, project)
        else:
            raise ValueError(f"its type is {kind!r}")
    except (ValueError, KeyError, TypeError) as error:
        raise PublishError(f"{page.request.url} is no page of a package index: {error}") from error
    base = str(page.request.url)
    return [_whole(file, base) for file in found.files]


def _whole(file: File, base: str) -> File:
    return File(filename=file.filename, url=urljoin(base, file.url), hashes=file.hashes)


def named(name: str, workspace: Workspace, *, simple: str | None = None) -> Repository:
    """The repository that the user's settings know as `name`.

    `simple` is where pip finds it, if not below the address of uploads. Raises UsageError where
    the settings do not know it, or it is the public index.
    """
    from twine import auth, exceptions, utils  # noqa: PLC0415 - slow, and for this verb alone

    environment = workspace.environment
    config_file = Path(environment.get("HOME", "/")) / ".pypirc"
    config, by_address = _section(name, config_file, environment)
    address = config.get("repository") or ""
    if address.startswith((utils.DEFAULT_REPOSITORY, utils.TEST_REPOSITORY)):
        raise UsageError(f"{name} is the public index, which takes no local versions")
    for each in (address, simple or ""):
        if "@" in urlsplit(each).netloc:
            raise UsageError(
                f"{name}: an address holds a user or a password",
                then=f"give them lines of their own in {config_file}, or leave them to keyring",
            )
    resolver = auth.Private(
        config,
        auth.CredentialInput(environment.get("TWINE_USERNAME"), environment.get("TWINE_PASSWORD")),
    )
    try:
        user, password = resolver.username, resolver.password
    except exceptions.NonInteractive:
        user = password = None
    return Repository(
        name=name,
        upload=address,
        config_file=config_file,
        user=user,
        password=password,
        ca_file=environment.get("TWINE_CERT") or config.get("ca_cert"),
        simple=f"{simple.rstrip('/')}/" if simple else None,
        by_address=by_address,
    )


def _section(
    name: str, config_file: Path, environment: Mapping[str, str]
) -> tuple[dict[str, str | None], bool]:
    """What twine knows of a repository, and whether the environment has its address."""
    from twine import exceptions, utils  # noqa: PLC0415 - as above

    url = environment.get("TWINE_REPOSITORY_URL")
    try:
        known = utils.get_config(str(config_file)) if config_file.exists() else {}
        if "repository" not in known.get(name, {}) and url:
            return utils.get_repository_from_config(str(config_file), name, url), True
        return known[name] | {"repository": known[name]["repository"]}, False
    except (KeyError, exceptions.TwineException) as error:
        what = f": {error}" if isinstance(error, exceptions.TwineException) else ""
        raise UsageError(
            f"{config_file} has no section for {name}, listed in index-servers{what}",
            then=f"add `[distutils]`, `index-servers = {name}`, `[{name}]` and "
            "`repository = https://...` there, or set TWINE_REPOSITORY_URL",
        ) from error
    except Exception as error:  # noqa: BLE001 - a parser's message may quote a password
        raise UsageError(
            f"{config_file} cannot be read ({type(error).__name__})", then=f"edit {config_file}"
        ) from None


def twine(repository: Repository, wheel: Path) -> list[str | Path]:
    """The command that uploads `wheel`; credentials are not in it: twine looks them up itself."""
    return [
        *(sys.executable, "-m", "twine", "--no-color", "upload"),
        *("--non-interactive", "--disable-progress-bar", "--repository", repository.name),
        *("--config-file", repository.config_file, wheel),
    ]


def twines(repository: Repository, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment in which twine takes this repository, and not another that it names.

    Its lines are not folded there: redact() would not find what is cut in two.
    """
    left_out = {"TWINE_REPOSITORY"} | (set() if repository.by_address else {"TWINE_REPOSITORY_URL"})
    kept = {name: value for name, value in environment.items() if name not in left_out}
    return kept | {"COLUMNS": _WIDE, "TERM": "xterm"}
