"""deploy/worker.py calls the application when a small body has arrived. A larger one is streamed to
the disk here, by a thread that waits for the client, so their number and duration are limited. A
proxy that buffers requests keeps slow clients away."""

import errno
import hashlib
import io
import re
import shutil
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, NamedTuple, cast

from flask import Response, after_this_request, current_app
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge
from werkzeug.formparser import FormDataParser

from linkmgr.core.errors import RETRY_SECONDS, AppError
from linkmgr.core.settings import settings
from linkmgr.core.web import auth, pool
from linkmgr.core.web import request as web_request

if TYPE_CHECKING:
    from werkzeug.formparser import TStreamFactory

MAX_FILE = 64 << 20  # bytes
DEADLINE = 120  # seconds for a large upload
_MAX_FRAMING = 64 << 10  # bytes of the other parts of a form
_BLOCK = 64 << 10
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]")
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Upload(NamedTuple):
    file: IO[bytes]  # at its start
    size: int
    name: str  # as the client sent it, or empty
    members: dict[str, str] = {}  # of the form
    digest: bytes = b""  # of the whole body


class _Body(web_request.Body):
    def __init__(self, source: IO[bytes] | None) -> None:
        super().__init__(web_request.current(), MAX_FILE + _MAX_FRAMING, "file_too_large", source)
        self.digest = hashlib.sha256()

    def read(self, size: int = -1, /) -> bytes:
        try:
            data = super().read(size)
        except TimeoutError:
            raise AppError("upload_timeout", deadline=DEADLINE) from None
        self.digest.update(data)
        return data


def receive() -> Upload:
    """Return the file of the request: a form's, or its body. It is read from the client only
    once."""
    environ = web_request.current().environ
    if "linkmgr.upload" not in environ:
        try:
            environ["linkmgr.upload"] = _receive()
        except OSError as error:
            if error.errno not in _NO_SPACE:
                raise
            current_app.logger.warning("no space for an upload in the data folder: %s", error.strerror)
            raise AppError("busy", seconds=RETRY_SECONDS) from error
    upload: Upload = environ["linkmgr.upload"]
    return upload


def _receive() -> Upload:
    request = web_request.current()
    is_large = request.content_length is None or request.content_length > web_request.MAX_BODY
    body = _Body(None if is_large else io.BytesIO(request.get_data()))
    if is_large:
        pool.take("uploads_busy")
        if connection := request.environ.get("gunicorn.socket"):  # of deploy/worker.py
            connection.limit(DEADLINE)
    file, name, members = (
        _parse_form(body) if request.mimetype == "multipart/form-data" else (_copy(body), "", {})
    )
    if is_large:
        auth.check_again()
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    if size > MAX_FILE:
        raise AppError("file_too_large")
    if not size:
        raise AppError("file_missing")
    return Upload(file, size, name, members, body.digest.digest())


def _temporary(**_: object) -> IO[bytes]:
    folder = settings().folder / "uploads"
    folder.mkdir(parents=True, exist_ok=True)
    file = TemporaryFile(dir=folder)  # noqa: SIM115 - closed after the view

    @after_this_request
    def close(response: Response) -> Response:
        file.close()
        return response

    return file


def _copy(body: _Body) -> IO[bytes]:
    file = _temporary()
    shutil.copyfileobj(body, file, _BLOCK)
    return file


def _parse_form(body: _Body) -> tuple[IO[bytes], str, dict[str, str]]:
    request = web_request.current()
    parser = FormDataParser(
        stream_factory=cast("TStreamFactory", _temporary),
        max_form_memory_size=_MAX_FRAMING + _BLOCK,  # the parser counts the block that it reads, too
        max_form_parts=20,
        silent=False,
    )
    try:
        stream = cast("IO[bytes]", body)
        _, form, files = parser.parse(
            stream, request.mimetype, request.content_length, request.mimetype_params
        )
    except RequestEntityTooLarge:
        raise AppError("form_too_large") from None
    except ValueError:
        raise BadRequest from None
    file = next(iter(files.values()), None)
    if file is None:
        raise AppError("file_missing")
    name = _UNPRINTABLE.sub(" ", file.filename or "").encode("utf-8", "replace").decode()
    return file.stream, name.strip()[:255], form.to_dict()
