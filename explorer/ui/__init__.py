"""The page: the only part of the explorer that imports gradio.

Purpose: turn requests of the browser into runs, and runs into what the browser paints.
Must not know: how anything is computed.
"""
