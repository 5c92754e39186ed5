"""First-stage retrievers: each opens its part of an index and finds candidates in it."""
