"""What arrays are called in annotations, by the type of their entries."""

import numpy as np
from numpy.typing import NDArray

# Numbers: (m,), or a matrix of them.
Vector = NDArray[np.float64]
# Numbers of rows, columns or problems, as NumPy takes them, and as the core does.
Index = NDArray[np.intp]
Index64 = NDArray[np.int64]
Mask = NDArray[np.bool_]
