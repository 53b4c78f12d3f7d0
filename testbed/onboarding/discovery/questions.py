"""Questions about what could not be found out. Without a terminal, or with --yes, the default answers are taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass
class Questions:
    """Asks the user, and keeps what was answered by default, for comments in the driver file.

    `ask` gets a question, the possible answers (none: any text) and the default, and returns an answer. None: the defaults are taken.
    """

    ask: Callable[[str, Sequence[str], str], str] | None = None
    open: dict[str, str] = field(default_factory=dict)  # questions by the key of the driver file

    def choose(self, key: str, question: str, answers: Sequence[str], default: str) -> str:
        """Return the answer to a question about a key of the driver file. One possible answer is no question."""
        if len(answers) == 1:
            return answers[0]
        if self.ask:
            return self.ask(question, answers, default)
        listed = f" ({', '.join(answers)})" if answers else ""
        self.open[key] = f"{question}{listed}"
        return default

    def note(self, key: str, text: str) -> None:
        """Keep a question that only the vendor can answer, by editing the file."""
        self.open[key] = text
