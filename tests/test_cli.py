"""The command line: what each command prints, and the status it ends with."""

import importlib.util
import json
import logging
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner

from app.viewerfiles import bundle
from cli import sample
from cli.files import files
from cli.main import COMMANDS, main
from storage.directory import DirectoryBlobs
from tests.source import Source, http

ROOT = Path(__file__).parent.parent
MODULES = {"iiif-prezi3": "iiif_prezi3", "cassandra-driver": "cassandra"}


@pytest.fixture
def magazin(tmp_path):
    """Run a command in this process on a folder of its own: exit status, standard output, standard error."""
    before = logging.root.handlers[:], logging.root.level

    def run(*arguments, text=None, **environ):
        variables = {f"MAGAZIN_{name.upper()}": value for name, value in environ.items()}
        variables.setdefault("MAGAZIN_FETCH_ALLOW_NETWORKS", "127.0.0.0/8")
        done = CliRunner().invoke(
            main, [*arguments, "--data", str(tmp_path / "data")], input=text, env=variables, prog_name="magazin"
        )
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.stdout, done.stderr

    yield run
    logging.root.handlers[:], logging.root.level = before


@pytest.fixture
def source():
    answers = {
        "/a": http(b"a" * 3000, Content_Type="application/x-a"),
        "/b": http(b"b" * 3000, Content_Type="application/x-b"),
        "/gone": http(b"gone", status="404 Not Found"),
        "/down": http(b"later", status="503 Service Unavailable"),
    }
    source = Source(answers)
    yield source
    source.close()


def lines(source, *targets):
    return "".join(source.url(target) + "\n" for target in targets)


def as_json(answer):
    return json.loads(answer[1])


def test_the_page_of_commands_is_the_present_one():
    assert (ROOT / "docs/commands.md").read_text(encoding="utf-8") == sample.commands()


@pytest.mark.parametrize("name", [*COMMANDS, *(f"files {name}" for name in files.commands)])
def test_each_command_has_a_help_with_examples(name):
    done = CliRunner().invoke(main, [*name.split(), "--help"], prog_name="magazin")
    assert done.exit_code == 0
    assert f"magazin {name}" in done.stdout.partition("Examples:")[2]
    if name != "files":
        assert "--data PATH" in done.stdout
        assert "--config PATH" in done.stdout


def test_tokens_are_shown_once_listed_and_revoked(magazin):
    status, text, _ = magazin("token", "--label", "portal")
    assert (status, text[:4]) == (0, "mgz_")
    other = as_json(magazin("token", "--json"))["token"]
    listed = as_json(magazin("token", "--list", "--json"))
    assert [one["label"] for one in listed] == ["portal", ""]
    assert text.strip().split("_")[2] not in json.dumps(listed)
    assert magazin("token", "--list")[1].splitlines()[0].endswith("  portal")
    name = other.split("_")[1]
    assert magazin("token", "--revoke", name)[:2] == (0, f"revoked {name}\n")
    status, _, err = magazin("token", "--revoke", name)
    assert (status, err) == (1, f"Error: no token '{name}'; magazin token --list shows them\n")


def test_ingest_waits_and_tells_and_can_be_run_again(magazin, source, tmp_path):
    list_ = tmp_path / "urls.txt"
    list_.write_text(lines(source, "/a", "/b"))
    assert magazin("ingest", str(list_), "--context", "c")[:2] == (
        0,
        "2 entries: 2 stored, 0 were there already, 0 to be tried again, 0 failed, 0 invalid\n",
    )
    again = as_json(magazin("ingest", str(list_), "--context", "c", "--json"))
    assert (again["all_well"], again["present"], again["stored"], again["failed"]) == (True, 2, 0, [])
    assert source.targets == ["/a", "/b"] or source.targets == ["/b", "/a"]


def test_ingest_ends_with_1_when_not_all_went_well(magazin, source):
    status, out, _ = magazin("ingest", "-", text=lines(source, "/a", "/gone", "/down"))
    assert status == 1
    assert "line 2: ERROR http://" in out
    assert "line 3: RETRY http://" in out
    assert out.endswith("3 entries: 1 stored, 0 were there already, 1 to be tried again, 1 failed, 0 invalid\n")


def test_ingest_takes_tables_and_objects_and_tells_bad_lines(magazin, source):
    table = f"url,context\n{source.url('/a')},one\n"
    assert magazin("ingest", "-", text=table)[0] == 0
    objects = json.dumps({"url": source.url("/a"), "context": "two"}) + "\n{}\n"
    found = as_json(magazin("ingest", "-", "--json", text=objects))
    assert (found["present"], found["invalid"]) == (1, 1)
    assert found["failed"] == [
        {"line": 2, "url": "", "context": "default", "status": "INVALID", "reason": "there is no url"}
    ]


