"""What several test modules use: tiny models, damaged files, corpora, pages, command lines."""
