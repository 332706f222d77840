"""The command line: `python -m explorer COMMAND`. Reads arguments, prints answers; computes nothing itself.

Purpose: every command in one line of `commands.COMMANDS`.
Must not know: gradio. Importing this package costs no torch, so that --help is quick.
"""
