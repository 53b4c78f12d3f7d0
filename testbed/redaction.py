"""Removes credentials from every text that leaves the process: events, evidence, logs and messages. Used by the writers of these texts.

Linear in the length of the text. docs/threat-model.md says what it cannot recognise.
"""

from __future__ import annotations

import base64
import binascii
import functools
import json
import os
import re
import stat
import string
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

MARK = "(redacted)"
_SHORTEST = 8  # characters: shorter values occur in harmless texts
# All but tabs and ends of lines; also those that change the direction of text.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")
_MOST_VALUES = 2000
_CHUNK = 1 << 20  # characters of a file that are redacted at once
_LONGEST_PEM = 1 << 16

_WORDS = ("secret", "token", "passw", "passphrase", "credential", "key", "pwd", "auth", "cookie", "cred", "bearer")
_PART_OF_NAME = re.compile(r"secret|token|passw|passphrase|credential|bearer|(?:api|access|private|client|signing)key")
_WORD_OF_NAME = frozenset({"key", "keys", "pwd", "auth", "authorization", "cookie", "cred", "creds"})
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# Names in Kubernetes objects and logs that contain one of the words, and never a secret.
_HARMLESS = frozenset(
    {
        *(
            "key",
            "keys",
            "secretname",
            "secretref",
            "secretkeyref",
            "secretnamespace",
            "imagepullsecrets",
            "topologykey",
        ),
        *("matchlabelkeys", "mismatchlabelkeys", "automountserviceaccounttoken", "serviceaccounttoken", "publickey"),
        *("serviceaccounttokens", "tokenexpirationseconds", "nodepublishsecretref", "identitykey", "labelkey"),
    }
)
_PEM = re.compile(
    r"-----BEGIN [A-Z0-9 ]{1,40}-----"
    rf"(?:(?:[^-]|-(?!----)){{0,{_LONGEST_PEM}}}+-----END [A-Z0-9 ]{{1,40}}-----|[A-Za-z0-9+/=\s\\]*+)"
)
_END_OF_PEM = re.compile(
    r"(?:^[ \t]*+[A-Za-z0-9+/=]{16,}+[ \t\r]*+\n)++[ \t]*+-----END [A-Z0-9 ]{1,40}-----", re.MULTILINE
)
_ENCODED_PEM = re.compile(r"LS0tLS1CRUdJTi[A-Za-z0-9+/=]*+")
_JWT = re.compile(r"eyJ(?:(?<![\w-]eyJ)|(?<=\\[nrt]eyJ))[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]*+){0,3}")
_USER_OF_URL = re.compile(r"://(?P<user>[^\s/@:\"'<>]{0,256}+)(?P<password>:[^\s/@\"'<>]{0,1024}+)?@")
_HEADER = re.compile(r"(?i:authorization|cookie)\\*+[\"']?[ \t]{0,4}+[:=][ \t]{0,4}+\\*+[\"']?(?P<value>[^\r\n\"']++)")
_BEARER = re.compile(r"(?i:bearer)[ \t]{1,4}+(?P<value>[\w.~+/=-]{8,}+)")
_OPTION = re.compile(  # --token VALUE
    r"-(?<![\w.-]-)-?(?P<name>[A-Za-z][\w-]{0,60}+)[ \t]{1,4}+(?P<value>\"[^\"\r\n]*+|'[^'\r\n]*+|[^\s\"'-]\S*+)"
)
_NAME_AND_VALUE = re.compile(  # an entry of a container's `env`
    r"name\\*+[\"']?[ \t]{0,4}+:[ \t]{0,4}+\\*+[\"']?(?P<name>[\w.-]{1,253}+)\\*+[\"']?[ \t]{0,4}+,?\s{0,40}+\\*+[\"']?value\\*+[\"']?"
    r"[ \t]{0,4}+:[ \t]{0,4}+(?P<value>\\++\"[^\\\"\r\n]*+|\"(?:[^\"\\\r\n]|\\[^\r\n])*+|'[^'\r\n]*+|[^\s,}\"'\\][^\r\n,}]*+)"
)
# In the lower-case text: a word of a secret's name, the rest of the name, and what separates it from its value.
_NAME = re.compile(rf"(?:{'|'.join(_WORDS)})[\w.-]{{0,40}}+\\*+[\"']?[ \t]{{0,4}}+(?:=>|:=|[:=](?!=))[ \t]{{0,8}}+")
_IN_NAMES = string.ascii_letters + string.digits + "_.-"
_QUOTED = r"(?P<quote>\\++[\"'])(?:[^\\\"'\r\n]|\\++[^\\\"'\r\n])*+|\"(?:[^\"\\\r\n]|\\[^\r\n])*+|'[^'\r\n]*+"
_BLOCK = r"(?P<block>[|>][-+0-9]{0,2}[ \t]*+\r?\n)(?P<lines>(?:[ \t]++[^\r\n]*+(?:\r?\n|\Z)|[ \t]*+\r?\n)++)"  # of YAML
_VALUE_TO_END_OF_LINE = re.compile(rf"{_BLOCK}|{_QUOTED}|[^\r\n]++")
_VALUE_OF_ONE_WORD = re.compile(rf"{_QUOTED}|[^\s\"'\\&]++")
# Of an error about a file whose name looks secret: my-key:27: spec.driver: …
_LINE_OF_FILE = re.compile(
    r"(?<=:)\d{1,4}: (?:[A-Za-z][\w.\[\]-]{0,200}+: |not valid YAML: |\d{1,4} files do not exist: )"
)
_BEFORE_NAME = re.compile(r"[ \t]*+(?:(?:-|export|E|\d++:)[ \t]++)?+[\"']?\Z")
_QUOTE = re.compile(r"\\*[\"']?")
_CHARACTERS_FOR_NAME = 40  # a text with more names than one in so many characters is hostile


