"""Requests for images to pixels to bytes. libvips lives here and nowhere else; storage is unknown here."""
