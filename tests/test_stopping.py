"""Signals that end a process: in whatever step of the main thread they come, and however many."""

import signal
import subprocess
import sys

BEGIN = "import signal\nfrom cli.stopping import stop_at\nstop = stop_at(signal.SIGINT, signal.SIGTERM, once={once})\n"


def run(script, *, once):
    process = subprocess.run(
        [sys.executable, "-c", BEGIN.format(once=once) + script], capture_output=True, text=True, timeout=60
    )
    return process.returncode, process.stdout.strip(), process.stderr


def test_two_signals_while_the_main_thread_holds_the_events_lock():
    script = """
with stop._cond:  # as Event.wait and Event.set do
    signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGTERM)
    print(stop.is_set())
print(stop.wait(30))
"""
    assert run(script, once=False) == (0, "False\nTrue", "")


def test_the_second_of_the_same_ends_the_process_where_it_is_meant_to():
    script = """
signal.raise_signal(signal.SIGTERM)
print(stop.wait(30), flush=True)
signal.raise_signal(signal.SIGTERM)
print("still here")
"""
    assert run(script, once=True) == (-signal.SIGTERM, "True", "")
    assert run(script, once=False) == (0, "True\nstill here", "")
