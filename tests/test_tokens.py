"""The tokens of an index's papers: cut once, kept in it, and never taken for those of other papers."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Thread

import numpy as np
import pytest

from citerec.embed import EmbedConfig, embed_anew
from citerec.encode.opening import open_encoder
from citerec.errors import IndexDamagedError
from citerec.folder import PAPERS, IndexFolder, open_index, verify_index
from citerec.index import tokens
from citerec.index.tokens import ABOUT, IDS, FreshTokens, TokenStore, open_tokens, write_tokens

TOKENIZER = "ab" * 32  # a sha256
VOCABULARY = 128  # ASCII
RECORDS = [
    {"id": "1", "title": "ab", "abstract": "c"},
    {"id": "2", "title": "", "abstract": ""},
    {"id": "3", "title": "a"},
]


def letters(texts: Sequence[str]) -> list[list[int]]:
    return [[ord(letter) for letter in text] for text in texts]


@pytest.fixture
def index(build: Callable[..., IndexFolder]) -> IndexFolder:
    return build(RECORDS)


@pytest.fixture
def store(index: IndexFolder) -> TokenStore:
    made = write_tokens(index, TOKENIZER, letters, vocabulary=128)
    assert isinstance(made, TokenStore)
    return made


def folder_of(index: IndexFolder) -> Path:
    (folder,) = (index.path / "tokens").iterdir()
    return folder


def test_the_tokens_of_each_paper_come_back(store: TokenStore) -> None:
    assert store.of([0, 2, 0]) == {0: [97, 98, 32, 99], 2: [97]}  # "ab c", "a"
    assert store.of([]) == {}


def test_a_store_is_found_again_by_its_tokenizer(index: IndexFolder, store: TokenStore) -> None:
    found = open_tokens(index, TOKENIZER, vocabulary=VOCABULARY)

    assert found is not None
    assert found.of(range(2)) == store.of(range(2))
    assert open_tokens(index, "cd" * 32, vocabulary=VOCABULARY) is None


@pytest.mark.parametrize(("vocabulary", "kind"), [(1 << 16, np.uint16), ((1 << 16) + 1, np.uint32)])
def test_ids_take_the_room_that_the_vocabulary_needs(
    index: IndexFolder, vocabulary: int, kind: type
) -> None:
    last = vocabulary - 1

    made = write_tokens(
        index, TOKENIZER, lambda texts: [[last] for _ in texts], vocabulary=vocabulary
    )

    assert isinstance(made, TokenStore)
    assert made.ids.dtype == kind
    assert made.of([0]) == {0: [last]}


def test_fresh_tokens_are_the_same(index: IndexFolder, store: TokenStore) -> None:
    rows = range(len(index.papers))

    assert FreshTokens(index.papers, letters).of(rows) == store.of(rows)


def test_fresh_tokens_are_cut_once_and_so_many_are_remembered(
    index: IndexFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def cut(texts: Sequence[str]) -> list[list[int]]:
        asked.extend(texts)
        return letters(texts)

    monkeypatch.setattr(tokens, "KEPT", 2)
    fresh = FreshTokens(index.papers, cut)

    assert fresh.of([0, 2]) == fresh.of([2, 0]) == {0: [97, 98, 32, 99], 2: [97]}
    assert asked == ["ab c", "a"]
    assert fresh.unknown([0, 1, 2, 1]) == 1
    fresh.of([1])
    assert fresh.unknown([0, 1, 2]) == 1  # the oldest is gone


def test_progress_is_told_to_the_end(index: IndexFolder) -> None:
    told: list[tuple[str, int, int]] = []

    write_tokens(index, TOKENIZER, letters, vocabulary=9, progress=lambda *what: told.append(what))

    assert told[0] == ("cutting", 0, len(index.papers))
    assert told[-1] == ("cutting", len(index.papers), len(index.papers))


# --- whose they are


def test_a_store_of_other_papers_is_not_used(index: IndexFolder, store: TokenStore) -> None:
    sums = {**index.manifest.checksums, PAPERS: "00" * 32}
    other = replace(index, manifest=replace(index.manifest, checksums=sums))

    assert open_tokens(other, TOKENIZER, vocabulary=VOCABULARY) is None


def test_who_opened_an_index_before_it_was_built_anew_writes_nothing_into_it(
    index: IndexFolder, build: Callable[..., IndexFolder]
) -> None:
    told: list[str] = []
    anew = build([*RECORDS, {"id": "4", "title": "new"}], force=True)
    write_tokens(anew, TOKENIZER, letters, vocabulary=128)

    made = write_tokens(index, TOKENIZER, letters, vocabulary=128, log=told.append)

    assert isinstance(made, FreshTokens)
    assert made.of([2]) == {2: [97]}
    assert "was replaced while it was opened" in told[0]
    assert open_tokens(anew, TOKENIZER, vocabulary=VOCABULARY) is not None


def test_an_index_that_is_built_anew_while_its_papers_are_cut_gets_no_tokens(
    index: IndexFolder, build: Callable[..., IndexFolder]
) -> None:
    def slowly(texts: Sequence[str]) -> list[list[int]]:
        build([*RECORDS, {"id": "4", "title": "new"}], force=True)
        return letters(texts)

    made = write_tokens(index, TOKENIZER, slowly, vocabulary=128)

    assert isinstance(made, FreshTokens)
    assert not (index.path / "tokens").exists()
    assert len(open_index(index.path).papers) == 4


def test_two_threads_that_keep_them_at_once_both_get_a_store(index: IndexFolder) -> None:
    together, told = Barrier(2), list[str]()
    made: list[TokenStore | FreshTokens] = []

    def cut(texts: Sequence[str]) -> list[list[int]]:
        together.wait(10)  # both are at it
        return letters(texts)

    def keep() -> None:
        made.append(write_tokens(index, TOKENIZER, cut, vocabulary=128, log=told.append))

    threads = [Thread(target=keep) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert told == []
    assert [type(tokens) for tokens in made] == [TokenStore, TokenStore]
    assert [tokens.of([2]) for tokens in made] == [{2: [97]}] * 2
    verify_index(index.path)


@pytest.mark.parametrize("name", [ABOUT, IDS])
def test_a_store_that_is_not_whole_is_not_used(
    index: IndexFolder, store: TokenStore, name: str
) -> None:
    (folder_of(index) / name).write_bytes(b"\x93")

    assert open_tokens(index, TOKENIZER, vocabulary=VOCABULARY) is None


def test_a_build_that_fails_leaves_nothing(index: IndexFolder) -> None:
    def refuse(_: Sequence[str]) -> list[list[int]]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_tokens(index, TOKENIZER, refuse, vocabulary=128)

    assert not (index.path / "tokens").exists()
    verify_index(index.path)


def test_where_nothing_can_be_written_papers_are_cut_as_they_come(index: IndexFolder) -> None:
    told: list[str] = []
    (index.path / "tokens").write_text("in the way")  # root may write into any folder

    made = write_tokens(index, TOKENIZER, letters, vocabulary=128, log=told.append)

    assert isinstance(made, FreshTokens)
    assert made.of([2]) == {2: [97]}
    assert len(told) == 1
    assert "the tokens of its papers cannot be stored" in told[0]


# --- inside an index


def test_an_index_with_tokens_is_whole(index: IndexFolder, store: TokenStore) -> None:
    before = index.manifest

    assert verify_index(index.path) == before
    assert open_index(index.path).manifest == before


def test_a_flipped_byte_is_found(index: IndexFolder, store: TokenStore) -> None:
    file = folder_of(index) / IDS
    raw = bytearray(file.read_bytes())
    raw[-1] ^= 1
    file.write_bytes(raw)

    with pytest.raises(
        IndexDamagedError, match=r"ids\.npy is not what was written; remove .*tokens"
    ):
        verify_index(index.path)


def test_tokens_outlive_new_vectors(index: IndexFolder, store: TokenStore, tiny_model: str) -> None:
    embed_anew(index.path, open_encoder(tiny_model), EmbedConfig())

    assert open_tokens(open_index(index.path), TOKENIZER, vocabulary=VOCABULARY) is not None
    verify_index(index.path)


def test_tokens_do_not_outlive_another_corpus(
    index: IndexFolder, store: TokenStore, build: Callable[..., IndexFolder]
) -> None:
    again = build([*RECORDS, {"id": "4", "title": "new"}], force=True)

    assert open_tokens(again, TOKENIZER, vocabulary=VOCABULARY) is None
    verify_index(again.path)
