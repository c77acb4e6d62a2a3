import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.fetch.freshness import LIFETIME_LIMIT, fresh_until, http_date, retry_after

SECOND = 1_000_000
NOW = 1_700_000_000 * SECOND  # Tue, 14 Nov 2023 22:13:20 GMT
AT = {
    -10: "Tue, 14 Nov 2023 22:13:10 GMT",
    0: "Tue, 14 Nov 2023 22:13:20 GMT",
    60: "Tue, 14 Nov 2023 22:14:20 GMT",
}


def headers(**fields):
    """By name, ``_`` for a hyphen; a tuple stands for a header that comes several times."""
    known = {name.replace("_", "-").lower(): value for name, value in fields.items()}

    def values(name):
        value = known.get(name.lower(), ())
        return list(value) if isinstance(value, tuple) else [value]

    return values


@pytest.mark.parametrize(
    "seconds, fields",
    [
        (7, {"Cache_Control": "max-age=7"}),
        (7, {"Cache_Control": "MAX-AGE=7"}),
        (7, {"Cache_Control": "public, Max-Age = 7 , must-revalidate"}),
        (7, {"Cache_Control": 'max-age="7"'}),
        (7, {"Cache_Control": "max-age=7, max-age=9"}),
        (7, {"Cache_Control": ("max-age=7", "max-age=9")}),
        (7, {"Cache_Control": 'private="x, max-age=9", max-age=7'}),
        (7, {"Cache_Control": "s-maxage=9, max-age=7, stale-while-revalidate=60"}),
        (7, {"Cache_Control": "max-age=7", "Expires": AT[60], "Date": AT[0]}),
        (7, {"Cache_Control": "max-age=7", "Expires": "0"}),
        (4, {"Cache_Control": "max-age=7", "Age": "3"}),
        (7, {"Cache_Control": "max-age=7", "Age": "nonsense"}),
        (60, {"Expires": AT[60], "Date": AT[0]}),
        (70, {"Expires": AT[60], "Date": AT[-10]}),
        (60, {"Expires": AT[60]}),
        (60, {"Expires": AT[60], "Date": "yesterday"}),
        (60, {"Expires": (AT[60], "0")}),
        (50, {"Expires": AT[60], "Date": AT[0], "Age": "10"}),
        (LIFETIME_LIMIT, {"Cache_Control": "max-age=" + "9" * 5000}),
        (7, {"Cache_Control": "max-age=7", "Vary": "Accept-Encoding"}),
    ],
)
def test_fresh_for_some_time(seconds, fields):
    assert fresh_until(headers(**fields), NOW) == NOW + seconds * SECOND


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"Last_Modified": AT[-10], "ETag": '"x"'},
        {"Cache_Control": "public"},
        {"Cache_Control": "max-age=0"},
        {"Cache_Control": "max-age=-7"},
        {"Cache_Control": "max-age=soon", "Expires": AT[60]},
        {"Cache_Control": "max-age", "Expires": AT[60]},
        {"Cache_Control": "No-Cache, max-age=7"},
        {"Cache_Control": 'no-cache="set-cookie", max-age=7'},
        {"Cache_Control": ("max-age=7", "NO-STORE")},
        {"Cache_Control": "s-maxage=7"},
        {"Cache_Control": "xmax-age=7"},
        {"Cache_Control": "max-age=7", "Age": "7"},
        {"Cache_Control": "max-age=7", "Vary": "*"},
        {"Expires": "0"},
        {"Expires": "-1"},
        {"Expires": AT[-10]},
        {"Expires": AT[60], "Date": AT[60]},
        {"Expires": ("0", AT[60])},
        {"Expires": "Thu, 99 Nov 2023 22:14:20 GMT"},
    ],
)
def test_never_fresh(fields):
    assert fresh_until(headers(**fields), NOW) is None


@pytest.mark.parametrize(
    "value, seconds",
    [
        ("120", 120.0),
        (" 120 ", 120.0),
        ("0", 0.0),
        ("3155760000", 3600.0),
        ("9" * 5000, 3600.0),
        (AT[60], 60.0),
        (AT[-10], 0.0),
        ("Wed, 01 Jan 2125 00:00:00 GMT", 3600.0),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_counts_seconds_or_names_a_date_within_the_cap(value, seconds):
    assert retry_after(value, NOW, 3600.0) == seconds


@pytest.mark.parametrize(
    "text", ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
)
def test_all_three_forms_of_a_date(text):
    assert http_date(text) == 784111777 * SECOND


@given(st.text(max_size=80) | st.from_regex(r"(max-age|no-cache|\"|=|,| |\\|[0-9]){1,30}", fullmatch=True))
def test_no_header_is_too_strange(text):
    fresh_until(headers(Cache_Control=text, Expires=text, Date=text, Age=text), NOW)
    retry_after(text, NOW, 60.0)


@pytest.mark.parametrize("filler", [" ", "a", '"', "=", ",", '="', "\\", 'a="'])
def test_long_headers_cost_no_more_than_their_length(filler):
    text = "max-age" + filler * 60_000 + "="
    fresh_until(headers(Cache_Control=text), NOW)  # a quadratic pattern would take minutes here
