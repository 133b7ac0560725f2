//! The HTTP interface of zeusd, so that the Python clients of Zeus work unchanged.
