"""Folders by path or URL: on this machine, on a shared file system, or in object storage through fsspec.

A file appears whole or not at all: locally by a rename, in object storage because an upload that is cut short leaves
nothing. Credentials and endpoints come from where the libraries of the store look for them, such as AWS_PROFILE and
AWS_ENDPOINT_URL; nothing of them is written or sent anywhere.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from gait.errors import GaitError, install_hint, os_errors
from gait.io.atomic import atomic_path

_URL = re.compile(r"^([a-z][a-z0-9+.-]+):/+")
_PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs", "az": "adlfs"}
"""What fsspec needs beside itself, by protocol."""


def location(path: str | Path) -> str:
    """A path as it is, a URL with both slashes: a Path makes one of them. `file:` is a path."""
    text = _URL.sub(r"\1://", str(path))
    return "/" + text.removeprefix("file://").lstrip("/") if text.startswith("file://") else text


def is_remote(path: str | Path) -> bool:
    """Whether this is a URL, so that it takes fsspec to read it."""
    return "://" in location(path)


def joined(folder: str | Path, name: str) -> str:
    """The place of a file in a folder."""
    return f"{location(folder).rstrip('/')}/{name}" if is_remote(folder) else str(Path(folder) / name)


class Storage:
    """A folder by path or URL. Names in it may have slashes."""

    def __init__(self, place: str | Path) -> None:
        """Take a folder; nothing is made or read yet."""
        self.place = location(place)
        self.remote = is_remote(place)
        self._fs: Any = None
        if self.remote:
            self._fs, self._root = _file_system(self.place)

    def __str__(self) -> str:
        return self.place

    def read(self, name: str) -> bytes:
        """The contents of a file.

        Raises:
            FileNotFoundError: if there is none.
        """
        if not self.remote:
            return (Path(self.place) / name).read_bytes()
        with _refusals(f"cannot read {joined(self.place, name)}"):
            data: bytes = self._fs.cat_file(f"{self._root}/{name}")
            return data

    def write(self, name: str, data: bytes) -> None:
        """Write a file, whole or not at all; folders on the way to it are made."""
        if not self.remote:
            path = Path(self.place) / name
            with os_errors(f"cannot write {path}"):
                path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_path(path) as temporary:
                temporary.write_bytes(data)
            return
        with _refusals(f"cannot write {joined(self.place, name)}", reading=False):
            self._fs.pipe_file(f"{self._root}/{name}", data)

    def names(self, folder: str = "") -> list[str]:
        """The files in it, or in a folder of it, in order; those of folders further down are left out."""
        if not self.remote:
            where = Path(self.place) / folder
            return sorted(path.name for path in where.iterdir() if path.is_file()) if where.is_dir() else []
        with _refusals(f"cannot list {joined(self.place, folder)}"):
            self._fs.invalidate_cache()
            try:
                found = self._fs.ls(f"{self._root}/{folder}".rstrip("/"), detail=True)
            except FileNotFoundError:
                return []
            return sorted(one["name"].rsplit("/", 1)[-1] for one in found if one["type"] == "file")

    def tag(self, name: str) -> str:
        """What the store says about a file to tell its versions apart; empty where there is none."""
        with suppress(FileNotFoundError), _refusals(f"cannot read {joined(self.place, name)}"):
            about = self._fs.info(f"{self._root}/{name}")
            return str(about.get("ETag") or f"{about['size']}-{about.get('mtime', '')}")
        return ""

    def remove(self, names: Sequence[str]) -> None:
        """Remove files; one that is not there is no error. A folder that they leave empty goes as well."""
        for name in names:
            with suppress(FileNotFoundError):
                if self.remote:
                    with _refusals(f"cannot remove {joined(self.place, name)}"):
                        self._fs.rm_file(f"{self._root}/{name}")
                else:
                    (Path(self.place) / name).unlink()
        for folder in {Path(self.place) / name for name in names if "/" in name} if not self.remote else ():
            with suppress(OSError):
                folder.parent.rmdir()


@contextmanager
def local_copy(path: str | Path, beside: Sequence[str] = ()) -> Iterator[Path]:
    """A file as one of this machine, under its own name, for as long as the block runs.

    Args:
        path: a path, which is given back as it is, or a URL, whose file is fetched.
        beside: names of files in the same folder that go with it; those that are not there are left out.
    """
    if not is_remote(path):
        yield Path(path)
        return
    folder, _, name = location(path).rpartition("/")
    storage = Storage(folder)
    with tempfile.TemporaryDirectory(prefix="gait-") as here:
        try:
            Path(here, name).write_bytes(storage.read(name))
        except FileNotFoundError:
            raise GaitError(f"there is no file {location(path)}: check the name") from None
        for other in beside:
            with suppress(FileNotFoundError):
                Path(here, other).write_bytes(storage.read(other))
        yield Path(here, name)


def _file_system(url: str) -> tuple[Any, str]:
    protocol = url.partition("://")[0]
    package = _PACKAGES.get(protocol, "fsspec")
    try:
        import fsspec

        with _refusals(f"cannot open {url}"):
            fs, root = fsspec.core.url_to_fs(url)
            return fs, root.rstrip("/")
    except ImportError:
        install = install_hint("cluster") if package in ("s3fs", "fsspec") else f"pip install {package}"
        raise GaitError(f"{protocol}:// needs {package}: run `{install}`") from None


@contextmanager
def _refusals(what: str, reading: bool = True) -> Iterator[None]:
    """Whatever a store refuses is a GaitError: libraries of stores have errors of their own, which are no OSError."""
    try:
        yield
    except (ImportError, GaitError):
        raise
    except Exception as error:
        if reading and isinstance(error, FileNotFoundError):
            raise
        raise GaitError(f"{what}: {' '.join(str(error).split()) or type(error).__name__}") from None
