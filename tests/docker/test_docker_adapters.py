"""The eyes, hands and events on a real Docker Engine."""

import contextlib
import io
import itertools
import os
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import docker
import docker.errors
import pytest

from sentinel.adapters.docker_events import DockerEvents
from sentinel.adapters.docker_eyes import DockerEyes
from sentinel.adapters.docker_hands import DockerHands
from sentinel.core.model.container import Container, EngineEvent, Status
from sentinel.core.model.errors import Permanent

pytestmark = pytest.mark.docker

HOST = "unix:///var/run/docker.sock"
IMAGE = f"sentinel-adapters-test:{os.getpid()}"
HOST_DIRECTORIES = [f"{d}:{d}:ro" for d in ("/usr", "/lib", "/lib64", "/bin") if Path(d).is_dir()]


class DockerBox:
    """Runs containers made of the host's own programs, and removes them."""

    def __init__(self, host: str = HOST) -> None:
        self.host = host
        self.api = docker.APIClient(host, version="auto")
        self.made: list[str] = []
        self._numbers = itertools.count()
        empty = io.BytesIO()
        tarfile.open(fileobj=empty, mode="w").close()
        self.api.import_image_from_data(
            empty.getvalue(), repository=IMAGE.partition(":")[0], tag=IMAGE.partition(":")[2]
        )

    def create(self, *argv: str, host: dict[str, Any] | None = None, **config: Any) -> str:
        made = self.api.create_container_from_config(  # type: ignore[no-untyped-call]
            {
                "Image": IMAGE,
                "Cmd": list(argv),
                "HostConfig": {"Binds": HOST_DIRECTORIES, **(host or {})},
                **config,
            },
            name=f"adapters-test-{os.getpid()}-{next(self._numbers)}",
        )
        self.made.append(made["Id"])
        return str(made["Id"])

    def run(self, *argv: str, **options: Any) -> str:
        container_id = self.create(*argv, **options)
        self.api.start(container_id)
        return container_id

    def close(self) -> None:
        for container_id in self.made:
            with contextlib.suppress(docker.errors.NotFound):
                self.api.remove_container(container_id, force=True)
        self.api.remove_image(IMAGE)
        self.api.close()


@pytest.fixture
def docker_box() -> Iterator[DockerBox]:
    box = DockerBox()
    yield box
    box.close()


@pytest.fixture
def eyes() -> Iterator[DockerEyes]:
    eyes = DockerEyes(HOST)
    yield eyes
    eyes.close()


@pytest.fixture
def hands() -> Iterator[DockerHands]:
    hands = DockerHands(HOST)
    yield hands
    hands.close()


def seen(eyes: DockerEyes, container_id: str) -> Container:
    container = eyes.inspect(container_id)
    assert container is not None
    return container


def once(eyes: DockerEyes, container_id: str, is_so: Callable[[Container], bool]) -> Container:
    for _ in range(400):
        if is_so(container := seen(eyes, container_id)):
            return container
        time.sleep(0.05)
    raise AssertionError(f"never came true of {container}")


STUBBORN = ("/bin/sh", "-c", "trap '' TERM; while :; do sleep 0.1; done")
OBEDIENT = ("/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done")


