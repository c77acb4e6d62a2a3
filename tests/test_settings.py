"""Settings: what each source says, which goes over which, what a mistake is told, and that the docs agree."""

import ipaddress
import tomllib
from pathlib import Path

import pytest

from cli import sample
from cli.kinds import Address
from cli.settings import DEFINITIONS, Settings
from cli.sources import SettingsError, load, variables

ROOT = Path(__file__).parent.parent


def settings(tmp_path, toml="", environ=None, flags=None):
    (tmp_path / "magazin.toml").write_text(toml, encoding="utf-8")
    return load(data=tmp_path, environ=environ or {}, flags=flags)


def complaint(tmp_path, toml="", environ=None, flags=None):
    with pytest.raises(SettingsError) as caught:
        settings(tmp_path, toml, environ, flags)
    return str(caught.value)


def test_the_sample_file_holds_every_default(tmp_path):
    text = (ROOT / "etc/magazin.toml").read_text(encoding="utf-8")
    assert text == sample.toml()
    assert settings(tmp_path, text) == Settings(data=tmp_path, config=tmp_path / "magazin.toml")
    assert {(s, k) for s, table in tomllib.loads(text).items() for k in table} == set(DEFINITIONS)


def test_every_default_is_the_same_when_it_comes_from_a_variable(tmp_path):
    plain = {
        one.variable: text if isinstance(text, str) else ",".join(map(str, text)) if isinstance(text, list) else ""
        for one in DEFINITIONS.values()
        for text in [tomllib.loads(f"x = {one.kind.write(one.default)}")["x"]]
        if not isinstance(text, bool | int | float)
    }
    assert load(data=tmp_path, environ=plain) == Settings(data=tmp_path)


def test_the_page_of_settings_is_the_present_one():
    assert (ROOT / "docs/settings.md").read_text(encoding="utf-8") == sample.markdown()


def test_flags_go_over_variables_over_the_file(tmp_path):
    toml = "[worker]\nthreads = 2\nper_host = 3\njitter = 0.5\n"
    environ = {"MAGAZIN_WORKER_THREADS": "5", "MAGAZIN_WORKER_PER_HOST": "6"}
    found = settings(tmp_path, toml, environ, {"worker.threads": "9"}).worker
    assert (found.threads, found.per_host, found.jitter, found.max_failures) == (9, 6, 0.5, 3)


def test_flags_reach_child_processes_as_variables(tmp_path):
    flags = {"server.listen": "127.0.0.1:0", "delivery.max_age": "1m"}
    assert load(data=tmp_path, environ=variables(flags)) == load(data=tmp_path, environ={}, flags=flags)


def test_the_file_is_the_flag_then_the_variable_then_the_one_in_the_data_folder(tmp_path):
    for name, threads in (("flag", 7), ("variable", 8)):
        (tmp_path / name).write_text(f"[worker]\nthreads = {threads}\n")
    (tmp_path / "magazin.toml").write_text("[worker]\nthreads = 9\n")
    environ = {"MAGAZIN_CONFIG": str(tmp_path / "variable"), "MAGAZIN_DATA": str(tmp_path)}
    assert load(config=tmp_path / "flag", environ=environ).worker.threads == 7
    assert load(environ=environ).worker.threads == 8
    assert load(environ={"MAGAZIN_DATA": str(tmp_path)}).worker.threads == 9
    assert load(data=tmp_path / "empty", environ={}).worker.threads == 4


@pytest.mark.parametrize(
    "written, bytes_",
    [
        ("0", 0),
        ("512", 512),
        ("2 GiB", 2 << 30),
        ("2gb", 2_000_000_000),
        ("1.5 KiB", 1536),
        ("10k", 10_000),
        ("3 TB", 3 * 10**12),
        ("50_000_000", 50_000_000),
    ],
)
def test_sizes(tmp_path, written, bytes_):
    assert settings(tmp_path, environ={"MAGAZIN_CACHE_SIZE": written}).cache.size == bytes_


@pytest.mark.parametrize("written, taken", [("4 KiB", 4096), ("1 MB", 1_000_000), ("4095", 0), ("1 MiB", 0)])
def test_a_size_within_bounds(tmp_path, written, taken):
    """64 parts are one partition of a wide-column store, and that shall have less than 64 MiB."""
    if taken:
        assert settings(tmp_path, environ={"MAGAZIN_STORAGE_PART_SIZE": written}).storage.part_size == taken
    else:
        with pytest.raises(SettingsError, match=r"part_size wants a size from 4 KiB to 1 MB"):
            settings(tmp_path, environ={"MAGAZIN_STORAGE_PART_SIZE": written})


@pytest.mark.parametrize(
    "written, seconds",
    [
        ("0", 0),
        ("90", 90),
        ("90s", 90),
        ("15m", 900),
        ("24h", 86400),
        ("7d", 604800),
        ("1h 30m", 5400),
        ("250ms", 0.25),
    ],
)
def test_durations(tmp_path, written, seconds):
    assert settings(tmp_path, environ={"MAGAZIN_SWEEP_GRACE": written}).sweep.grace == seconds


