"""The floor of edit-to-paint: a Textbox whose text comes back in another, by the quickest event Gradio offers."""

from __future__ import annotations

import argparse

import gradio as gr

flags = argparse.ArgumentParser()
flags.add_argument("--host")
flags.add_argument("--port", type=int)

with gr.Blocks(analytics_enabled=False) as demo:
    said = gr.Textbox("1", elem_id="said")
    heard = gr.Textbox("1", elem_id="heard")
    said.input(
        lambda text: text, said, heard, queue=False, show_progress="hidden", trigger_mode="always_last", api_name="echo"
    )

if __name__ == "__main__":
    at = flags.parse_args()
    demo.launch(server_name=at.host, server_port=at.port, quiet=True)
