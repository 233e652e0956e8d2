from allonym.replace.remarks import lacked, without_model


def test_what_is_written_is_read():
    remarks = ["llm: 2 requests", lacked("llm", 12, 40, "llm: 7 of 9 no"), "x", lacked("seq2seq", 3, 5)]
    assert remarks[1] == "llm: 12 of 40 entities got an offline pseudonym (llm: 7 of 9 no)"
    assert without_model(remarks) == 15
    assert without_model([]) == without_model(["5 of 9 entities got an offline pseudonym"]) == 0
