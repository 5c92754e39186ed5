"""Writes what was announced as an Atom feed (RFC 4287), and sends it as a mail."""

import os
import re
import ssl
from collections.abc import Sequence
from email.message import EmailMessage
from email.utils import formatdate
from smtplib import SMTP, SMTPException
from urllib.parse import urlsplit
from uuid import UUID, uuid5

from citerec.bibliography.keys import paper_doi
from citerec.collect.client import CollectError
from citerec.config import Settings, setting
from citerec.display import filled, one_line, plural, web_address
from citerec.types import Json, Recommendation

PASSWORD = "CITEREC_SMTP_PASSWORD"
SECONDS = 60  # until the mail server answers
_NOT_IN_XML = re.compile("[\ufffe\uffff]")


class WatchConfig(Settings):
    """Which papers are announced, and how."""

    k: int = setting(
        20, "Announce new papers that are among so many best ones for a draft.", ge=1
    )
    mail: str = setting("", "Send what is new to this address, too, and from it.")
    smtp: str = setting(
        "localhost",
        f"The mail server, such as USER@smtp.example.org:587; {PASSWORD} has the password.",
    )


def described(found: Recommendation, feed: str, draft: str) -> Json:
    """Return a paper as the feed shows it; its id, a URN, is the same whenever it is described for a draft."""
    paper = found.paper
    doi = paper_doi(paper)
    about = (", ".join(paper.authors), paper.venue, *found.reasons, found.passage)
    return {
        "id": uuid5(UUID(feed), f"{draft}\n{paper.id}").urn,
        "title": clean(paper.title),
        "link": web_address(f"https://doi.org/{doi}" if doi else paper.url),
        "text": clean(". ".join(filter(None, about))),
    }


def clean(text: str) -> str:
    """Return a text on one line, in characters that XML has."""
    return _NOT_IN_XML.sub("\ufffd", one_line(text))


def atom(feed: str, updated: str, news: Sequence[Json]) -> str:
    """Return a feed with an id; the latest news are its first entries."""
    shown = {"feed": feed, "updated": updated, "news": news[::-1]}
    return filled("citerec.collect", "feed.atom", shown, autoescape=True)


def send(news: Sequence[Json], config: WatchConfig) -> None:
    """Send a mail, encrypted unless the server is on this machine.

    Raises:
        CollectError: If the server cannot be reached, cannot encrypt, has no certificate that is known, or refuses.
    """
    message = EmailMessage()
    message["Subject"] = f"{plural(len(news), 'new paper')} for your drafts"
    message["From"] = message["To"] = config.mail
    message["Date"] = formatdate()
    # the same if these are sent again, so that a mailbox may drop them
    message["Message-ID"] = f"<{UUID(news[-1]['id'])}@citerec.invalid>"
    message.set_content(filled("citerec.collect", "news.txt", {"news": news}))
    server = urlsplit(f"//{config.smtp}")
    host = server.hostname or ""
    try:
        with SMTP(host, server.port or 0, timeout=SECONDS) as client:
            if host not in ("localhost", "127.0.0.1"):
                client.starttls(context=ssl.create_default_context())
            if server.username:
                client.login(server.username, os.environ.get(PASSWORD, ""))
            client.send_message(message)
    except (OSError, SMTPException) as error:
        raise CollectError(
            f"{host} did not take the mail ({one_line(str(error))[:160]}); the feed has its papers, and the next run "
            "sends it"
        ) from error
