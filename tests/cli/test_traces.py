def test_all_traces_are_listed_with_their_shape(elastream):
    ended = elastream("traces")
    assert ended.code == 0
    assert "spiky" in ended.out
    assert "▁" in ended.out
    assert len(ended.out.splitlines()) == 14


def test_one_trace_is_drawn(elastream, tmp_path):
    ended = elastream("traces", "spiky", "--out", tmp_path / "new" / "spiky.png")
    assert ended.code == 0
    assert (tmp_path / "new" / "spiky.png").stat().st_size > 1000


def test_a_file_is_a_trace_too_and_an_unknown_name_is_refused(elastream, tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("time,value\n0,10\n1,30\n")
    assert "a file" in elastream("traces", file).out
    refused = elastream("traces", "spikey")
    assert refused.code == 2
    assert "spikey: there is no such file" in refused.err
    unwritable = elastream("traces", "step", "--out", tmp_path / "step.xyz")
    assert unwritable.code == 2
    assert "cannot be written" in unwritable.err
