import sys

import pytest

from earned.optimization import allocator
from earned.optimization.allocator import keep_freed_memory


def test_it_says_whether_the_settings_were_taken():
    assert isinstance(keep_freed_memory(), bool)


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_elsewhere_than_linux_nothing_is_touched(monkeypatch, platform):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(allocator, "ctypes", None)
    assert keep_freed_memory() is False


def test_a_c_library_without_the_setting_is_left_alone(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda name: object())
    assert keep_freed_memory() is False
