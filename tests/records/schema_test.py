from hypothesis import given
from hypothesis import strategies as st

from earned.records.schema import decode_flags, decode_ids, decode_numbers, encode_flags, encode_ids, encode_numbers


@given(st.lists(st.integers(-(2**31), 2**31 - 1)))
def test_ids_survive(ids):
    assert decode_ids(encode_ids(ids)) == tuple(ids)


@given(st.lists(st.floats(width=32, allow_nan=False)))
def test_numbers_of_32_bits_survive(numbers):
    assert decode_numbers(encode_numbers(numbers)) == tuple(numbers)


@given(st.lists(st.booleans()))
def test_flags_survive(flags):
    assert decode_flags(encode_flags(flags)) == tuple(flags)


def test_the_bytes_are_what_another_program_would_read():
    assert encode_ids([1, 258]).hex(" ") == "01 00 00 00 02 01 00 00"
    assert encode_numbers([1.0]).hex(" ") == "00 00 80 3f"
    assert encode_flags([True, False]).hex(" ") == "01 00"
