"""Shapes of the sample, {each} a dictionary."""
SHAPES = [
    {"rows": 32, "columns": 64},  # {aligned}
    {"rows": 5, "columns": 127},
]