class TestEyes:
    def test_a_running_container_is_seen_whole(
        self, docker_box: DockerBox, eyes: DockerEyes
    ) -> None:
        container_id = docker_box.run(
            "serve",
            "m",
            "--port",
            "9000",
            Entrypoint=["/bin/sh", "-c", "exec sleep 60"],
            Labels={"team": "ml"},
            StopSignal="SIGINT",
            Env=["A=b=c"],
            ExposedPorts={"9000/tcp": {}},
            host={
                "RestartPolicy": {"Name": "unless-stopped"},
                "PortBindings": {"9000/tcp": [{"HostIp": "127.0.0.1", "HostPort": ""}]},
            },
        )

        container = seen(eyes, container_id)

        assert container.id == container_id
        assert container.argv == ("/bin/sh", "-c", "exec sleep 60", "serve", "m", "--port", "9000")
        assert container.status is Status.RUNNING
        assert container.is_up
        assert container.pid
        assert container.exit_code is None
        assert container.labels == {"team": "ml"}
        assert container.stop_signal == "SIGINT"
        assert container.restart_policy == "unless-stopped"
        assert container.image == IMAGE
        assert container.image_id.startswith("sha256:")
        assert len(container.addresses) == 1
        assert [(p.container_port, p.host_ip) for p in container.ports] == [(9000, "127.0.0.1")]
        assert container.started_at is not None
        assert container.finished_at is None

    def test_a_container_that_was_never_started_has_no_times(
        self, docker_box: DockerBox, eyes: DockerEyes
    ) -> None:
        container = seen(eyes, docker_box.create("/bin/sleep", "60"))

        assert container.status is Status.CREATED
        assert (container.started_at, container.finished_at, container.exit_code) == (None,) * 3

    def test_an_exit_code_is_seen(self, docker_box: DockerBox, eyes: DockerEyes) -> None:
        container_id = docker_box.run("/bin/sh", "-c", "exit 3")

        assert once(eyes, container_id, lambda c: c.status is Status.EXITED).exit_code == 3

    def test_a_container_that_waits_for_dockers_next_try_is_not_up(
        self, docker_box: DockerBox, eyes: DockerEyes
    ) -> None:
        container_id = docker_box.run(
            "/bin/sh", "-c", "exit 1", host={"RestartPolicy": {"Name": "always"}}
        )

        container = once(eyes, container_id, lambda c: c.status is Status.RESTARTING)

        assert not container.is_up
        assert container.exit_code == 1

    def test_no_container_is_none(self, eyes: DockerEyes) -> None:
        assert eyes.inspect("0" * 64) is None
        assert eyes.log_tail("0" * 64, lines=3) == ""

    def test_a_list_tells_which_containers_to_look_at_again(
        self, docker_box: DockerBox, eyes: DockerEyes
    ) -> None:
        container_id = docker_box.run(*OBEDIENT)

        def row() -> tuple[str, Status]:
            (found,) = [r for r in eyes.list() if r.id == container_id]
            return found.fingerprint, found.status

        before = row()
        docker_box.api.stop(container_id, timeout=5)
        once(eyes, container_id, lambda _: row()[1] is Status.EXITED)  # newer ones list it late

        assert before[1] is Status.RUNNING
        assert before[0] != row()[0]

    @pytest.mark.parametrize("act", ["stop", "kill", "crash"])
    def test_dockers_own_record_tells_a_person_from_a_crash(
        self, docker_box: DockerBox, eyes: DockerEyes, act: str
    ) -> None:
        if os.geteuid():
            pytest.skip("only root may read Docker's record")
        container_id = docker_box.run(
            "/bin/sh", "-c", "sleep 0.3; exit 1" if act == "crash" else "sleep 60"
        )

        if act == "stop":
            docker_box.api.stop(container_id, timeout=0)
        if act == "kill":
            docker_box.api.kill(container_id)

        container = once(eyes, container_id, lambda c: c.status is Status.EXITED)
        assert container.manually_stopped is (act != "crash")

    @pytest.mark.parametrize("tty", [False, True], ids=["frames", "terminal"])
    def test_the_log_is_text_without_colours(
        self, docker_box: DockerBox, eyes: DockerEyes, tty: bool
    ) -> None:
        script = r"printf '\033[31mred\033[0m\n'; echo two; echo three >&2; sleep 0.2"
        container_id = docker_box.run("/bin/sh", "-c", script, Tty=tty)
        once(eyes, container_id, lambda c: c.status is Status.EXITED)

        assert sorted(eyes.log_tail(container_id, lines=10).splitlines()) == ["red", "three", "two"]
        assert len(eyes.log_tail(container_id, lines=2).splitlines()) == 2

    def test_a_huge_log_is_cut_to_its_end(self, docker_box: DockerBox, eyes: DockerEyes) -> None:
        script = "i=0; while [ $i -lt 300 ]; do i=$((i+1)); printf '%08000d\\n' $i; done"
        container_id = docker_box.run("/bin/bash", "-c", script)
        once(eyes, container_id, lambda c: c.status is Status.EXITED)

        tail = eyes.log_tail(container_id, lines=1000)

        assert 1_000_000 < len(tail) <= 1 << 20
        assert tail.endswith("0300\n")
        assert len(tail.splitlines()[0]) == 8000


