"""The checks of tools/house.py, a file each."""
