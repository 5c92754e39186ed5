"""The datasets of the literature: where each comes from, how it is fetched, prepared and split."""
