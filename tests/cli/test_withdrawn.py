"""What is gone is refused with what took its place, and the secret is not repeated."""

import pytest

from scrimp.cli.withdrawn import DASHBOARD, KEYS, refuse_token
from scrimp.errors import StudyError


@pytest.mark.parametrize("remedy", [KEYS, DASHBOARD])
@pytest.mark.parametrize("value", ["", "hunter2secret"])
def test_tokens_are_refused(remedy: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCRIMP_TOKEN", raising=False)
    refuse_token(None, remedy)
    with pytest.raises(StudyError) as refused:
        refuse_token(value, remedy)
    assert remedy in str(refused.value) and "hunter2" not in str(refused.value)
    monkeypatch.setenv("SCRIMP_TOKEN", value)
    with pytest.raises(StudyError) as refused:
        refuse_token(None, remedy)
    assert remedy in str(refused.value) and "hunter2" not in str(refused.value)
