"""What `magazin ingest` reads from lists of its three kinds."""

import io

import pytest

from ingest.entries import CUT, Entry, entries, lines


def read(text, context="dflt"):
    return list(entries(text.splitlines(keepends=True), context))


def test_plain_lines_with_blanks_and_comments():
    found = read(
        "# a list\n\n  http://h/a.jpg \nhttp://h/b,c.jpg\n\n#http://h/no\nhttp://h/iiif/full/!800,600/0/d.jpg\n"
    )
    assert found == [
        Entry(3, "http://h/a.jpg", "dflt"),
        Entry(4, "http://h/b,c.jpg", "dflt"),
        Entry(7, "http://h/iiif/full/!800,600/0/d.jpg", "dflt"),
    ]


def test_a_table_with_a_header_in_any_order_and_further_columns():
    found = read(
        '\ufeffTitle,Mime,URL,Context\n"a, b",image/png,"http://h/a,b",one\n\n,,http://h/c,\n"x\ny",,http://h/d,z'
    )
    assert found == [
        Entry(2, "http://h/a,b", "one", "image/png"),
        Entry(4, "http://h/c", "dflt"),
        Entry(6, "http://h/d", "z"),
    ]


def test_three_columns_without_a_header():
    assert read("http://h/a,ctx,image/jpeg\nhttp://h/b,,\n") == [
        Entry(1, "http://h/a", "ctx", "image/jpeg"),
        Entry(2, "http://h/b", "dflt"),
    ]


def test_objects():
    found = read('\n{"url": "http://h/ü", "context": "c", "mime": null}\n{"url": "http://h/b"}\n')
    assert found == [Entry(2, "http://h/ü", "c"), Entry(3, "http://h/b", "dflt")]


@pytest.mark.parametrize(
    "line, wrong",
    [
        ('{"url": ', "no JSON"),
        ("[1]", "not a JSON object"),
        ('{"url": 3}', "url must be a text"),
        ('{"url": "http://h/a", "uri": "x"}', "unknown field 'uri'"),
        ('{"context": "c"}', "there is no url"),
        ('{"url": "http://h/a", "mime": "jpeg"}', "mime 'jpeg' is no media type"),
        ("[" * 100_000, "no JSON"),
    ],
)
def test_a_bad_line_is_an_entry_that_says_why_and_the_others_go_on(line, wrong):
    found = read('{"url": "http://h/1"}\n' + line + '\n{"url": "http://h/3"}\n')
    assert [entry.line for entry in found] == [1, 2, 3]
    assert [entry.wrong for entry in found][::2] == [None, None]
    assert wrong in found[1].wrong


def test_a_row_without_a_url():
    assert read("url,context\n,c\n")[0].wrong == "there is no url"


def test_a_cell_without_end_is_told_as_such():
    found = read('url,context\nhttp://h/a,c\n"' + "x" * 200_000)
    assert found[0] == Entry(2, "http://h/a", "c")
    assert found[1].wrong.startswith("no CSV")


def test_nothing():
    assert read("") == read("\n# nothing\n") == []


def test_an_endless_line_is_cut_and_those_behind_it_keep_their_numbers():
    text = "http://h/a\n" + "x" * (3 * CUT) + "\nhttp://h/b\n"
    found = list(entries(lines(io.StringIO(text)), "c"))
    assert [(one.line, one.url[:10]) for one in found] == [(1, "http://h/a"), (2, "x" * 10), (3, "http://h/b")]
    assert "url must be a text" in found[1].wrong


def test_lines_are_read_one_by_one():
    def endless():
        while True:
            yield "http://h/a\n"

    found = entries(endless(), "c")
    assert [next(found).line for _ in range(3)] == [1, 2, 3]
