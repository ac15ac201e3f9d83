"""Being asked to stop is a wish the first time; whoever insists interrupts, and never in the middle of a record."""

from __future__ import annotations

import os
import signal

import pytest

from runners.interrupts import first_is_a_wish


@pytest.fixture(autouse=True)
def _hang_ups_count():
    """Whoever runs the tests may have started them with nohup: here a hang-up means what it means in a terminal."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def sends(*numbers):
    """Signals to this process."""
    for number in numbers:
        os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_is_a_wish(number):
    """Nothing is raised, and the wish is known; afterwards the signal means what it meant before."""
    before = signal.getsignal(number)
    with first_is_a_wish() as wish:
        assert not wish()
        sends(number)
        assert wish()
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_the_second_insists(second):
    """The second Ctrl-C or SIGTERM interrupts."""
    with first_is_a_wish(), pytest.raises(KeyboardInterrupt):
        sends(signal.SIGINT, second)


def test_a_hang_up_never_insists():
    """A shell repeats it: both times it is a wish."""
    with first_is_a_wish() as wish:
        sends(signal.SIGHUP, signal.SIGHUP, signal.SIGHUP)
        assert wish()


def test_a_hang_up_that_is_ignored_stays_ignored():
    """A process started with nohup does not stop when its terminal closes."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with first_is_a_wish() as wish:
            sends(signal.SIGHUP)
            assert not wish()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_while_it_is_held_nothing_is_interrupted():
    """What is being written is written; whoever asks next is interrupted."""
    done = []
    with first_is_a_wish() as wish:
        with wish.held():
            sends(signal.SIGINT, signal.SIGINT)
            done.append("written")
        with pytest.raises(KeyboardInterrupt):
            wish()
    assert done == ["written"]


def test_a_block_inside_another_has_the_same_wish():
    """What came before the inner block began counts in it."""
    with first_is_a_wish() as outer:
        sends(signal.SIGINT)
        with first_is_a_wish() as inner:
            assert inner()
            with pytest.raises(KeyboardInterrupt):
                sends(signal.SIGINT)
        assert outer()
