"""Messages for the log and for the terminal: cut, printable, on one line."""

MAX_MESSAGE_CHARACTERS = 20_000
"""Length of a failure message in the log, which every process reads whole."""

MAX_HEADLINE_CHARACTERS = 1000
"""Length of a failure message on a line of the terminal."""


def readable(text: str) -> str:
    """Return ``text`` so that it can be stored: cut if it is too long, and valid Unicode."""
    return cut(text, MAX_MESSAGE_CHARACTERS).encode("utf-8", "backslashreplace").decode("utf-8")


def is_unicode(text: str) -> bool:
    """Return True for a text that can be stored; a text may hold half of a surrogate pair.

    >>> is_unicode("é"), is_unicode(chr(0xD800))
    (True, False)
    """
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def cut(text: str, length: int) -> str:
    """Return the beginning and the end of a text of more than ``length`` characters, with a note
    between them.

    >>> cut("a" * 50 + "b" * 950, 100)[-60:]
    'aaa\\n[940 characters left out]\\nbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'
    """
    if len(text) <= length:
        return text
    part = (length - 40) // 2
    return f"{text[:part]}\n[{len(text) - 2 * part} characters left out]\n{text[-part:]}"


def printable(text: str) -> str:
    """Return ``text`` without control characters, which could control the terminal.

    >>> printable("a name\\x1b[2J")
    'a name�[2J'
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else "�" for letter in text)


def headline(message: str) -> str:
    """Return a message on one line: its first line, and its last one if a traceback or the end of a
    log follows.

    >>> headline("the script exited with code 1\\nTraceback ...\\n  x\\nModuleNotFoundError: No module named 'torch'")
    "the script exited with code 1: ModuleNotFoundError: No module named 'torch'"
    """
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    if not lines:
        return ""
    # The last line of a traceback may repeat the first one, with a module before the error's name.
    told = lines[-1] in lines[0] or lines[-1].endswith(lines[0])
    shown = lines[0] if told else f"{lines[0]}: {lines[-1]}"
    return shown if len(shown) <= MAX_HEADLINE_CHARACTERS else shown[:MAX_HEADLINE_CHARACTERS] + "…"


def shortened(value: object, length: int = 300) -> str:
    """Return a value, or the text of an exception, as a message may show it."""
    text = str(value) if isinstance(value, Exception) else repr(value)
    return text if len(text) <= length else text[:length] + "…"
