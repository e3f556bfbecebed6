"""Uploads to a folder and ZIP archives: speed, and how much memory a process needs for them."""
