"""How a paper or a draft becomes the text that a stage reads."""

from hypothesis import given
from hypothesis import strategies as st

from citerec.text import QueryForm, contents, query_text, without_stop_words
from citerec.types import Paper, Query


def test_a_paper_is_read_as_title_then_abstract() -> None:
    assert contents(Paper(id="p", title="Title", abstract="Abstract")) == "Title\nAbstract"


def test_a_paper_without_an_abstract_is_read_as_its_title() -> None:
    assert contents(Paper(id="p", title="Title")) == "Title"


def test_a_query_is_read_as_its_form_says() -> None:
    query = Query(id="q", title="Title", abstract="Abstract")

    texts = {form: query_text(query, form) for form in QueryForm}

    assert texts == {
        QueryForm.TITLE: "Title",
        QueryForm.TITLE_ABSTRACT: "Title\nAbstract",
        QueryForm.KEY_TERMS: "Title\nAbstract",
    }


def test_function_words_and_single_characters_are_dropped() -> None:
    kept = without_stop_words("We propose a theory of K nearest Neighbours")

    assert kept.split() == ["propose", "theory", "nearest", "Neighbours"]


def test_a_word_that_holds_a_function_word_stays() -> None:
    assert without_stop_words("theory offline") == "theory offline"


def test_a_text_of_function_words_alone_stays_as_it_is() -> None:
    assert without_stop_words("To be or not to be") == "To be or not to be"


@given(st.text())
def test_a_text_with_words_never_becomes_one_without(text: str) -> None:
    has_words = any(c.isalnum() for c in text)

    kept = without_stop_words(text)

    assert any(c.isalnum() for c in kept) == has_words
