"""A corpus on its way in (`readers`, `build`) and as it lies in an index (`papers`, `graph`)."""
