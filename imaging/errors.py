"""What can be wrong with an image or with a request for one.

Errors of the reader itself (a storage failure, an ``OSError``) are no ``ImageError``: every function of this package
lets them pass to its caller unchanged.
"""


class ImageError(Exception):
    """Any failure that lies in the image or in the request. The message is fit for a log line and for a client."""


class NotAnImage(ImageError):
    """The bytes are of no image format that is read here."""


class NotReadHere(ImageError):
    """An image of a format that the installed libraries don't read."""


class NoSuchPage(ImageError):
    """A page that the image doesn't have."""


class BrokenImage(ImageError):
    """The bytes begin like an image and can't be decoded whole: truncated, corrupt, or of a kind the decoder lacks."""


class TooLargeImage(ImageError):
    """A sound image, as far as can be told, beyond one of the limits."""


class TookTooLong(ImageError):
    """The time for one decoding is over. Whether the image is to blame or the machine's load isn't known."""


class BadRequest(ImageError):
    """A region, size, rotation, quality or format that is malformed, or that this image doesn't have.

    The message begins with its name.
    """
