"""The merged log: claims decide the order, whatever a killed or unlucky writer leaves behind is
skipped."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from scrimp.errors import Conflict, StorageError, StudyError
from scrimp.storage import journal_log
from scrimp.storage.event_json import link
from scrimp.storage.journal import JournalStorage
from scrimp.storage.journal_log import JournalLog
from scrimp.testing.storages import first_event, report_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def log(folder: Path) -> JournalLog:
    return JournalLog(folder, "digits", "journal:///x")


def whole(folder: Path) -> list[bytes]:
    fresh = log(folder)
    fresh.refresh()
    return fresh.lines


def test_two_writers_take_turns(folder: Path) -> None:
    one, two = log(folder), log(folder)
    assert [one.append(["a", "b"], None), two.append(["c"], 0), one.append(["d"], 1)] == [2, 3, 4]
    two.refresh()
    assert one.lines == two.lines == whole(folder) == [b"a", b"b", b"c", b"d"]
    assert sorted(path.name for path in folder.iterdir() if path.name.isdigit()) == [
        "00000000",
        "00000001",
        "00000002",
    ]
    assert sum(path.name.startswith("writer-") for path in folder.iterdir()) == 2


def test_what_the_files_look_like(folder: Path) -> None:
    one = log(folder)
    one.append(["a", "b"], 7)
    one.append(["c"], None)
    first = link(None, b"a\nb")
    second = link(link(None, first), b"c")
    (writer,) = folder.glob("writer-*.log")
    identity = writer.stem.removeprefix("writer-")
    batches = f"0 0 7 2 {first.hex()}\na\nb\n1 1 - 1 {second.hex()}\nc\n"
    assert (folder / "00000001").read_text() == f"writer {identity}\n{batches}"
    assert os.stat(folder / "00000000").st_ino == os.stat(folder / "00000001").st_ino


def test_a_reader_makes_no_file(folder: Path) -> None:
    log(folder).append(["a"], None)
    before = sorted(folder.iterdir())
    assert whole(folder) == [b"a"] and sorted(folder.iterdir()) == before


def overtaken(monkeypatch: pytest.MonkeyPatch, quick: JournalLog, decision: int) -> None:
    """Let ``quick`` take the place between the next writer's look and its claim."""
    link = os.link

    def delayed(source: Any, target: Any) -> None:
        monkeypatch.setattr(os, "link", link)
        quick.append(["quick"], decision)
        link(source, target)

    monkeypatch.setattr(os, "link", delayed)


def test_a_lost_claim_moves_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = log(folder), log(folder)
    overtaken(monkeypatch, two, 4)
    assert one.append(["slow"], 5) == 2
    assert two.append(["next"], None) == 3
    assert whole(folder) == [*one.lines, b"next"] == [b"quick", b"slow", b"next"]


