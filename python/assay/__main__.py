"""python -m assay: the program."""

from ._program import main

main()
