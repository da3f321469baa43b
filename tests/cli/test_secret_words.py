"""Secrets of the dashboard: where they come from, and which are refused."""

from pathlib import Path

import pytest

from scrimp.cli.secret_words import READ, SHORTEST, WRITE, given_secret, made_up
from scrimp.errors import StudyError

GOOD = "correct-horse-battery-staple"


@pytest.fixture(autouse=True)
def _none_given(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (READ, WRITE):
        monkeypatch.delenv(name, raising=False)


def test_from_a_file_or_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert given_secret(WRITE, None) is None
    monkeypatch.setenv(WRITE, GOOD)
    assert given_secret(WRITE, None) == GOOD and given_secret(READ, None) is None
    (tmp_path / "token").write_text(f"{GOOD}-2\n")
    assert given_secret(WRITE, tmp_path / "token") == f"{GOOD}-2"
    with pytest.raises(StudyError, match=r"cannot read the secret.*openssl rand"):
        given_secret(WRITE, tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("secret", "why"),
    [
        ("", "empty"),
        ("pa55w", "5 characters"),
        ("pässwort-pässwort", "character"),
        ("😀" * 20, "character"),
        ("ÿ" * 20, "character"),
        ('a b;c="d" and more of it', "character"),
        ("twenty-characters\n-more", "character"),
        ("twenty%20characters", "character"),
    ],
)
def test_empty_short_and_odd_secrets_are_refused(
    secret: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(WRITE, secret)
    (tmp_path / "token").write_text(secret)
    for file in (None, tmp_path / "token"):
        with pytest.raises(StudyError, match=why) as refused:
            given_secret(WRITE, file)
        assert "openssl rand" in str(refused.value) and (
            not secret or secret not in str(refused.value)
        )


def test_what_is_made_up_passes_and_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    made = made_up()
    monkeypatch.setenv(WRITE, made)
    assert given_secret(WRITE, None) == made != made_up() and len(made) >= 2 * SHORTEST