@pytest.mark.parametrize(
    "written, host, port, loopback",
    [
        ("127.0.0.1:8000", "127.0.0.1", 8000, True),
        ("127.9.9.9:0", "127.9.9.9", 0, True),
        ("[::1]:80", "::1", 80, True),
        ("localhost:80", "localhost", 80, True),
        ("0.0.0.0:80", "0.0.0.0", 80, False),
        (":80", "0.0.0.0", 80, False),
        ("example.org:80", "example.org", 80, False),
    ],
)
def test_addresses(tmp_path, written, host, port, loopback):
    found = settings(tmp_path, environ={"MAGAZIN_SERVER_LISTEN": written}).server.listen
    assert (found, found.loopback) == (Address(host, port), loopback)


def test_lists_networks_and_tables(tmp_path):
    environ = {
        "MAGAZIN_FETCH_ALLOW_NETWORKS": "127.0.0.0/8, ::1/128",
        "MAGAZIN_STORAGE_OPTIONS": "a=1,b=x=y",
        "MAGAZIN_IMAGES_BACKGROUND": "#0A0b0c",
        "MAGAZIN_DELIVERY_REFERENCE_TTL": "2s",
    }
    found = settings(tmp_path, environ=environ)
    assert found.fetch.allow_networks == (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))
    assert found.storage.options == (("a", "1"), ("b", "x=y"))
    assert found.images.background == (10, 11, 12)
    assert found.delivery.reference_ttl == 2.0
    assert settings(tmp_path, "[storage]\noptions = { a = 1 }\n").storage.options == (("a", 1),)
    assert settings(tmp_path, "[worker]\nbackoff = ['1m', 2]\n").worker.backoff == (60.0, 2.0)


def test_an_unknown_name_is_told_the_nearest_known_one(tmp_path):
    assert "[cache] siez; the nearest known one is [cache] size" in complaint(tmp_path, "[cache]\nsiez = 1\n")
    assert "[cahce]; the nearest known one is [cache]" in complaint(tmp_path, "[cahce]\nsize = 1\n")
    assert "[access] thread; the nearest known one is [" in complaint(tmp_path, "[access]\nthread = 1\n")
    environ = {"MAGAZIN_CACHE_SIEZ": "1"}
    assert "MAGAZIN_CACHE_SIEZ: unknown variable; the nearest known one is MAGAZIN_CACHE_SIZE" in complaint(
        tmp_path, environ=environ
    )
    assert "MAGAZIN_DAAT: unknown variable; the nearest known one is MAGAZIN_DATA" in complaint(
        tmp_path, environ={"MAGAZIN_DAAT": "1"}
    )
    assert "[worker] thread; the nearest known one is [worker] threads" in complaint(
        tmp_path, flags={"worker.thread": "1"}
    )
    assert settings(tmp_path, environ={"MAGAZINE": "1", "MY_MAGAZIN_X": "1"})


@pytest.mark.parametrize(
    "toml",
    [
        "[server]\nworkers = 0",
        "[server]\nworkers = true",
        "[server]\nworkers = 1.5",
        "[server]\nlisten = 'here'",
        "[server]\nlisten = '1.2.3.4:65536'",
        "[server]\nlisten = '::1:80'",
        "[server]\nlisten = '[nonsense]:80'",
        "[storage]\nblobs = 'tape'",
        "[storage]\noptions = 'a'",
        "[cassandra]\ncontact_points = []",
        "[cassandra]\nkeyspace = 3",
        "[cache]\nsize = '2 GiBB'",
        "[cache]\nsize = -1",
        "[cache]\nsize = true",
        "[cache]\nwait = '3 fortnights'",
        "[cache]\nwait = ''",
        "[fetch]\nallow_networks = ['10.0.0.1/8']",
        "[fetch]\nallow_networks = '10.0.0.0/8,nowhere'",
        "[worker]\njitter = 1.5",
        "[images]\nbackground = 'white'",
        "[access]\nopen_writes = 'everyone'",
        "[access]\nopen_lists = 'perhaps'",
        "[delivery]\nmax_age = 'auto'",
    ],
)
def test_a_wrong_value_names_file_setting_wish_and_value(tmp_path, toml):
    section, line = toml.strip("[").split("]\n")
    key, raw = line.split(" = ")
    message = complaint(tmp_path, toml)
    assert message.startswith(
        f"{tmp_path / 'magazin.toml'}: [{section}] {key} wants {DEFINITIONS[section, key].kind.wanted}"
    )
    assert message.endswith(f"not {tomllib.loads(line)[key]!r}")
    assert raw


def test_a_secret_is_not_repeated(tmp_path):
    message = complaint(tmp_path, "[cassandra]\npassword = 271828\n")
    assert "[cassandra] password wants a text, not this value" in message
    assert "271828" not in message


@pytest.mark.parametrize("toml", ["[server", "listen = 'x'", "server = 3"])
def test_a_file_of_another_shape(tmp_path, toml):
    assert complaint(tmp_path, toml).startswith(f"{tmp_path / 'magazin.toml'}: ")


def test_a_named_file_must_be_there(tmp_path):
    with pytest.raises(SettingsError, match=r"nowhere\.toml: No such file"):
        load(data=tmp_path, config=tmp_path / "nowhere.toml", environ={})


@pytest.mark.parametrize(
    ("name", "value"), [("MAGAZIN_CACHE_SIZE", "9999999999 TiB"), ("MAGAZIN_FETCH_DEADLINE", "99999999999h")]
)
def test_what_no_store_and_no_clock_can_count_is_refused(tmp_path, name, value):
    with pytest.raises(SettingsError, match="wants a"):
        settings(tmp_path, environ={name: value})