@functools.lru_cache(maxsize=10_000)
def is_secret_name(name: str) -> bool:
    """Return True if a variable or key of this name probably has a secret as its value."""
    if name.lower().endswith((".yaml", ".yml", ".py", ".go")):
        return False  # the number after it is a line
    plain = re.sub(r"[-_.]", "", name).lower()
    if plain in _HARMLESS or name.endswith((".go", ".py", "Error", "Exception")):
        return name == "KEY"
    words = {each.lower() for each in _WORD.findall(name)}
    upper_key = name.isupper() and plain.endswith("key")
    return bool(_PART_OF_NAME.search(plain)) or bool(words & _WORD_OF_NAME) or upper_key


def show_controls(text: str) -> str:
    """Return the text with control characters written as Python writes them: escaped.

    A driver or a tenant could otherwise change what a terminal or an editor shows: hide a failure, or reverse a line.
    """
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


class Redactor:
    """Replaces credentials in texts: by their shape, by the name before them, and values that were registered."""

    def __init__(self) -> None:
        self._values: dict[str, None] = {}
        self._readable: tuple[re.Pattern[str], ...] = ()

    def register(self, *values: str) -> None:
        """Remove these values from all texts from now on, also where they are encoded. Short values are ignored."""
        for value in values:
            lines = [value, *(value.splitlines() if "\n" in value else ())]
            for each in (line.strip() for line in lines):
                if len(each) >= _SHORTEST and len(self._values) < _MOST_VALUES:
                    encoded = base64.b64encode(each.encode("utf-8", "replace")).decode()
                    self._values.update(dict.fromkeys((each, json.dumps(each)[1:-1], encoded)))
        self._values = dict.fromkeys(sorted(self._values, key=len, reverse=True))  # a part of another one comes later

    def register_secret(self, secret: Mapping[str, Any]) -> None:
        """Register the values of a Kubernetes Secret."""
        self.register(*map(str, (secret.get("stringData") or {}).values()))
        for encoded in (secret.get("data") or {}).values():
            try:
                self.register(base64.b64decode(str(encoded), validate=True).decode(errors="replace"), str(encoded))
            except (ValueError, binascii.Error):
                self.register(str(encoded))

    def register_credentials(self, user: Any) -> None:
        """Register what a user of a kubeconfig has: token, password, and key."""
        names = ("token", "password", "client-key-data")
        self.register(*(user[each] for each in names if isinstance(user, dict) and isinstance(user.get(each), str)))

    def register_environment(self, environment: Mapping[str, str]) -> None:
        """Register the values of the variables with names of secrets. Paths are no secrets."""
        found = [value for name, value in environment.items() if is_secret_name(name)]
        self.register(*(each for each in found if not each.startswith(("/", "~"))))

    def keep_readable(self, patterns: Iterable[str]) -> None:
        """Leave lines alone that match one of the driver file's patterns, if the pattern itself has the name of a secret.

        A device's identity stays readable although its variable is called GPU_KEY. A pattern for any variable keeps none.
        """
        named = [
            each for each in patterns if is_secret_name(re.sub(r"\\.|[^\w.-]", "_", re.split(r"[=:]|\(\?P<", each)[0]))
        ]
        self._readable = tuple(re.compile(each) for each in named)

    def redact(self, text: str) -> str:
        """Return the text without credentials, and with control characters in a readable form."""
        return show_controls(self._without_credentials(text))

    def _without_credentials(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, MARK)
        if "-----BEGIN" in text:
            text = _PEM.sub(MARK, text)
        if "-----END" in text:
            text = _END_OF_PEM.sub(MARK, text)
        text = _ENCODED_PEM.sub(MARK, text)
        text = _JWT.sub(MARK, text)
        text = _USER_OF_URL.sub(_without_user, text)
        lower = text.lower()
        if not any(each in lower for each in _WORDS):
            return text
        if "authorization" in lower or "cookie" in lower:
            text = _HEADER.sub(_without_value, text)
        if "bearer" in lower:
            text = _BEARER.sub(_without_value, text)
        if "value" in lower:
            text = _NAME_AND_VALUE.sub(_without_named, text)
        return self._without_values(_OPTION.sub(_without_named, text))

    def redact_data(self, data: Any, *, secret: bool = False) -> Any:
        """Return a copy of what YAML or JSON contains, without credentials: also those that only the key before them shows."""
        if isinstance(data, Mapping):
            named = is_secret_name(str(data.get("name", ""))) and "value" in data
            return {
                self.redact(key) if isinstance(key, str) else key: self.redact_data(
                    value, secret=secret or is_secret_name(str(key)) or (named and key == "value")
                )
                for key, value in data.items()
            }
        if isinstance(data, list | tuple):
            return self._redact_list(data, secret=secret)
        if isinstance(data, str):
            return MARK if secret and data else self.redact(data)
        return MARK if secret and isinstance(data, int | float | bytes) and not isinstance(data, bool) else data

    def _redact_list(self, data: Iterable[Any], *, secret: bool) -> list[Any]:
        """Return the items; one that follows an option such as --token is its value."""
        made: list[Any] = []
        follows = False
        for each in data:
            made.append(self.redact_data(each, secret=secret or (follows and isinstance(each, str))))
            follows = isinstance(each, str) and each.startswith("-") and "=" not in each and is_secret_name(each)
        return made

    def redact_strings(self, data: Any) -> Any:
        """Return a copy of the data with each string redacted. The keys are ours, and say nothing about their values."""
        if isinstance(data, Mapping):
            return {key: self.redact_strings(value) for key, value in data.items()}
        if isinstance(data, list | tuple):
            return [self.redact_strings(each) for each in data]
        return self.redact(str(data)) if isinstance(data, str) else data

    def redact_file(self, path: Path) -> None:
        """Remove the credentials from a file, in chunks. Anything but a regular file is removed: it may lead out of the folder."""
        if not stat.S_ISREG(path.lstat().st_mode):
            path.unlink()
            return
        new = path.with_name(f".{path.name[:200]}.redacted")
        new.unlink(missing_ok=True)
        with (
            _text(path, os.O_RDONLY | os.O_NOFOLLOW, "r") as source,
            _text(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, "w") as target,
        ):
            for chunk in _chunks(source):
                target.write(self.redact(chunk))
        new.replace(path)

    def redact_folder(self, folder: Path) -> None:
        """Remove the credentials from all files in a folder, and all links."""
        for parent, folders, names in os.walk(folder, followlinks=False):
            for name in (*names, *(each for each in folders if Path(parent, each).is_symlink())):
                self.redact_file(Path(parent, name))

    def _without_values(self, text: str) -> str:
        """Replace the values after names of secrets. A value ends with its quote; else with the line that its name begins, or the word."""
        made: list[str] = []
        done, position, left = 0, 0, 1000 + len(text) // _CHARACTERS_FOR_NAME
        lower = text.lower()
        if len(lower) != len(text):  # some letters have two in lower case
            lower = "".join(each.lower() if each.isascii() else each for each in text)
        while found := _NAME.search(lower, position):
            position, left = found.end(), left - 1
            if not left:
                return "".join((*made, text[done : found.start()], _without_lines(text[found.start() :])))
            before = text[max(0, found.start() - 64) : found.start()]
            start = found.start() - len(before) + len(before.rstrip(_IN_NAMES))
            name = _leading_name(text[start : found.end()])
            value = self._value(text, start, found.end()) if is_secret_name(name) else None
            if value:
                made += [text[done : value.start()], _replacement(value)]
                done = position = value.end()
        return "".join((*made, text[done:]))

    def _value(self, text: str, start: int, end: int) -> re.Match[str] | None:
        """Return the value between `end` and the end of the line or word; `start` is where its name begins. None if it is no secret."""
        if _LINE_OF_FILE.match(text, end):
            return None
        begins = text.rfind("\n", max(0, start - 64), start) + 1
        at_start = bool(begins or start <= 64) and bool(_BEFORE_NAME.match(text[begins:start]))
        value = (_VALUE_TO_END_OF_LINE if at_start else _VALUE_OF_ONE_WORD).match(text, end)
        return None if value and self._is_readable(text[begins or start : value.end()].strip()) else value

    def _is_readable(self, line: str) -> bool:
        return len(line) < 4096 and any(each.search(line) for each in self._readable)


