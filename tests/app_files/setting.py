"""What the tests of files over HTTP put, how, and what they read of a list."""

from urllib.parse import quote

KEYS = {
    "id",
    "filename",
    "length",
    "chunkSizeBytes",
    "sha256",
    "status",
    "startedAt",
    "finishedAt",
    "deletedAt",
    "metadata",
}
DATA = bytes(range(256)) * 40


def put(app, name, data=DATA, **headers):
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return app.put(f"/files/fs/{quote(name)}", data, headers=fields, status=201).json


def names(answer):
    return [one["filename"] for one in answer.json]
