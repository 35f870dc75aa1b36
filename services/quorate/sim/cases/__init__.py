"""Minimized reproductions as text, and how they are shrunk."""
