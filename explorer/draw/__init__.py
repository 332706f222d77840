"""Figures as plain dictionaries in Plotly's form, made from named numpy arrays.

Purpose: what a figure looks like, its hover texts, and the same content in words.
Must not know: torch, Trace, the stages, the page.
"""
