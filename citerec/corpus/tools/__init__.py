"""What `citerec corpus` does with corpora: counts them, converts them, merges them, draws samples."""
