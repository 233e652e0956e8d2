"""Pieces that are put together again."""

from __future__ import annotations

import numpy as np

from allonym.intruder.rejoining import Bag, find_documents


def test_a_bag_of_two_pieces_does_not_hide_what_joining_finds_in_the_others():
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    scores = np.array([[9.0, 0], [9, 0], [9, 0], [0, 1], [0, 9], [0, 9], [0, 9], [1, 0]])
    large = Bag(labels, labels, np.arange(8), [""] * 8)
    small = Bag(np.array([2, 3]), np.array([0, 1]), np.arange(2), ["", ""])
    same = (labels[:, None] == labels[None, :]) - np.eye(8)
    alone = find_documents([large], [scores], [same], 1)
    both = find_documents([large, small], [scores, np.eye(2)], [same, np.zeros((2, 2))], 1)
    assert alone.shares == [1.0, 1.0] and both.shares == [1.0] * 4