def _replacement(value: re.Match[str]) -> str:
    """Return what replaces a value: the same quotes, or the same indentation."""
    lines = value.groupdict().get("lines")
    if lines:
        indent = lines[: len(lines) - len(lines.lstrip(" \t"))]
        return value["block"] + indent + MARK + ("\n" if lines.endswith("\n") else "")
    return _QUOTE.match(value[0])[0] + MARK  # type: ignore[index]  # it matches any text


def _leading_name(text: str) -> str:
    return text[: len(text) - len(text.lstrip(_IN_NAMES))]


def _without_lines(text: str) -> str:
    """Remove all lines with a word of a secret's name, which is faster than finding each value."""
    return "\n".join(MARK if any(each in line.lower() for each in _WORDS) else line for line in text.split("\n"))


def _without_user(found: re.Match[str]) -> str:
    return f"://{found['user']}:{MARK}@" if found["password"] else f"://{MARK}@"


def _without_value(found: re.Match[str]) -> str:
    return found[0][: -len(found["value"])] + MARK


def _without_named(found: re.Match[str]) -> str:
    if not is_secret_name(found["name"]):
        return found[0]
    return found[0][: -len(found["value"])] + _QUOTE.match(found["value"])[0] + MARK  # type: ignore[index]  # it matches any text


def _text(path: Path, flags: int, mode: str) -> IO[str]:
    """Open a file whose bytes need not be valid text; they are kept."""
    descriptor = os.open(path, flags, 0o600)
    return open(descriptor, mode, encoding="utf-8", errors="surrogateescape", newline="")  # noqa: PTH123 - it is open already


def _chunks(source: IO[str]) -> Iterator[str]:
    """Yield the text in pieces that end with a line and not inside of a PEM block."""
    kept = ""
    while True:
        read = source.read(_CHUNK)
        if not read:
            yield kept
            return
        kept += read
        end = kept.rfind("\n") + 1 or (len(kept) if len(kept) > 8 * _CHUNK else 0)
        begun = kept.rfind("-----BEGIN ", max(0, end - _LONGEST_PEM), end)
        if begun >= 0 and "-----END " not in kept[begun:end]:
            end = begun
        yield kept[:end]
        kept = kept[end:]


redactor = Redactor()  # of this process
