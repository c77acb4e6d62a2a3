"""Finding files, in every order and with every condition, against what a list would give."""

import re

import pytest

from storage.bucket import Bucket
from storage.bucket_errors import FileExists, NoFile
from storage.bucket_find import Search
from storage.bucket_index import above, below
from storage.bucket_tables import tables_of
from storage.ids import Ids
from storage.schema import LEASES
from tests.bucket_setting import CHUNK, HOUR, BucketSetting, Ticking, all_rows, put

NAMES = [
    "a",
    "a/b",
    "a/b/c",
    "a0",
    "A",
    "ä",
    "日本語.jpg",
    "a b",
    "\U0001f409",
    "\ud7ff\ue000",
    "%",
    "'\"",
    "z" * 300,
    "`\U0010ffff!",
]


class FindContract(BucketSetting):
    @pytest.fixture(scope="class")
    @classmethod
    def stocked(cls, store):
        """A bucket with revisions of many names over many hours, its files in the order of completion, and one that is
        deleted. Nobody changes it."""
        clock = Ticking()
        bucket = Bucket(store, "stocked", chunk_size_bytes=CHUNK, clock=clock, ids=Ids(clock))
        bucket.init(shards=4)
        files = []
        for round_ in range(3):
            for number, filename in enumerate(NAMES[round_:]):
                clock.now += HOUR * (number % 4)
                metadata = {"round": round_, "even": number % 2 == 0}
                files.append(put(bucket, filename, filename.encode(), metadata=metadata))
        deleted = files.pop(7)
        bucket.delete(deleted.id)
        bucket.open_upload_stream("a").write(b"under way")
        return bucket, files, deleted

    def test_by_time(self, stocked):
        bucket, files, _ = stocked
        assert list(bucket.find()) == files[::-1]
        assert list(bucket.find(newest_first=False)) == files
        assert list(bucket.find(skip=3, limit=5)) == files[::-1][3:8]
        assert list(bucket.find(skip=999)) == [] == list(bucket.find(limit=0))
        for wrong in ({"skip": -1}, {"limit": -1}):
            with pytest.raises(ValueError):
                bucket.find(**wrong)

    def test_by_name(self, stocked):
        bucket, files, _ = stocked
        for newest_first in (True, False):
            expected = [one for one in files if one.filename == "a/b"][:: -1 if newest_first else 1]
            assert list(bucket.find(filename="a/b", newest_first=newest_first)) == expected
        assert list(bucket.find(filename="no")) == []

    @pytest.mark.parametrize(
        "prefix", ["", "a", "a/", "a/b", "A", "ä", "日", "z", "zzzz", "\U0001f409", "\ud7ff", "no"]
    )
    def test_by_prefix(self, stocked, prefix):
        bucket, files, _ = stocked
        for newest_first in (True, False):
            order = files[::-1] if newest_first else files
            expected = sorted((one for one in order if one.filename.startswith(prefix)), key=lambda one: one.filename)
            assert list(bucket.find(prefix=prefix, newest_first=newest_first)) == expected

    def test_conditions_together(self, stocked):
        bucket, files, _ = stocked
        newest = files[::-1]
        assert list(bucket.find(metadata={"round": 1})) == [one for one in newest if one.metadata["round"] == 1]
        assert list(bucket.find(metadata={"round": 1, "even": True}, prefix="a")) == sorted(
            (one for one in newest if one.metadata == {"round": 1, "even": True} and one.filename[0] == "a"),
            key=lambda one: one.filename,
        )
        assert list(bucket.find(metadata={"none": None})) == []
        assert list(bucket.find(pattern=r"^a/.*[bc]$", limit=1)) == [
            next(one for one in newest if re.search("^a/.*[bc]$", one.filename))
        ]
        assert list(bucket.find(pattern="b", filename="a")) == []

    @pytest.mark.parametrize("pattern", ["b", "^a", "c$", r"\.jpg", "[日-本]", "", r"\p{Han}"])
    def test_by_pattern(self, stocked, pattern):
        bucket, files, _ = stocked
        plain = re.compile(pattern.replace(r"\p{Han}", "[一-龥]"))
        expected = [one for one in files[::-1] if plain.search(one.filename)]
        assert list(bucket.find(pattern=pattern)) == expected == list(bucket.find(pattern=plain))

    @pytest.mark.parametrize("pattern", ["(", "a{1000}{1000}", "(?=a)", r"\1", "x" * 1001, "((a{100}){100}){100}"])
    def test_what_is_no_pattern(self, own, pattern):
        with pytest.raises(ValueError, match="pattern"):
            own.find(pattern=pattern)

    def test_a_hostile_pattern_takes_no_time(self, own):
        put(own, "a" * 1000 + "!")
        assert list(own.find(pattern="(a+)+(a+)+(a+)+$")) == []

    def test_by_status(self, stocked):
        bucket, _, deleted = stocked
        assert [one.id for one in bucket.find(status="Deleted")] == [deleted.id]
        assert [one.id for one in bucket.find(status="Deleted", prefix="")] == [deleted.id]
        assert [one.filename for one in bucket.find(status="Incomplete")] == ["a"]
        assert list(bucket.find(status="Incomplete", filename="b")) == []
        with pytest.raises(ValueError):
            bucket.find(status="Gone")

    @pytest.mark.parametrize("limit", [1, 2, 7, 100])
    @pytest.mark.parametrize("prefix", ["", "a"])
    def test_pages(self, stocked, limit, prefix):
        bucket, _, _ = stocked
        after, seen = None, []
        while True:
            page = bucket.page(prefix=prefix, after=after, limit=limit)
            assert len(page.files) == limit or page.after is None
            seen += page.files
            after = page.after
            if after is None:
                break
        assert seen == list(bucket.find(prefix=prefix))

    def test_pages_of_one_name(self, stocked):
        bucket, files, _ = stocked
        first = bucket.page(filename="a/b", limit=1)
        rest = bucket.page(filename="a/b", limit=9, after=first.after)
        assert [*first.files, *rest.files] == [one for one in files[::-1] if one.filename == "a/b"]

    def test_pages_go_on_where_they_were_whatever_comes_and_goes(self, own):
        for letter in "bdfh":
            put(own, letter)
        page = own.page(limit=2)
        own.delete_by_name("d")
        for letter in "aceg":
            put(own, letter)
        assert [one.filename for one in own.page(limit=9, after=page.after).files] == ["e", "f", "g", "h"]

    def test_a_page_does_bounded_work(self, store, own):
        search = Search(store, tables_of(own.name), own._index, looks=3)
        for number in range(8):
            put(own, f"{number}")
        found, pages, after = [], 0, None
        while pages == 0 or after is not None:
            page = search.page(filename=None, prefix="", pattern="[07]", after=after, limit=5)
            found += [one.filename for one in page.files]
            after, pages = page.after, pages + 1
        assert (found, pages) == (["0", "7"], 3)

    def test_many_revisions_of_one_name(self, own):
        """More than a page of index rows: in both orders, beside others."""
        put(own, "m")
        files = [put(own, "many", b"") for _ in range(150)]
        put(own, "n")
        assert own.revisions("many") == files
        assert list(own.find(filename="many")) == files[::-1]
        assert [one.filename for one in own.find(prefix="")][::151] == ["m", "n"]
        assert list(own.find(prefix="ma")) == files[::-1]
        assert list(own.find(prefix="ma", newest_first=False)) == files
        assert list(own.find()) == [*own.find(filename="n"), *files[::-1], *own.find(filename="m")]
        assert own.get_by_name("many", -100) == files[50] == own.get_by_name("many", 50)
        page = own.page(prefix="many", limit=100)
        assert page.files + own.page(prefix="many", limit=100, after=page.after).files == files[::-1]

    def test_stale_index_rows_cost_a_read_never_an_answer(self, store, own):
        files = [put(own, "stale") for _ in range(20)]
        tables = tables_of(own.name)
        kept = [row for table in (tables.file_ix, tables.recent) for row in all_rows(store, table)]
        for record in files[5:]:
            own.delete(record.id, hard=True)
        own.rename(files[0].id, "renamed")
        for row in kept:  # as if their deletes had been lost
            store.put(tables.file_ix if "filename" in row else tables.recent, row)
        assert own.revisions("stale") == files[1:5]
        assert own.get_by_name("stale") == files[4]
        assert len(list(own.find())) == 5 == len(list(own.find(prefix="")))

    def test_an_upload_that_is_being_removed_is_not_under_way(self, own):
        record = own.open_upload_stream("x").record
        assert [one.id for one in own.find(status="Incomplete")] == [record.id]
        assert own._states._replace(record, own._states._doomed(record))
        assert list(own.find(status="Incomplete")) == []

    def test_a_first_of_its_name(self, store, own):
        first, second = own.open_upload_stream("x"), own.open_upload_stream("x")
        second.write(b"second")
        record = first.commit_first()
        with pytest.raises(FileExists, match=second.file_id):
            second.commit_first()
        assert own.revisions("x") == [record]
        with pytest.raises(NoFile):
            own.get(second.file_id)
        own.delete(record.id)
        with own.open_upload_stream("x") as third:
            assert third.commit_first().status == "Complete"
        assert [row for row in all_rows(store, LEASES) if own.name in row["name"]] == []
        assert len(own.revisions("x")) == 1

    def test_a_crashed_first_holds_the_name_until_it_is_cleaned_away(self, own, clock):
        crashed = own.open_upload_stream("x")
        own._states._take_name((f"file:{own.name}:x",), crashed.record)
        with pytest.raises(FileExists, match="another"):
            own.open_upload_stream("x").commit_first()
        own.sweep(crashed.file_id, 0)
        own.open_upload_stream("x", file_id=crashed.file_id).commit_first()
        assert len(own.revisions("x")) == 1


@pytest.mark.parametrize("prefix", ["a", "\x00", "\ue000", "\ud7ff", "a\U0010ffff", "\U0010ffff", "\U00010000"])
def test_bounds_of_a_prefix(prefix):
    texts = ["", "a", "b", "\x00", "\x01", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"]
    texts = [one + two + three for one in texts for two in texts for three in texts]
    low, high = below(prefix), above(prefix)
    low.encode()
    for text in texts:
        if text.startswith(prefix):
            assert low < text
            assert high is None or text < high
        elif high is not None and text > prefix:
            assert text >= high