def test_ingest_reads_files_and_folders_only_when_allowed(magazin, tmp_path):
    folder = tmp_path / "scans"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"a text that is no list of URLs")
    (folder / "b.bin").write_bytes(bytes(range(256)) * 20)
    status, out, err = magazin("ingest", str(folder))
    assert (status, out) == (1, "")
    how = "files and folders themselves are taken in with --allow-files"
    assert err == f"Error: {folder}: a folder; {how}\n"
    assert magazin("ingest", str(folder / "b.bin"))[::2] == (
        1,
        f"Error: {folder / 'b.bin'}: no list of URLs; {how}\n",
    )
    assert magazin("ingest", "-", text=f"{folder}/a.txt\n")[0] == 1
    assert "2 stored" in magazin("ingest", str(folder), "--allow-files", "--context", "scans")[1]
    assert "1 were there already" in magazin("ingest", str(folder / "b.bin"), "--allow-files", "--context", "scans")[1]
    listed = magazin("ingest", "-", "--allow-files", "--context", "scans", text=f"{folder}/a.txt\n")[1]
    assert "1 were there already" in listed
    (folder / "c.txt").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_bytes(b"not of this folder")
    status, out, _ = magazin("ingest", str(folder), "--allow-files", "--context", "scans")
    assert status == 1
    assert "3 entries: 0 stored, 2 were there already, 0 to be tried again, 0 failed, 1 invalid" in out
    assert as_json(magazin("check", "--json"))["originals"] == 2


def test_ingest_of_a_list_that_is_not_there(magazin):
    assert magazin("ingest", "nowhere.txt")[::2] == (1, "Error: nowhere.txt: No such file or directory\n")


def test_status_of_queue_and_failures(magazin, source):
    magazin("ingest", "-", text=lines(source, "/a", "/gone", "/down"))
    found = as_json(magazin("status", "--json", "--failures"))
    assert found["queue"]["total"] == 1
    (host,) = found["queue"]["hosts"]
    assert (host["host"], host["later"], host["failing"]) == (f"127.0.0.1:{source.port}", 1, 1)
    assert host["oldest"][:2] == "20"
    assert found["originals"] == {"OK": 1, "ERROR": 1, "RETRY": 1}
    assert found["bytes"] == 3000
    assert found["failures"]["outcomes"] == {"HTTP_ERROR": 1}
    assert {one["http_status"] for one in found["failed"]} == {404, 503}
    assert set(as_json(magazin("status", "--json", "--queue"))) == {"queue"}
    text = magazin("status")[1]
    assert "queue: 1 at 1 hosts\n" in text
    assert "originals: 1 ERROR, 1 OK, 1 RETRY; 3000 bytes\n" in text


def test_retry_queues_again(magazin, source):
    magazin("ingest", "-", "--context", "c", text=lines(source, "/gone", "/down"))
    assert magazin("retry")[0] == 2
    assert magazin("retry", "--host", f"127.0.0.1:{source.port}", "--outcome", "HTTP_ERROR")[1] == "queued again: 2\n"
    assert as_json(magazin("status", "--json"))["queue"]["hosts"][0]["due"] == 2
    assert as_json(magazin("retry", "--context", "c", "--json")) == {"queued": 0, "local": 0}


def test_rm_and_sweep_leave_nothing(magazin, source, tmp_path):
    magazin("ingest", "-", "--context", "c", text=lines(source, "/a", "/b"))
    assert magazin("rm")[0] == 2
    for name, value in (("--context", "a/b"), ("--reference", "../x")):
        status, _, err = magazin("rm", "--context", "c", name, value)
        assert (status, value in err) == (2, True)
    assert as_json(magazin("check", "--json"))["references"] == 2  # a mistyped command removes nothing
    assert magazin("rm", "--context", "c") == (0, "", "")
    would = as_json(magazin("sweep", "--grace", "0s", "--dry-run", "--full", "--json"))
    assert (would["dry_run"], would["originals"]) == (True, 2)
    assert magazin("sweep")[1].startswith(
        "removed: 0 originals (0 bytes), 0 unfinished tries, 2 references of 1 contexts"
    )
    found = as_json(magazin("sweep", "--grace", "0s", "--json"))
    assert (found["originals"], found["bytes"]) == (2, 6000)
    checked = as_json(magazin("check", "--json"))
    assert (checked["sound"], checked["originals"], checked["references"]) == (True, 0, 0)
    assert [path for path in (tmp_path / "data/blobs").rglob("*") if path.is_file()] == []


