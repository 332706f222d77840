"""Tests of explorer.model, one file for each of its modules."""
