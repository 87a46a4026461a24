from elastream.predictors.basic import Basic


def test_the_last_samples_come_again() -> None:
    assert Basic().predict([1, 2, 3, 4, 5, 6, 7], 3).values.tolist() == [5, 6, 7]


def test_a_short_history_comes_again_and_again() -> None:
    assert Basic().predict([1, 2, 3], 7).values.tolist() == [1, 2, 3, 1, 2, 3, 1]
