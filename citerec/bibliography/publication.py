"""Decides what kind of publication a paper is, for BibTeX, RIS and CSL.

A known `type` of the corpus decides; "article" and "review" are used for conferences, too: for them the venue decides.

Without a known type the name of the venue decides, by the first of these rules that applies:

1. a preprint server, a thesis, a technical report, by name;
2. "Journal of", "Transactions on": a journal; so are journals that are called proceedings (PNAS, Proceedings of the
IEEE, Proc. ACM on …);
3. a conference: "Proceedings", "Conference", "Workshop", "Symposium" and the like, or an edition such as "CHI '20";
4. a journal: a word that is common in names of serials (Letters, Review, Quarterly, …), a known name or acronym, or
   an abbreviated name ("Plant Physiol.");
5. a conference: a known acronym, alone or with its society, year or track: "ACL", "IEEE VIS (vast)", "NeurIPS 2020";
6. a journal: a stated volume or issue.

Any other venue is `UNKNOWN`: such a paper is written as a type that claims no kind (`@misc` with `howpublished`).
"""

import re
from enum import StrEnum
from pathlib import Path

from citerec.bibliography.entry import SERVER
from citerec.display import one_line
from citerec.files.reading import read_toml
from citerec.types import Paper


class Kind(StrEnum):
    """A kind of publication, as `kinds.toml` names it."""

    JOURNAL = "journal"  # an article of a journal or magazine
    CONFERENCE = "conference"  # a paper in proceedings
    CHAPTER = "chapter"
    BOOK = "book"
    THESIS = "thesis"
    REPORT = "report"
    PREPRINT = "preprint"
    UNKNOWN = "unknown"


KINDS = read_toml(Path(__file__).with_name("kinds.toml"))
_TYPES = {name: kind for kind in Kind for name in KINDS[kind]["stated"].split()}
# unless the venue is a conference
_JOURNAL_ARTICLES = {
    "article",
    "review",
    "articlereview",
}
MAX_NAME = 300  # characters of a venue's name that are read
_NOT_LETTERS = re.compile(r"[\W\d_]+")


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.IGNORECASE)


