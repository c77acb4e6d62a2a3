"""References and originals: register, fetch, work off, sweep."""