class TestHands:
    def test_a_stop_is_given_its_grace(
        self, docker_box: DockerBox, eyes: DockerEyes, hands: DockerHands
    ) -> None:
        container_id = docker_box.run(*OBEDIENT)
        started = seen(eyes, container_id).started_at
        assert started

        hands.stop(container_id, if_started_at=started, grace=20)

        container = seen(eyes, container_id)
        assert (container.status, container.exit_code) == (Status.EXITED, 0)

    def test_the_grace_is_ours_not_the_containers_own(
        self, docker_box: DockerBox, eyes: DockerEyes, hands: DockerHands
    ) -> None:
        container_id = docker_box.run(*STUBBORN, StopTimeout=90)
        started = seen(eyes, container_id).started_at
        assert started

        begun = time.monotonic()
        hands.stop(container_id, if_started_at=started, grace=1)

        assert time.monotonic() - begun < 8  # Docker's own is 10
        assert seen(eyes, container_id).exit_code == 137

    def test_to_stop_what_has_stopped_is_nothing(
        self, docker_box: DockerBox, eyes: DockerEyes, hands: DockerHands
    ) -> None:
        container_id = docker_box.run("/bin/sh", "-c", "exit 1")
        exited = once(eyes, container_id, lambda c: c.status is Status.EXITED)
        assert exited.started_at

        hands.stop(container_id, if_started_at=exited.started_at, grace=1)

        again = seen(eyes, container_id)
        assert again.status is Status.EXITED
        assert again.finished_at == exited.finished_at
        assert again.manually_stopped in (False, None)

    def test_a_paused_container_is_stopped(
        self, docker_box: DockerBox, eyes: DockerEyes, hands: DockerHands
    ) -> None:
        container_id = docker_box.run("/bin/sleep", "60")
        docker_box.api.pause(container_id)
        paused = seen(eyes, container_id)
        assert paused.started_at
        assert paused.status is Status.PAUSED

        hands.stop(container_id, if_started_at=paused.started_at, grace=1)

        assert seen(eyes, container_id).status is Status.EXITED

    def test_a_crash_loop_is_ended_by_a_stop(
        self, docker_box: DockerBox, eyes: DockerEyes, hands: DockerHands
    ) -> None:
        container_id = docker_box.run(
            "/bin/sh", "-c", "exit 1", host={"RestartPolicy": {"Name": "always"}}
        )
        once(eyes, container_id, lambda c: c.restart_count >= 3)
        for _ in range(50):
            waiting = once(eyes, container_id, lambda c: c.status is Status.RESTARTING)
            assert waiting.started_at
            try:
                hands.stop(container_id, if_started_at=waiting.started_at, grace=1)
                break
            except Permanent:  # Docker's next try came in between: exactly what it is for
                continue

        assert (
            once(eyes, container_id, lambda c: c.status is Status.EXITED).restart_policy == "always"
        )

    def test_a_start_can_be_repeated(
        self, docker_box: DockerBox, eyes: DockerEyes, hands: DockerHands
    ) -> None:
        container_id = docker_box.run("/bin/sleep", "60")
        first = seen(eyes, container_id)
        assert first.started_at
        hands.stop(container_id, if_started_at=first.started_at, grace=0)

        hands.start(container_id, if_started_at=first.started_at)
        second = seen(eyes, container_id)
        hands.start(container_id, if_started_at=first.started_at)

        assert second.status is Status.RUNNING
        assert seen(eyes, container_id).started_at == second.started_at != first.started_at

    def test_what_was_restarted_in_between_is_not_stopped(
        self, docker_box: DockerBox, eyes: DockerEyes, hands: DockerHands
    ) -> None:
        container_id = docker_box.run("/bin/sleep", "60")
        first = seen(eyes, container_id)
        assert first.started_at
        docker_box.api.restart(container_id, timeout=0)

        with pytest.raises(Permanent, match="no longer the one seen"):
            hands.stop(container_id, if_started_at=first.started_at, grace=1)

        assert seen(eyes, container_id).status is Status.RUNNING

    def test_what_ran_and_ended_in_between_is_not_started(
        self, docker_box: DockerBox, eyes: DockerEyes, hands: DockerHands
    ) -> None:
        container_id = docker_box.run("/bin/sleep", "60")
        first = seen(eyes, container_id)
        assert first.started_at
        docker_box.api.restart(container_id, timeout=0)
        docker_box.api.stop(container_id, timeout=0)

        with pytest.raises(Permanent, match="no longer the one seen"):
            hands.start(container_id, if_started_at=first.started_at)

        assert seen(eyes, container_id).status is Status.EXITED

    @pytest.mark.parametrize("act", ["stop", "start"])
    def test_what_is_gone_is_permanent(
        self, hands: DockerHands, eyes: DockerEyes, docker_box: DockerBox, act: str
    ) -> None:
        container_id = docker_box.run("/bin/sleep", "60")
        started = seen(eyes, container_id).started_at
        assert started
        docker_box.api.remove_container(container_id, force=True)

        with pytest.raises(Permanent, match="gone"):
            if act == "stop":
                hands.stop(container_id, if_started_at=started, grace=1)
            else:
                hands.start(container_id, if_started_at=started)

    def test_a_short_id_is_not_acted_on(
        self, docker_box: DockerBox, eyes: DockerEyes, hands: DockerHands
    ) -> None:
        container_id = docker_box.run("/bin/sleep", "60")
        started = seen(eyes, container_id).started_at
        assert started

        with pytest.raises(Permanent, match="not the id"):
            hands.stop(container_id[:12], if_started_at=started, grace=1)

    def test_a_microsecond_is_another_run(
        self, docker_box: DockerBox, eyes: DockerEyes, hands: DockerHands
    ) -> None:
        container_id = docker_box.run("/bin/sleep", "60")
        started = seen(eyes, container_id).started_at
        assert started

        with pytest.raises(Permanent):
            hands.stop(container_id, if_started_at=started + timedelta(microseconds=1), grace=1)


