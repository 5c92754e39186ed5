"""The arrays that stages exchange, by what a number in them means."""

import numpy as np
import numpy.typing as npt

Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int32]  # row numbers of papers in an index
Years = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
Vectors = npt.NDArray[np.float32]  # shape (n, dim)