_CONFERENCES = (
    "3DV|AAAI|AAMAS|ACCV|ACL|AISTATS|AMIA|ASE|ASPLOS|AVI|BMVC|CADE|CAV|CCS|CHI|CHIIR|CIDR|CIKM|CLEF|CoNLL|COLING|COLM"
    "|COLT|CRYPTO|CSCW|CVPR|DAC|DATE|DIS|DSN|EACL|ECAI|ECCV|ECIR|ECML|ECSCW|EDBT|EMNLP|ESOP|ESORICS|ESWC|EuroSys"
    "|EuroVis|FAccT|FAST|FOCS|FPGA|FSE|GECCO|HPCA|HRI|HT|ICALP|ICASSP|ICCAD|ICCV|ICDCS|ICDE|ICDM|ICDT|ICFP|ICIP|ICLP"
    "|ICLR|ICME|ICML|ICPR|ICRA|ICSE|ICTIR|ICWSM|IJCAI|IJCNLP|InfoVis|INFOCOM|INTERACT|Interspeech|IPDPS|IROS|ISCA|ISIT"
    "|ISMAR|ISMB|ISMIR|ISSTA|ISWC|IUI|JCDL|KDD|LICS|LREC|MICCAI|MICRO|MM|MobiCom|MSR|NAACL|NDSS|NeurIPS|NIPS|NSDI"
    "|OOPSLA|OSDI|PacificVis|PAKDD|PLDI|PODC|PODS|POPL|PPoPP|RecSys|RSS|SC|SciVis|SDM|SIGCOMM|SIGCSE|SIGDIAL|SIGGRAPH"
    "|SIGIR|SIGKDD|SIGMETRICS|SIGMOD|SOCG|SODA|SOSP|SPAA|STACS|STOC|TACAS|TREC|UAI|UbiComp|UIST|USENIX|VAST|VIS|VLDB"
    "|VR|VRST|WACV|WINE|WSDM|WWW"
)
_THESIS = _words(r"thesis|dissertation")
_REPORT = _words(
    r"tech(?:nical|\.)? rep(?:ort)?s?|working papers?|white paper|research report|discussion papers?"
)
_SERIAL = _words(
    r"(?:journal|transactions|annals|archives|bulletin|communications) (?:of|on|for)"
)
_PROCEEDINGS_JOURNAL = re.compile(  # serials of academies and societies, which are not conference proceedings
    r"proc(?:eedings|\.)? (?:of )?(?:the )?(?:united states )?"
    r"(?:nat(?:ional|l\.?|\.|i\.)? acad|roy(?:al|\.) soc|r\.? soc|biol|ieee$|lond(?:on|\.)? math"
    r"|amer(?:ican|\.)? (?:math|phil)|edinburgh math|cambridge phil|vldb endow|japan acad|inst(?:itution)? |nutr|zool"
    r"|biological|entomological|physical soc"
    r"|acm (?:on|hum|meas|interact|program|manag|softw|comput)\b)"
    r"|aslib proceedings$",
    re.IGNORECASE,
)
_MEETING = _words(
    r"proceedings|proc(?!\.?$)|conference|conf(?=\.)|workshops?|symposium|symposia|symp(?=\.)|congress|convention"
    r"|colloquium|colloquia|annual meeting|summer school|shared task|companion|extended abstracts|findings of"
    r"|advances in neural information processing systems|lecture notes in computer science"
)
_EDITION = re.compile(  # CHI EA '20, WIMS 2020, CoCo@NIPS
    r"\w ?['’][0-9]{2}(?: \w+)?$|^(?=\w*[A-Z]\w*[A-Z])\w{2,12} ?(?:19|20)[0-9]{2}$|\w@\w"
)
_JOURNAL = _words(
    r"journal|j|j(?=\.)|trans(?=\.)|transactions|letters|lett(?=\.)|reviews?|rev(?=\.)|annals|ann(?=\.)|quarterly"
    r"|magazine|bulletin|bull(?=\.)|archives?|arch(?=\.)|acta|zeitschrift|z(?=\.)|revue|revista|rivista|annales"
    r"|newsletter|forum|gazette|surveys|surv(?=\.)|frontiers in|trends in|progress in|opinion in|communications"
    r"|research"
    r"|nature|science|cell|lancet|plos|bmc|jama|bmj|elife|neuron|genetics|genome|ieee internet computing"
    r"|TACL|JMLR|TMLR|JAIR|TVCG|CG&A|CACM|JACM|PNAS|PAMI|TPAMI|TKDE|TOIS|TODS|TOPLAS|TOCHI|TIST|IJCV|JASIST|PVLDB|IMWUT"
)
_JOURNAL_NAMES = re.compile(
    r"\A(?:machine learning|neural (?:computation|networks)|bioinformatics|computational linguistics"
    r"|artificial intelligence|communications of the acm|computer|information sciences|information retrieval"
    r"|information processing (?:&|and) management|pattern recognition|neurocomputing|neuroimage|development"
    r"|evolution|ecology|oecologia|blood|circulation|brain|econometrica|biometrika|biometrics|technometrics"
    r"|psychometrika|cognition|scientometrics|scientific reports|computer networks and isdn systems)\Z",
    re.IGNORECASE,
)
_ACRONYM = re.compile(
    rf"\A(?:(?:ACM|IEEE|USENIX|CVF)[ /-])*(?:{_CONFERENCES})(?:[0-9]*|\W.*)\Z"
)
_ABBREVIATED = re.compile(
    r"\b(?!(?:univ|dept|inc|ltd|corp|press|eds?|vol)\.)[^\W\d_]{2,}\.(?=\s|,|$)", re.I
)
_RULES = (  # the first pattern with a match in the venue's name decides
    (SERVER, Kind.PREPRINT),
    (_THESIS, Kind.THESIS),
    (_REPORT, Kind.REPORT),
    (_SERIAL, Kind.JOURNAL),
    (_PROCEEDINGS_JOURNAL, Kind.JOURNAL),
    (_MEETING, Kind.CONFERENCE),
    (_EDITION, Kind.CONFERENCE),
    (_JOURNAL, Kind.JOURNAL),
    (_JOURNAL_NAMES, Kind.JOURNAL),
    (_ABBREVIATED, Kind.JOURNAL),
    (_ACRONYM, Kind.CONFERENCE),
)


def kind_of(paper: Paper) -> Kind:
    """Return the kind of publication of `paper`, by the rules above."""
    stated = _NOT_LETTERS.sub("", paper.type).lower()
    if stated in _TYPES:
        return _TYPES[stated]
    if not paper.venue:
        return Kind.UNKNOWN
    venue = one_line(paper.venue)[:MAX_NAME]
    for pattern, kind in _RULES:
        if pattern.search(venue):
            return kind
    is_serial = paper.volume or paper.issue or stated in _JOURNAL_ARTICLES
    return Kind.JOURNAL if is_serial else Kind.UNKNOWN