class Follower:
    """Follows events on a thread, and keeps what it heard."""

    def __init__(self, host: str, since_ns: int | None = None) -> None:
        self._host = host
        self.heard: SimpleQueue[EngineEvent] = SimpleQueue()
        self.opened = threading.Event()
        threading.Thread(target=self._follow, args=(since_ns,), daemon=True).start()
        assert self.opened.wait(5)

    def _follow(self, since_ns: int | None) -> None:
        events = DockerEvents(self._host, silence=2.0)
        events.follow(since_ns, opened=self.opened.set, heard=self.heard.put)

    def of(self, container_id: str, *until: str) -> list[EngineEvent]:
        """What was heard of it until all of these have come: engines differ in their order."""
        found: list[EngineEvent] = []
        while not {event.action for event in found}.issuperset(until):
            try:
                event = self.heard.get(timeout=10)
            except Empty:
                raise AssertionError(f"not all of {until} in {found}") from None
            if event.container_id == container_id:
                found.append(event)
        return found


class TestEvents:
    def test_the_end_of_a_container_is_heard_with_its_code(self, docker_box: DockerBox) -> None:
        follower = Follower(docker_box.host)

        container_id = docker_box.run("/bin/sh", "-c", "exit 3")

        events = follower.of(container_id, "die")
        assert [e.action for e in events] == ["create", "start", "die"]
        assert events[-1].exit_code == 3
        assert events[-1].name.startswith("adapters-test-")

    def test_a_stop_by_a_person_is_heard_with_its_signal(self, docker_box: DockerBox) -> None:
        container_id = docker_box.run(*OBEDIENT)
        follower = Follower(docker_box.host)

        docker_box.api.stop(container_id, timeout=5)

        events = follower.of(container_id, "kill", "die", "stop")
        assert [e.signal for e in events if e.action == "kill"] == ["15"]

    def test_what_was_missed_is_told_again_and_nothing_twice(self, docker_box: DockerBox) -> None:
        first = Follower(docker_box.host)
        container_id = docker_box.run("/bin/sh", "-c", "exit 0")
        start = first.of(container_id, "start")[-1]

        again = Follower(docker_box.host, since_ns=start.at_ns)

        assert [e.action for e in again.of(container_id, "die")] == ["die"]
