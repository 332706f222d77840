"""The independent toy calculation against the numbers that the course prints."""

from __future__ import annotations

import numpy as np

from tests import toy_reference

ROOT2 = np.sqrt(2)
COURSE = {
    "attn_norm": [[1, 1], [1, -1]],
    "k_rot": [[1, 1], [1, 1]],
    "q_rot": [[1, 1], [1, 1]],
    "scores": [[ROOT2, ROOT2], [ROOT2, ROOT2]],
    "masked_scores": [[ROOT2, -np.inf], [ROOT2, ROOT2]],
    "probs": [[1, 0], [0.5, 0.5]],
    "attn_out": [[1, 1], [1, 0]],
    "resid_mid": [[2, 2], [2, -1]],
    "ffn_out": [[0.1, -0.2], [0.3, 0.1]],
    "resid_post": [[2.1, 1.8], [2.3, -0.9]],
}


def test_default_numbers_are_the_course_numbers() -> None:
    toy = toy_reference.toy()
    for name, rows in COURSE.items():
        np.testing.assert_allclose(toy[name].reshape(2, 2), rows, rtol=2e-6, atol=2e-6, err_msg=name)


def test_supposed_update_is_hit_exactly() -> None:
    np.testing.assert_allclose(toy_reference.toy()["ffn_out"][0], toy_reference.SUPPOSED_F, atol=1e-14)


def test_a_put_value_reaches_what_follows_and_nothing_before() -> None:
    plain, edited = toy_reference.toy(), toy_reference.toy(put={"probs": {(0, 0, 1, 0): 0.9}})
    assert edited["probs"][0, 0, 1, 0] == 0.9
    np.testing.assert_array_equal(edited["masked_scores"], plain["masked_scores"])
    np.testing.assert_allclose(edited["heads"][0, 0, 1], 0.9 * plain["v"][0, 0, 0] + 0.5 * plain["v"][0, 0, 1])
    np.testing.assert_array_equal(edited["resid_post"][0, 0], plain["resid_post"][0, 0])
    assert np.abs(edited["resid_post"][0, 1] - plain["resid_post"][0, 1]).min() > 1e-3


def test_an_edit_of_one_projection_leaves_the_others() -> None:
    edited = toy_reference.toy(put={"q": {(0, 0, 0, 0): 5.0}})
    assert edited["q"][0, 0, 0, 0] == 5.0
    assert edited["k"][0, 0, 0, 0] == edited["v"][0, 0, 0, 0] == toy_reference.toy()["k"][0, 0, 0, 0]
