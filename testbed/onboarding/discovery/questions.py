"""Questions about what could not be found out. Without a terminal, or with --yes, the default answers are taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Question(NamedTuple):
    """A question that was not answered, and the key of the driver file that it is about."""

    key: str
    text: str


@dataclass
class Questions:
    """Asks the user, and keeps what was answered by default, for comments in the driver file.

    `ask` gets a question, the possible answers and the default, and returns an answer. None: the defaults are taken.
    """

    ask: Callable[[str, Sequence[str], str], str] | None = None
    open: list[Question] = field(default_factory=list)

    def choose(self, key: str, question: str, answers: Sequence[str], default: str) -> str:
        """Return the answer to a question about a key of the driver file. One possible answer is no question."""
        if len(answers) == 1:
            return answers[0]
        if self.ask:
            return self.ask(question, answers, default)
        self.note(key, f"{question} ({', '.join(answers)})")
        return default

    def confirm(self, key: str, question: str) -> bool:
        """Return True if the user says yes. The default is no."""
        if self.ask:
            return self.ask(question, ("no", "yes"), "no") == "yes"
        self.note(key, question)
        return False

    def note(self, key: str, text: str) -> None:
        """Keep a question that only the vendor can answer, by editing the file."""
        self.open.append(Question(key, text))