def test_check_ends_with_1_and_names_the_damage(magazin, source, tmp_path):
    magazin("ingest", "-", text=lines(source, "/a"))
    assert magazin("check")[1].endswith("nothing is wrong\n")
    (found,) = DirectoryBlobs(tmp_path / "data/blobs").scan()
    (data,) = [path for path in (tmp_path / "data/blobs").rglob("*") if path.is_file() and path.stat().st_size == 3000]
    data.chmod(0o600)
    data.write_bytes(b"a" * 1500 + b"b" + b"a" * 1499)
    status, out, _ = magazin("check")
    assert status == 1
    assert f"damaged: blob {found.owner}/{found.attempt}, part 0" in out
    assert out.endswith("wrong: 1 damaged\n")
    assert as_json(magazin("check", "--json"))["sound"] is False
    assert magazin("check", "--quick")[0] == 0
    assert magazin("retry", "--damaged") == (0, "queued again: 1\n", "")


def test_doctor_knows_versions_formats_and_what_is_missing(magazin):
    status, out, err = magazin("doctor", "--json")
    found = {one["name"]: one for one in json.loads(out)["findings"]}
    assert status == 0, err
    assert json.loads(out)["healthy"] is True
    for name in (
        "python",
        "sqlite of the store",
        "libvips",
        "libheif",
        "libwebp",
        "urllib3",
        "storage",
        "cache",
        "disk",
    ):
        assert found[name]["state"] == "ok", found[name]
    for name, extra in (
        *(("imagecodecs", "images"), ("pypdfium2", "images"), ("iiif-prezi3", "images")),
        *(("cassandra-driver", "cassandra"), ("granian", "granian")),
    ):
        held = found[f"{name} ({extra})"]
        if importlib.util.find_spec(MODULES.get(name, name)):
            assert (held["state"], held["text"]) == ("ok", metadata.version(name))
        else:
            assert (held["state"], held["remedy"]) == ("warn", f"pip install 'magazin[{extra}]'")
    assert not [name for name in found if "browsers" in name]
    assert found["viewer"]["state"] == ("ok" if bundle().links.scripts else "warn")
    assert "jpeg" in found["formats read"]["text"]
    assert "heic" in found["formats read"]["text"]
    assert "svg" not in found["formats read"]["text"]
    assert "svg" in magazin("doctor", images_svg="true")[1]
    assert "webp" in found["formats written"]["text"]
    assert found["access"] == {
        "name": "access",
        "state": "warn",
        "text": "there is no token, so that nobody can write over HTTP",
        "remedy": "magazin token",
    }
    magazin("token")
    assert "1 tokens" in magazin("doctor")[1]
    assert "WARN access" in magazin("doctor", access_open_writes="loopback")[1]


def test_doctor_tells_a_store_that_cannot_be_opened(magazin, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/store.sqlite").write_bytes(b"no database at all" * 1000)
    status, out, _ = magazin("doctor")
    assert status == 1
    assert "BAD  storage" in out


def test_settings_in_force_with_secrets_hidden(magazin):
    out = magazin("settings", "--set", "cache.size=3 GiB", cassandra_password="hush")[1]
    assert 'size = "3 GiB"' in out
    assert 'password = "…"' in out
    assert "hush" not in out
    assert as_json(magazin("settings", "--json"))["worker"]["threads"] == "4"


@pytest.mark.parametrize(
    "arguments, environ, message",
    [
        (["status", "--set", "cache.size"], {}, "--set wants SECTION.KEY=VALUE, not 'cache.size'"),
        (
            ["status", "--set", "cache.sizes=1"],
            {},
            "unknown setting [cache] sizes; the nearest known one is [cache] size",
        ),
        (["sweep", "--grace", "soon"], {}, "[sweep] grace wants a duration"),
        (["status", "--config", "/nowhere.toml"], {}, "/nowhere.toml: No such file or directory"),
        (["status"], {"storage_plugin": "tape"}, "[storage] plugin: no storage plugin 'tape'; there are: "),
        (["status"], {"cache_sizee": "1"}, "the nearest known one is MAGAZIN_CACHE_SIZE"),
    ],
)
def test_wrong_settings_are_one_line_and_status_2(magazin, arguments, environ, message):
    status, out, err = magazin(*arguments, **environ)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("Error: ")
    assert message in err


def test_a_store_that_is_out_of_reach_is_status_3(magazin, tmp_path):
    (tmp_path / "data/store.sqlite").mkdir(parents=True)
    status, out, err = magazin("status")
    assert (status, out, err.count("\n")) == (3, "", 1)
    assert err.startswith("Error: the store: ")


def test_a_data_folder_that_cannot_be_made_is_status_3(magazin, tmp_path):
    (tmp_path / "data").write_text("a file")
    for command in ("status", "check", "token"):
        status, out, err = magazin(command)
        assert (status, out) == (3, "")
        assert err == f"Error: the store: data folder {tmp_path / 'data'}: File exists\n"
    status, out, _ = magazin("doctor")
    assert status == 1
    assert "File exists" in out


def test_init_makes_the_folder_and_is_harmless_again(magazin, tmp_path):
    assert magazin("init")[:2] == magazin("init")[:2] == (0, f"ready: sqlite, data in {tmp_path / 'data'}\n")
    assert (tmp_path / "data/store.sqlite").exists()
