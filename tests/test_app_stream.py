import pytest

from app.stream import Stream
from storage.errors import BlobError, Damaged


class Source:
    """Parts, then perhaps an error; knows whether it was closed and how many were taken."""

    def __init__(self, *parts, error=None):
        self.parts, self.error, self.taken, self.closed = list(parts), error, 0, False

    def __iter__(self):
        return self

    def __next__(self):
        if self.taken < len(self.parts):
            self.taken += 1
            return self.parts[self.taken - 1]
        if self.error is not None:
            raise self.error
        raise StopIteration

    def close(self):
        self.closed = True


class Ends(list):
    def __call__(self, how, error):
        self.append((how, error))


DAMAGE = Damaged("o", "a", 1, "is missing")


def test_whole():
    ends, source = Ends(), Source(b"ab", b"cd", b"e")
    stream = Stream(source, 5, ends)
    assert source.taken == 1  # before the headers
    assert list(stream) == [b"ab", b"cd", b"e"]
    assert ends == []
    stream.close()
    stream.close()
    assert ends == [("whole", None)] and source.closed


def test_damage_in_the_first_part_comes_at_once():
    with pytest.raises(Damaged):
        Stream(Source(error=DAMAGE), 5, Ends())


def test_later_damage_is_raised_once_and_told():
    ends, source = Ends(), Source(b"ab", error=DAMAGE)
    stream = Stream(source, 5, ends)
    assert next(stream) == b"ab"
    with pytest.raises(Damaged):
        next(stream)
    assert list(stream) == []
    stream.close()
    assert ends == [("cut", DAMAGE)] and source.closed


@pytest.mark.parametrize("parts", [[b"ab"], [b"ab", b""], [b"ab", b"cd"]])
def test_too_few_bytes_are_no_end(parts):
    ends = Ends()
    with pytest.raises(BlobError, match=f"end at {len(b''.join(parts))} of 5"):
        list(Stream(Source(*parts), 5, ends))
    assert [how for how, _ in ends] == ["cut"]


@pytest.mark.parametrize("taken", [0, 1, 2])
def test_a_client_that_leaves(taken):
    ends, source = Ends(), Source(b"ab", b"cd", b"e")
    stream = Stream(source, 5, ends)
    for _ in range(taken):
        next(stream)
    stream.close()
    assert ends == [("gone", None)] and source.closed  # also where nothing was ever asked for
