"""The types of requests and responses under ``/v1``, all in this package. What is not named in them is refused.

Offsets are half-open and count code points; times are seconds since 1970.
"""
