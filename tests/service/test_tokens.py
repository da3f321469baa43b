"""Tokens: made, verified and revoked; the file never holds a secret."""

import os
import threading
from pathlib import Path

import pytest

from scrimp.errors import StudyError
from scrimp.service.tokens import TokenFile, default_path


@pytest.fixture
def tokens(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path / "settings" / "tokens.json")


def test_a_token_counts_until_it_is_revoked(tokens: TokenFile) -> None:
    text, token = tokens.make("work", "team/", "ann")
    assert tokens.remembered(text) is None
    assert tokens.grant(text) == tokens.remembered(text) == tokens.known(token.id) == token
    server = TokenFile(tokens.path)
    assert server.grant(text) == token
    tokens.revoke(token.id)
    assert server.remembered(text) is None and server.grant(text) is None
    assert server.known(token.id) is None
    with pytest.raises(StudyError, match=f"no token '{token.id}'.*there are none"):
        tokens.revoke(token.id)


def test_a_new_token_leaves_others_verified(tokens: TokenFile) -> None:
    text, token = tokens.make("work")
    server = TokenFile(tokens.path)
    assert server.grant(text) == token
    _, other = tokens.make("read")
    assert server.known(other.id) == other and server.remembered(text) == token
    tokens.revoke(token.id)
    assert server.remembered(text) is None


def test_a_text_that_was_verified_counts_for_its_own_hash_alone(tokens: TokenFile) -> None:
    """The file of another server is put in its place, with another secret under the same id."""
    text, token = tokens.make("own")
    _, other = tokens.make("read")
    server = TokenFile(tokens.path)
    assert server.grant(text) == token
    changed = tokens.path.read_text().replace(token.hash, other.hash)
    tokens.path.with_suffix(".new").write_text(changed)
    os.replace(tokens.path.with_suffix(".new"), tokens.path)
    assert server.known(token.id) is not None
    assert server.remembered(text) is None and server.grant(text) is None


def test_other_texts_are_no_tokens(tokens: TokenFile) -> None:
    text, token = tokens.make("own")
    other, _ = tokens.make("own")
    crossed = f"scrimp_{token.id}_{other.rpartition('_')[2]}"
    for wrong in (
        "",
        "scrimp",
        text[:-1],
        text + "A",
        crossed,
        text.upper(),
        "scrimp_é_é",
        "_" * 9,
    ):
        assert tokens.grant(wrong) is None and tokens.remembered(wrong) is None
    assert tokens.grant(f"scrimp_{token.id}_{'a' * 10**6}") is None


def test_the_file_holds_no_secret_and_is_private(tokens: TokenFile) -> None:
    text, _ = tokens.make("own")
    content = tokens.path.read_text()
    assert text.split("_", 2)[2] not in content
    assert os.stat(tokens.path).st_mode & 0o077 == 0
    assert os.stat(tokens.path.parent).st_mode & 0o077 == 0
    assert [path.name for path in tokens.path.parent.iterdir()] == ["tokens.json"]


def test_each_role_has_the_rights_of_those_before(tokens: TokenFile) -> None:
    made = {role: tokens.make(role, "team/")[1] for role in ("read", "work", "own")}  # type: ignore[arg-type]
    assert [made["work"].may(role) for role in ("read", "work", "own")] == [True, True, False]  # type: ignore[arg-type]
    assert made["own"].may("own") and not made["read"].may("work")
    assert made["read"].covers("team/a") and not made["read"].covers("teams")


def test_what_cannot_be_a_token_is_refused(tokens: TokenFile) -> None:
    with pytest.raises(StudyError, match="role is 'root'"):
        tokens.make("root")  # type: ignore[arg-type]
    with pytest.raises(StudyError, match="not printable"):
        tokens.make("read", name="\x1b[2J")
    assert tokens.all() == []


def test_several_processes_make_tokens(tokens: TokenFile) -> None:
    threads = [threading.Thread(target=TokenFile(tokens.path).make, args=("read",)) for _ in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tokens.all()) == 4


def test_a_broken_file_is_named(tokens: TokenFile) -> None:
    tokens.make("read")
    tokens.path.write_text('{"a": 1}')
    with pytest.raises(StudyError, match="is not a token file"):
        tokens.all()


def test_where_the_file_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SCRIMP_TOKENS", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert default_path() == tmp_path / "scrimp" / "tokens.json"
    monkeypatch.setenv("SCRIMP_TOKENS", str(tmp_path / "mine.json"))
    assert default_path() == tmp_path / "mine.json"
