"""The networks that the theorems promise."""
