"""Tests of the explorer; `bash tests/run` installs what they need and runs them all."""
