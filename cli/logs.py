"""Log lines on standard error: for people, or one JSON object a line. What comes as ``extra`` follows the message."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any, TextIO

from cli.settings import Log

ACCESS = "magazin.access"  # whose messages are JSON objects
PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in PLAIN and not key.startswith("_")}


def _moment(record: logging.LogRecord) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"


class Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        extra = "".join(f" {key}={value}" for key, value in _extra(record).items())
        line = f"{_moment(record)} {record.levelname.lower()} {record.name}: {record.getMessage()}{extra}"
        # one record is one line, whatever a source or a client put into it
        line = line.replace("\r", "\\r").replace("\n", "\\n")
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class Objects(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            **(json.loads(record.getMessage()) if record.name == ACCESS else {"message": record.getMessage()}),
            **_extra(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def configure(log: Log, stream: TextIO | None = None) -> None:
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(Objects() if log.format == "json" else Lines())
    logging.basicConfig(handlers=[handler], level=log.level.upper(), force=True)
    logging.getLogger(ACCESS).disabled = not log.access
    for chatty in ("urllib3", "pyvips", "filelock", "cassandra"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, logging.getLogger().level))
