"""Sentences for people, in more than one language: English stands where it is said, the others in files beside this.

    errors["h"] = say("h = {h} does not divide d_model = {width}.", h=spec.h, width=spec.d_model)
    in_language(errors["h"], "zh")

The English template is the key of its translations, so a sentence is read where it is needed, and a test compares the
files with all templates that the code holds.
"""

from explorer.messages.message import Message, either, in_language, said, say

__all__ = ["Message", "either", "in_language", "said", "say"]