def test_a_lost_claim_for_the_same_decision_is_a_conflict(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = log(folder), log(folder)
    overtaken(monkeypatch, two, 4)
    with pytest.raises(Conflict):
        one.append(["slow"], 4)
    assert whole(folder) == [b"quick"]
    assert one.append(["next"], 5) == 2 and whole(folder) == [b"quick", b"next"]


def test_a_lost_answer_to_a_claim_is_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server made the name, but the client heard only of its second try."""
    link = os.link

    def repeated(source: Any, target: Any) -> None:
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", repeated)
    one = log(folder)
    assert [one.append(["a"], 0), one.append(["b"], 1)] == [1, 2]
    assert whole(folder) == [b"a", b"b"]


def test_a_failing_disk_leaves_nothing_behind(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = log(folder)
    one.append(["a"], 0)
    fsync = os.fsync

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="is full; this batch was not stored"):
        one.append(["lost"], 1)
    monkeypatch.setattr(os, "fsync", fsync)
    assert one.append(["b"], 1) == 2 and whole(folder) == [b"a", b"b"]


def test_no_hard_links(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: Any, target: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(StorageError, match=r"without hard links.*use a PostgreSQL server"):
        log(folder).append(["a"], None)


def test_as_many_names_as_a_file_may_have(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def limited(source: Any, target: Any) -> None:
        if os.stat(source).st_nlink > 3:
            raise OSError(errno.EMLINK, "Too many links")
        link(source, target)

    monkeypatch.setattr(os, "link", limited)
    one = log(folder)
    assert [one.append([str(number)], number) for number in range(10)] == list(range(1, 11))
    assert whole(folder) == [str(number).encode() for number in range(10)]
    assert sum(path.name.startswith("writer-") for path in folder.iterdir()) == 4


@pytest.mark.parametrize(
    "tail", [b"2", b"2 2 - 2 ab\nhalf", b"2 2 - 2 ab\nhalf\n", b"2 2 - 1 ab\nwhole\n"]
)
def test_what_was_never_claimed_is_skipped(folder: Path, tail: bytes) -> None:
    one = log(folder)
    one.append(["a"], None)
    one.append(["b"], None)
    one.close()
    writer = next(path for path in folder.iterdir() if path.name.startswith("writer-"))
    with writer.open("ab") as file:
        file.write(tail)
    two = log(folder)
    assert two.append(["c"], None) == 3
    assert whole(folder) == [b"a", b"b", b"c"]


def test_bytes_that_arrive_late_are_waited_for(folder: Path) -> None:
    one = log(folder)
    one.append(["a"], None)
    writer = next(path for path in folder.iterdir() if path.name.startswith("writer-"))
    content = writer.read_bytes()
    os.truncate(writer, 3)

    def arrive() -> None:
        with writer.open("r+b") as file:
            file.write(content)

    timer = threading.Timer(0.2, arrive)
    timer.start()
    assert whole(folder) == [b"a"]
    timer.join()


def test_a_truncated_file_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_log, "MAX_VISIBILITY_SECONDS", 0.1)
    log(folder).append(["a"], None)
    os.truncate(folder / "00000000", 3)
    with pytest.raises(StorageError, match="batch 0 of study 'digits' is missing from its file"):
        whole(folder)


def test_a_corrupted_file_is_named(folder: Path) -> None:
    log(folder).append(["a"], None)
    (folder / "00000000").write_bytes(os.urandom(50).replace(b"\n", b"x") + b"\n")
    with pytest.raises(StorageError, match="is damaged"):
        whole(folder)


def test_an_altered_batch_is_named(folder: Path) -> None:
    one = log(folder)
    for line in ("aa", "bb", "cc"):
        one.append([line], None)
    path = folder / "00000001"
    path.write_bytes(path.read_bytes().replace(b"bb", b"bx"))
    with pytest.raises(StorageError, match="batch 1 of study 'digits' is not what was stored"):
        whole(folder)


def test_a_gap_is_named_and_never_appended_to(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_log, "MAX_VISIBILITY_SECONDS", 0.1)
    one = log(folder)
    for line in "abc":
        one.append([line], None)
    late = log(folder)
    (folder / "00000001").rename(folder / "lost")
    for use in (whole, lambda place: log(place).append(["d"], None)):
        with pytest.raises(StorageError, match="batch 1 of study 'digits' is missing"):
            use(folder)
    (folder / "lost").rename(folder / "00000001")
    late.refresh()
    assert late.append(["d"], None) == 4


def test_a_place_lost_after_it_was_read_is_not_filled_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that knows one place finds the second free, because its name was lost; the third is
    there."""
    early = log(folder)
    early.append(["a"], None)
    other = log(folder)
    other.append(["b"], None)
    other.append(["c"], None)
    (folder / "00000001").rename(folder / "lost")
    monkeypatch.setattr(journal_log, "MAX_VISIBILITY_SECONDS", 0.1)
    with pytest.raises(StorageError, match="batch 1 of study 'digits' is missing"):
        early.append(["d"], None)
    assert not (folder / "00000001").exists()


def test_a_claim_that_is_followed_at_once_stays(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else sees the new place and takes the next one before this writer comes back from
    its claim."""
    one, two = log(folder), log(folder)
    link = os.link

    def followed(source: Any, target: Any) -> None:
        monkeypatch.setattr(os, "link", link)
        link(source, target)
        two.append(["second"], None)

    monkeypatch.setattr(os, "link", followed)
    assert one.append(["first"], None) == 1
    assert whole(folder) == [b"first", b"second"]


def test_many_writers_leave_no_gap(tmp_path: Path) -> None:
    storage = JournalStorage(tmp_path)
    storage.create("digits", [first_event("digits")])

    def write(writer: int) -> None:
        store = JournalStorage(tmp_path).open("digits")
        for number in range(40):
            store.append([report_of(number, writer)])

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(storage.open("digits").read()) == 241
    storage.close()


def test_a_link_in_place_of_a_batch_is_not_followed(folder: Path) -> None:
    log(folder).append(["a"], None)
    os.symlink("/etc/passwd", folder / "00000001")
    with pytest.raises(StorageError, match="cannot be used"):
        whole(folder)


def test_a_deleted_folder(folder: Path) -> None:
    inner = folder / "study"
    inner.mkdir()
    one = log(inner)
    one.append(["a"], None)
    inner.rename(folder / "gone")
    for use in (one.refresh, lambda: one.append(["b"], None), lambda: one.append([], None)):
        with pytest.raises(StudyError, match="was deleted"):
            use()


WRITER = """
import sys
from scrimp.storage.journal import JournalStorage
from scrimp.study_log.events import Reported
store = JournalStorage(sys.argv[1]).open("digits")
writer = int(sys.argv[2])
for batch in range(100000):
    store.append([Reported(trial=writer, step=float(3 * batch + k), metrics={"pad": 1.0}) for k in (1, 2, 3)])
    print(batch, flush=True)
"""


def test_killed_writers_leave_a_consistent_log(tmp_path: Path) -> None:
    storage = JournalStorage(tmp_path)
    store = storage.create("digits", [first_event("digits")])
    processes = []
    for writer in range(3):
        command = [sys.executable, "-c", WRITER, str(tmp_path), str(writer)]
        processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    acknowledged = []
    for writer, process in enumerate(processes):
        assert process.stdout is not None
        for _ in range(5 + 5 * writer):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        acknowledged.append(5 + 5 * writer + len(process.stdout.readlines()))
        process.stdout.close()
        process.wait()
        assert store.append([report_of(99, writer + 1)]) > 1
    events = storage.open("digits").read(1)
    assert events == store.read(1)
    for writer, count in enumerate(acknowledged):
        steps = [event.step for event in events if event.trial == writer]  # type: ignore[union-attr]
        batches, rest = divmod(len(steps), 3)
        assert rest == 0 and count <= batches <= count + 1
        assert steps == [float(number) for number in range(1, 3 * batches + 1)]
    storage.close()


def test_a_batch_and_its_name_are_on_disk_before_it_is_acknowledged(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync, link = os.fsync, os.link

    def flush(descriptor: int) -> None:
        done.append(f"flush {Path(os.readlink(f'/proc/self/fd/{descriptor}')).name}")
        fsync(descriptor)

    def claim(source: Any, target: Any) -> None:
        done.append(f"link {Path(target).name}")
        link(source, target)

    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(os, "link", claim)
    one = log(folder)
    for place in ("00000000", "00000001"):
        one.append(["a"], None)
        content, name, entry = done
        assert content.startswith("flush writer-")
        assert [name, entry] == [f"link {place}", f"flush {folder.name}"]
        done.clear()


def test_a_batch_is_written_once_however_often_its_claim_fails(folder: Path) -> None:
    def write() -> None:
        one = log(folder)
        for _ in range(30):
            one.append(["a"], None)
        one.close()

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    written = sum(path.read_bytes().count(b"\na\n") for path in folder.glob("writer-*"))
    assert len(whole(folder)) == 120 and written == 120


def test_a_turn_is_waited_for_and_ends_with_its_decision(folder: Path) -> None:
    one, two = log(folder), log(folder)
    order: list[str] = []

    def decide() -> None:
        with two.turn():
            order.append("second")

    other = threading.Thread(target=decide)
    with one.turn():
        other.start()
        other.join(0.2)
        order.append("first")
        one.append(["report"], None)
        assert other.is_alive()
        one.append(["decision"], 0)
        other.join(5)
        order.append("after")
    assert order == ["first", "second", "after"]


def test_a_lock_that_is_held_too_long_or_missing_is_done_without(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_log, "MAX_TURN_SECONDS", 0.1)
    one, two = log(folder), log(folder)
    with one.turn(), two.turn():
        assert two.append(["a"], 0) == 1

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(journal_log.fcntl, "flock", refuse)
    with two.turn():
        assert two.append(["b"], 1) == 2


@pytest.mark.parametrize(
    ("call", "done"),
    [("link", False), ("link", True), ("fsync", False), ("fsync", True), ("scandir", False)],
)
def test_a_file_that_the_server_has_lost_track_of_is_used_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, call: str, done: bool
) -> None:
    """The call fails, before or after it did its work."""
    monkeypatch.setattr(journal_log, "STALE_PAUSES", (0.0, 0.0))
    real = getattr(os, call)
    failures = [True] if done else [True, True]

    def stale(*arguments: Any) -> Any:
        answer = real(*arguments) if done or not failures else None
        if failures:
            failures.pop()
            raise OSError(errno.ESTALE, "Stale file handle")
        return answer

    monkeypatch.setattr(os, call, stale)
    assert log(folder).append(["a"], None) == 1
    assert not failures and whole(folder) == [b"a"]


def test_batches_of_one_number_in_copies_made_while_in_use(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that lost its decision is followed by another of its number; each name becomes a file
    of its own, as long as the writer's file was when it was copied."""
    one, two = log(folder), log(folder)
    target = folder / "copy"
    target.mkdir()
    one.append(["first"], 0)
    shutil.copy(folder / "00000000", target)
    overtaken(monkeypatch, two, 1)
    with pytest.raises(Conflict):
        one.append(["in vain"], 1)
    shutil.copy(folder / "00000001", target)
    one.append(["third"], 2)
    shutil.copy(folder / "00000002", target)
    assert whole(target) == whole(folder) == [b"first", b"quick", b"third"]


def test_batches_in_another_order_are_named(folder: Path) -> None:
    one, two = log(folder), log(folder)
    for number in range(4):
        (one, two)[number % 2].append([str(number)], None)
    (folder / "00000001").rename(folder / "x")
    (folder / "00000002").rename(folder / "00000001")
    (folder / "x").rename(folder / "00000002")
    with pytest.raises(StorageError, match="batch 1 of study 'digits' is not what was stored"):
        whole(folder)
