"""The supervisor with real processes: what dies is started again, and nobody outlives it."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from cli.supervisor import FIRST_DELAY, LAST_DELAY, SETTLED, Child, Running

SUPERVISOR = """
import os, sys
from cli.supervisor import Child, Supervisor
children = [Child(f"child {n}", [sys.executable, "-c", script]) for n, script in enumerate(sys.argv[1:])]
sys.exit(Supervisor(children, environ=os.environ, grace=20, stopping=lambda: print("stopping", flush=True)).run())
"""
CHILD = """
import os, signal, sys, time
from cli import lifeline
lifeline.watch()
signal.signal(signal.SIGINT, signal.SIG_IGN)
def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())  # one write: the children share the pipe
def end(*_):
    say("ended", os.getpid())
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
say("started", os.getpid(), os.getppid(), os.getpgrp())
"""
STAYS = CHILD + "while True: time.sleep(60)"
FORKS = CHILD + textwrap.dedent("""
    if os.fork() == 0:
        lifeline.watch()
        say("forked", os.getpid())
    while True: time.sleep(60)
""")
# A shell without job control lets what it starts in the background ignore SIGQUIT.
DEAF = CHILD.replace("signal.SIGTERM, end", "signal.SIGTERM, signal.SIG_IGN") + textwrap.dedent("""
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    while True: time.sleep(60)
""")


@pytest.fixture
def supervise():
    running = []

    def start(*scripts):
        process = subprocess.Popen(
            [sys.executable, "-c", SUPERVISOR, *scripts],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=Path(__file__).parent.parent,
            start_new_session=True,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.stdout.read()  # ends when the last child, which holds the pipe, is gone
        process.wait()


def line(process, word):
    """The numbers of the next line of output, which must begin with ``word``."""
    first, *numbers = process.stdout.readline().split()
    assert first == word
    return [int(number) for number in numbers]


def test_the_children_are_of_one_process_group_and_end_cleanly(supervise):
    process = supervise(STAYS, STAYS)
    started = [line(process, "started"), line(process, "started")]
    assert {group for _, _, group in started} == {process.pid}
    process.terminate()
    assert process.stdout.readline() == "stopping\n"
    assert {line(process, "ended")[0], line(process, "ended")[0]} == {pid for pid, _, _ in started}
    assert process.wait() == 0


def test_ctrl_c_reaches_all_and_still_ends_cleanly(supervise):
    process = supervise(STAYS)
    line(process, "started")
    os.killpg(process.pid, signal.SIGINT)
    assert process.stdout.readline() == "stopping\n"
    line(process, "ended")
    assert process.wait() == 0


@pytest.mark.parametrize("script", [STAYS, FORKS, DEAF])
def test_nobody_outlives_a_killed_supervisor(supervise, script):
    process = supervise(script)
    line(process, "started")
    if script == FORKS:
        line(process, "forked")
    process.kill()
    # Every child and grandchild holds the pipe: its end says that they are all gone.
    assert process.stdout.read() == ""


def test_what_dies_is_started_again(supervise):
    process = supervise(STAYS)
    first, parent, _ = line(process, "started")
    os.kill(first, signal.SIGKILL)
    second, same_parent, _ = line(process, "started")
    assert second != first
    assert same_parent == parent == process.pid


def test_a_second_interrupt_ends_the_deaf(supervise):
    process = supervise(DEAF)
    line(process, "started")
    process.terminate()
    assert process.stdout.readline() == "stopping\n"
    process.send_signal(signal.SIGINT)
    assert process.wait() == 0


def test_the_delay_doubles_up_to_its_limit_and_begins_anew_after_a_settled_time():
    child = Running(Child("c", []), now=0.0)
    delays = [child.ended(now=1.0) for _ in range(8)]
    assert delays == [0.5, 1, 2, 4, 8, 16, LAST_DELAY, LAST_DELAY]
    assert child.due == 1.0 + LAST_DELAY
    assert child.ended(now=SETTLED) == FIRST_DELAY
