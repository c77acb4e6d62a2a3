"""Who may do what with files over HTTP."""

from app.options import Options
from tests.app_files.setting import DATA, put


def test_writes_need_a_token_and_delivery_none(stock):
    app, token = stock.app(Options()), stock.tokens.issue("test")
    allowed = {"Authorization": f"Bearer {token}"}
    app.put("/files/fs/a", DATA, status=403)
    wrong = token[:-1] + ("1" if token.endswith("0") else "0")
    app.put("/files/fs/a", DATA, headers={"Authorization": f"Bearer {wrong}"}, status="4*")
    record = app.put("/files/fs/a", DATA, headers=allowed, status=201).json
    by_id = f"/files/fs/id/{record['id']}"
    for path in ("/files/fs/a", by_id):
        assert app.get(path).body == DATA
        app.delete(path, status=403)
        app.patch_json(path, {"metadata": 1}, status=403)
    app.post("/files/fs/a", DATA, status=403)
    for path in ("/files/fs", f"{by_id}/record"):
        app.get(path, status=403)
        app.get(path, headers=allowed, status=200)
    assert stock.app(Options(open_lists=True)).get("/files/fs").json == [record]
    app.delete(by_id, headers=allowed, status=204)


def test_other_origins_may_read_and_nothing_else(app):
    record = put(app, "a/b")
    for path in ("/files/fs/a/b", f"/files/fs/id/{record['id']}", "/files/fs/unknown"):
        answer = app.get(path, status="*")
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        answer = app.options(path, status="*")
        assert answer.headers["Access-Control-Allow-Methods"] == "GET, HEAD, OPTIONS"
    for answer in (
        app.get("/files/fs"),
        app.get(f"/files/fs/id/{record['id']}/record"),
        app.put("/files/fs/x", b""),
        app.delete("/files/fs/x"),
    ):
        assert "Access-Control-Allow-Origin" not in answer.headers
