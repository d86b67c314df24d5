"""The cache of rendered images, shared by all processes of a data folder (linkmgr/qr/cache.py)."""

import os
import resource
import signal
from pathlib import Path

import pytest

from linkmgr.qr.cache import ImageCache


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "pictures"


def aged(folder: Path, tag: str, seconds: int) -> None:
    os.utime(folder / tag, (seconds, seconds))


def test_an_image_rendered_by_one_process_is_read_by_another(folder: Path) -> None:
    ImageCache(folder).put("a", b"drawn")
    assert ImageCache(folder).get("a") == b"drawn"
    assert ImageCache(folder).get("b") is None


def test_the_oldest_images_are_deleted_when_the_cache_is_full(folder: Path) -> None:
    made = ImageCache(folder, max_bytes=4 * 4096)  # the disk space of four small files
    (folder / "not one of ours").mkdir(parents=True)
    for number, tag in enumerate("abcdef"):
        made.put(tag, tag.encode())
        aged(folder, tag, number)
    assert [tag for tag in "abcdef" if made.get(tag)] == ["d", "e", "f"]
    made.put("g", b"x" * 5 * 4096)
    assert [path.name for path in folder.iterdir()] == ["not one of ours"]


def test_an_incomplete_image_is_rendered_again(folder: Path) -> None:
    made = ImageCache(folder)
    made.put("a", b"drawn")
    for left in (b"", b"\0", (folder / "a").read_bytes()[:-1], bytes(9)):
        (folder / "a").write_bytes(left)
        assert made.get("a") is None
    made.put("a", b"drawn")
    assert made.get("a") == b"drawn"


def test_a_read_only_folder_costs_only_the_rendering(folder: Path) -> None:
    folder.write_text("in its place")
    made = ImageCache(folder)
    made.put("a", b"drawn")
    assert made.get("a") is None


def test_an_image_that_does_not_fit_on_the_disk_leaves_no_file(folder: Path) -> None:
    made = ImageCache(folder)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        made.put("a", b"x" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert not list(folder.iterdir())


def test_no_other_file_remains_in_the_folder(folder: Path) -> None:
    made = ImageCache(folder)
    for _ in range(3):
        made.put("a", b"drawn")
    assert [path.name for path in folder.iterdir()] == ["a"]
