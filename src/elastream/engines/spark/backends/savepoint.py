"""A savepoint: the state of a stopped pipeline, in one file.

The file is a tar archive of three kinds of members:

| member | what it is |
| --- | --- |
| `savepoint.json` | the format, whose state it is, its layout, and the digest of everything |
| `state` | what the state keeps: see `elastream.engines.spark.backends.kept` |
| `checkpoints/feeds/...` | where DataFrames that feed sources have stopped, as Spark notes it |

Checkpoints are in it if they are on this machine. It is read twice: first its digests are checked,
and only when all are right does anything come into being.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from elastream.engines.spark.backends import kept
from elastream.engines.spark.backends.base import Backend
from elastream.engines.spark.backends.checkpoints import FEEDS, folder_of
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.errors import BackendUnavailableError, EngineError, InvalidInputError

FORMAT = 1
HEAD, STATE = "savepoint.json", "state"
CHECKPOINTS = f"checkpoints/{FEEDS}"
_BLOCK = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Head:
    """What a savepoint says about itself."""

    pipeline: str
    layout: Mapping[str, OperatorLanes]
    digests: Mapping[str, str]
    """Of every other member, by its name."""

    def to_bytes(self) -> bytes:
        """As JSON, with its own digest."""
        told = {
            "format": FORMAT,
            "pipeline": self.pipeline,
            "layout": {name: astuple(of) for name, of in self.layout.items()},
            "digests": dict(self.digests),
        }
        return json.dumps({"head": told, "digest": _digest_of_head(told)}, indent=2).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Head:
        """What `to_bytes` made; an error if it is not whole."""
        told = json.loads(data)
        if told["digest"] != _digest_of_head(told["head"]):
            raise ValueError("its head was changed")
        head = told["head"]
        if head["format"] != FORMAT:
            raise InvalidInputError(
                f"it has format {head['format']}, and this elastream knows format {FORMAT}: "
                "use the elastream that made it"
            )
        # What was chained is missing in the first savepoints.
        layout = {name: OperatorLanes(*of) for name, of in head["layout"].items()}
        return cls(head["pipeline"], layout, head["digests"])


def export(backend: Backend, target: Path) -> Head:
    """Write the state of a stopped pipeline to a new file.

    Raises:
        InvalidInputError: There is no state, a driver uses it, or the file exists.
    """
    if backend.described() is None:
        raise InvalidInputError(
            f"{backend.url}: no run has used this state; name the state of a run"
        )
    if target.exists():
        raise InvalidInputError(f"{target} already exists: name a new file")
    if not target.parent.is_dir():
        raise InvalidInputError(f"{target}: name a file in a folder that exists")
    with _explained(str(target)), backend.own():
        # Workers of a driver that was killed may live a moment longer: their commits are refused.
        with backend.connect() as connection:
            connection.board.dismiss_after_a_death()
        described = backend.described()
        assert described is not None
        partial = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            head = _write(backend, *described, partial)
            os.link(partial, target)  # Unlike a rename, it never replaces a file.
        except FileExistsError:
            raise InvalidInputError(f"{target} already exists: name a new file") from None
        finally:
            partial.unlink(missing_ok=True)
    return head


def _write(
    backend: Backend, pipeline: str, layout: Mapping[str, OperatorLanes], target: Path
) -> Head:
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file, tempfile.TemporaryFile(dir=target.parent) as state:
        kept.write(backend.kept(), state)
        checkpoints = _checkpoint_files(backend)
        digests = {STATE: _digest(state)}
        for name, path in checkpoints.items():
            with path.open("rb") as content:
                digests[name] = _digest(content)
        head = Head(pipeline, layout, digests)
        with tarfile.open(fileobj=file, mode="w") as archive:
            _add(archive, HEAD, io.BytesIO(head.to_bytes()))
            _add(archive, STATE, state)
            for name, path in checkpoints.items():
                with path.open("rb") as content:
                    _add(archive, name, content)
        file.flush()
        os.fsync(file.fileno())
    return head


def read(source: Path, backend: Backend) -> Head:
    """Fill an empty state with what a savepoint has kept.

    Raises:
        InvalidInputError: The file is damaged, or the state is not empty or in use.
    """
    head = check(source)
    if backend.described() is not None:
        raise InvalidInputError(f"the state {backend.url} is not empty: name another one")
    with _explained(backend.url), backend.own():
        feeds = _feeds(backend)
        has_feeds = any(name != STATE for name in head.digests)
        if has_feeds and feeds is None:
            raise InvalidInputError(
                f"{source} has checkpoints of DataFrames, and they need a folder: "
                "name one with --checkpoint"
            )
        if has_feeds and feeds is not None and feeds.exists():
            raise InvalidInputError(f"{feeds} exists: remove it, or name another state")
        try:
            with tarfile.open(source, "r:") as archive:
                if has_feeds and feeds is not None:
                    _unpack(archive, feeds)
                member = archive.extractfile(STATE)
                assert member is not None
                backend.restore(head.pipeline, head.layout, kept.read(member))
        except BaseException:
            if has_feeds and feeds is not None:
                shutil.rmtree(feeds, ignore_errors=True)
            raise
    return head


@contextmanager
def _explained(place: str) -> Iterator[None]:
    """Tell what cannot be written, for instance because the disk is full, in one sentence."""
    try:
        yield
    except (OSError, BackendUnavailableError) as error:
        raise EngineError(f"{place} cannot be written, and nothing was: {error}") from error


def check(source: Path) -> Head:
    """What a savepoint says about itself, if it is whole."""
    try:
        with tarfile.open(source, "r:") as archive:
            first = archive.next()
            content = archive.extractfile(first) if first and first.name == HEAD else None
            if content is None:
                raise ValueError(f"it does not begin with {HEAD}")
            head = Head.from_bytes(content.read())
            found = dict(_digests(archive))
    except OSError as error:
        raise InvalidInputError(f"{source} cannot be read: {error}") from None
    except InvalidInputError as error:
        raise InvalidInputError(f"{source}: {error}") from None
    except (tarfile.TarError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInputError(f"{source} is not a savepoint, or it is damaged: {error}") from None
    if found != dict(head.digests):
        changed = found.keys() ^ head.digests.keys()
        changed |= {name for name in found if found[name] != head.digests.get(name)}
        raise InvalidInputError(f"{source} is damaged: {min(changed)} is not what was written")
    return head


def _digests(archive: tarfile.TarFile) -> Iterator[tuple[str, str]]:
    seen = {HEAD}
    for member in archive:
        if member.name == HEAD:
            continue
        if not member.isreg() or member.name in seen or not _is_ours(member.name):
            raise ValueError(f"{member.name} does not belong there")
        seen.add(member.name)
        content = archive.extractfile(member)
        assert content is not None
        yield member.name, _digest(content)


def _is_ours(name: str) -> bool:
    """Whether a member may be there: nothing outside of a folder that we make is ever written."""
    path = PurePosixPath(name)
    inside = name.startswith(f"{CHECKPOINTS}/") and ".." not in path.parts and "\\" not in name
    return name == STATE or (inside and str(path) == name)


def _unpack(archive: tarfile.TarFile, feeds: Path) -> None:
    feeds.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    feeds.mkdir(mode=0o700)
    for member in archive.getmembers():
        if not member.name.startswith(f"{CHECKPOINTS}/"):
            continue
        target = feeds / PurePosixPath(member.name).relative_to(CHECKPOINTS)
        target.parent.mkdir(parents=True, exist_ok=True)
        content = archive.extractfile(member)
        assert content is not None
        with target.open("xb") as file:
            shutil.copyfileobj(content, file)


def _feeds(backend: Backend) -> Path | None:
    """The folder of the checkpoints, if it is on this machine."""
    folder = folder_of(backend.checkpoints)
    return None if folder is None else folder / FEEDS


def _checkpoint_files(backend: Backend) -> dict[str, Path]:
    feeds = _feeds(backend)
    if feeds is None or not feeds.is_dir():
        return {}
    files: Iterable[Path] = sorted(feeds.rglob("*"))
    return {
        f"{CHECKPOINTS}/{path.relative_to(feeds).as_posix()}": path
        for path in files
        if path.is_file() and not path.is_symlink()
    }


def _add(archive: tarfile.TarFile, name: str, content: IO[bytes]) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = content.seek(0, os.SEEK_END), 0o600
    content.seek(0)
    archive.addfile(member, content)


def _digest(content: IO[bytes]) -> str:
    digest = hashlib.sha256()
    if content.seekable():
        content.seek(0)
    while block := content.read(_BLOCK):
        digest.update(block)
    return digest.hexdigest()


def _digest_of_head(told: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
