import shlex
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.endpoint import (
    endpoint_of,
    env_port_of,
    port_of,
    served_model_of,
    tensor_parallel_of,
)
from sentinel.core.model.container import Container, PublishedPort, Status

SERVE = ("vllm", "serve", "m")


def shell(script: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", script)


@pytest.mark.parametrize(
    ("argv", "port"),
    [
        pytest.param(SERVE, None, id="not said"),
        pytest.param((*SERVE, "--port", "9000"), 9000, id="two words"),
        pytest.param((*SERVE, "--port=9000"), 9000, id="one word"),
        pytest.param((*SERVE, "--port", "1", "--port=2", "--port", "3"), 3, id="the last wins"),
        pytest.param((*SERVE, "--port"), None, id="cut off"),
        pytest.param((*SERVE, "--port", "high"), None, id="no number"),
        pytest.param((*SERVE, "--port", "70000"), None, id="no port"),
        pytest.param((*SERVE, "--port", "²"), None, id="a digit that int() refuses"),
        pytest.param((*SERVE, "--portability", "9"), None, id="another option"),
        pytest.param((*SERVE, "--master-port", "29500"), None, id="an option that ends alike"),
        pytest.param((*SERVE, "--config", "c.yaml"), None, id="in a file"),
        pytest.param(shell("vllm serve m --port 9000"), 9000, id="shell"),
        pytest.param(("bash", "-lc", "exec vllm serve m --port=9000"), 9000, id="login shell"),
        pytest.param(
            ("bash", "-l", "-e", "-c", "vllm serve m --port 9000"), 9000, id="flags apart"
        ),
        pytest.param(("tini", "--", *shell("vllm serve m --port 9")), 9, id="behind an init"),
        pytest.param(
            shell("cd /m && vllm serve m --port '9000'; sleep 1"), 9000, id="shell script"
        ),
        pytest.param(shell("vllm serve m --port 9000;"), 9000, id="semicolon attached"),
        pytest.param(shell("nginx --port 80 & vllm serve m --port 9000"), 9000, id="other program"),
        pytest.param(shell("vllm serve m --port 9000 & nginx --port 80"), 9000, id="other after"),
        pytest.param(shell("vllm serve m \\\n--port 9000 \\\n  --x 1"), 9000, id="continued lines"),
        pytest.param(shell("vllm serve m --port 9000 | tee 'log"), 9000, id="a quote left open"),
        pytest.param(shell("vllm serve m --port ${PORT:-9000}"), 9000, id="a default"),
        pytest.param(shell("vllm serve m --port $PORT"), None, id="a variable"),
        pytest.param((*shell('exec "$@"'), "sh", *SERVE, "--port", "9"), 9, id="passed on"),
        pytest.param(
            (*shell('exec vllm "$@"'), "sh", "serve", "m", "--port=9"), 9, id="half passed on"
        ),
        pytest.param(("bash", "start.sh", "--port", "9000"), 9000, id="wrapper with options"),
        pytest.param(
            ("python3", "-m", "vllm.entrypoints.openai.api_server", "--port", "9"), 9, id="module"
        ),
        pytest.param((), None, id="nothing"),
    ],
)
def test_port_of(argv: tuple[str, ...], port: int | None) -> None:
    assert port_of(argv) == port


@given(
    st.lists(st.sampled_from(["--port", "--port=1", "7", "serve", "--x"])), st.integers(1, 65535)
)
def test_the_last_port_wins_whatever_stands_before(words: list[str], port: int) -> None:
    assert port_of(["vllm", *words, "x", "--port", str(port)]) == port


@given(st.lists(st.text(alphabet="ab -='\"$\\\n;|&", max_size=20), max_size=6))
def test_no_command_line_is_too_strange(words: list[str]) -> None:
    for argv in (words, ["sh", "-c", *words]):
        port_of(argv)
        env_port_of(argv, {})
        served_model_of(argv)


@given(
    st.lists(
        st.text(alphabet=st.characters(exclude_characters="$", codec="utf-8"), max_size=8),
        max_size=4,
    )
)
def test_a_quoted_command_reads_as_the_plain_one(words: list[str]) -> None:
    """But for a word that is nothing but a shell's operator: quoted or not, it is read as one."""
    plain = [word for word in words if "\\\n" not in word and word.strip("();<>|&")]
    argv = ("vllm", "serve", *plain, "--port", "9000")

    assert port_of(shell(shlex.join(argv))) == port_of(argv)


@pytest.mark.parametrize(
    ("argv", "environment", "port"),
    [
        pytest.param(SERVE, {"PORT": "9"}, None, id="vLLM itself reads none"),
        pytest.param(("./start.sh",), {"PORT": "9"}, 9, id="a wrapper may"),
        pytest.param(("./start.sh",), {"VLLM_PORT": "9"}, None, id="between processes, not HTTP"),
        pytest.param(("./start.sh",), {"PORT": "high"}, None, id="no number"),
        pytest.param(("./sagemaker.sh",), {"SM_VLLM_PORT": "8", "PORT": "9"}, 8, id="SageMaker"),
        pytest.param(shell("vllm serve m --port $P"), {"P": "9"}, 9, id="a variable"),
        pytest.param(shell("vllm serve m --port ${P:-8}"), {"P": "9"}, 9, id="against a default"),
        pytest.param(shell("vllm serve m --port ${P:-8}"), {}, 8, id="the default"),
        pytest.param(shell("vllm serve m --port ${P:-8}"), {"P": ""}, 8, id="empty is unset"),
        pytest.param(shell("vllm serve m --port 7"), {"PORT": "9"}, None, id="said in plain"),
        pytest.param(("./start.sh", "--port", "7"), {"PORT": "9"}, None, id="wrapper, in plain"),
    ],
)
def test_env_port_of(argv: tuple[str, ...], environment: dict[str, str], port: int | None) -> None:
    assert env_port_of(argv, environment) == port


@pytest.mark.parametrize(
    ("argv", "model"),
    [
        pytest.param(("vllm", "serve", "Qwen/Q"), "Qwen/Q", id="positional"),
        pytest.param(("vllm", "serve", "--model", "Qwen/Q"), "Qwen/Q", id="option"),
        pytest.param(("vllm", "serve", "a", "--model", "b"), "a", id="positional before option"),
        pytest.param(("vllm", "serve", "a", "--served-model-name", "x", "y"), "x", id="first name"),
        pytest.param(("vllm", "serve", "a", "--served_model_name=x"), "x", id="underscores"),
        pytest.param(
            ("python", "-m", "vllm.entrypoints.openai.api_server", "--model=b"), "b", id="module"
        ),
        pytest.param(shell("vllm serve $MODEL"), None, id="a variable"),
        pytest.param(shell("vllm serve a | tee log"), "a", id="shell"),
        pytest.param(("--model", "a"), "a", id="arguments only"),
        pytest.param(("vllm", "serve"), None, id="cut off"),
    ],
)
def test_served_model_of(argv: tuple[str, ...], model: str | None) -> None:
    assert served_model_of(argv) == model


LLM = Container(
    id="c" * 64, name="llm", image="vllm", image_id="sha256:1", argv=SERVE, status=Status.RUNNING
)


def published(*ways: tuple[int, str, int]) -> tuple[PublishedPort, ...]:
    return tuple(PublishedPort(container_port=c, host_ip=ip, host_port=h) for c, ip, h in ways)


@pytest.mark.parametrize(
    ("argv", "ways", "url"),
    [
        pytest.param(
            SERVE, published((8000, "0.0.0.0", 80)), "http://127.0.0.1:80", id="any address"
        ),
        pytest.param(
            SERVE, published((8000, "127.0.0.1", 80)), "http://127.0.0.1:80", id="loopback"
        ),
        pytest.param(SERVE, published((8000, "::", 80)), "http://[::1]:80", id="any v6"),
        pytest.param(SERVE, published((8000, "::1", 80)), "http://[::1]:80", id="loopback v6"),
        pytest.param(SERVE, published((8000, "fd00::1", 80)), "http://[fd00::1]:80", id="one v6"),
        pytest.param(
            SERVE, published((8000, "10.0.0.5", 80)), "http://10.0.0.5:80", id="one address"
        ),
        pytest.param(
            SERVE,
            published((8000, "10.0.0.5", 1), (8000, "::", 2), (8000, "0.0.0.0", 3)),
            "http://127.0.0.1:3",
            id="the nearest of several",
        ),
        pytest.param(
            SERVE,
            published((9000, "0.0.0.0", 1), (8000, "0.0.0.0", 2)),
            "http://127.0.0.1:2",
            id="the default among several",
        ),
        pytest.param(
            SERVE, published((9000, "0.0.0.0", 1)), "http://127.0.0.1:1", id="the only way in"
        ),
        pytest.param(
            (*SERVE, "--port", "8000"),
            published((9000, "0.0.0.0", 1)),
            "http://172.17.0.2:8000",
            id="a way to another port is none",
        ),
        pytest.param((*SERVE, "--port=9"), (), "http://172.17.0.2:9", id="not published"),
        pytest.param((*SERVE, "--ssl-certfile", "c"), (), "https://172.17.0.2:8000", id="with TLS"),
    ],
)
def test_the_way_in(argv: tuple[str, ...], ways: tuple[PublishedPort, ...], url: str) -> None:
    container = replace(
        LLM, argv=argv, ports=ways, addresses=("fd00::2", "172.17.0.2", "172.18.0.2")
    )

    found = endpoint_of(container)

    assert found is not None
    assert found.url == url
    assert found.found_by == ("container address" if "172.17" in url else "published port")


@pytest.mark.parametrize(
    ("argv", "url"),
    [
        pytest.param(SERVE, "http://127.0.0.1:8000", id="default"),
        pytest.param((*SERVE, "--port", "9"), "http://127.0.0.1:9", id="its port"),
        pytest.param((*SERVE, "--host", "0.0.0.0"), "http://127.0.0.1:8000", id="any"),
        pytest.param((*SERVE, "--host", "::"), "http://127.0.0.1:8000", id="any v6 is dual"),
        pytest.param((*SERVE, "--host", "localhost"), "http://127.0.0.1:8000", id="a name"),
        pytest.param((*SERVE, "--host", "10.0.0.5"), "http://10.0.0.5:8000", id="one address only"),
        pytest.param((*SERVE, "--host", "::1"), "http://[::1]:8000", id="one v6 only"),
    ],
)
def test_on_the_hosts_network(argv: tuple[str, ...], url: str) -> None:
    found = endpoint_of(replace(LLM, argv=argv, host_network=True))

    assert found is not None
    assert (found.url, found.found_by) == (url, "host network")


@pytest.mark.parametrize(
    ("override", "url", "instance"),
    [
        ("http://10.1.1.1:80", "http://10.1.1.1:80", "10.1.1.1:80"),
        ("https://llm.example:8443/", "https://llm.example:8443", "llm.example:8443"),
        ("127.0.0.1:8000", "http://127.0.0.1:8000", "127.0.0.1:8000"),
    ],
)
def test_an_override_wins(override: str, url: str, instance: str) -> None:
    found = endpoint_of(replace(LLM, host_network=True), override)

    assert found is not None
    assert (found.url, found.found_by, found.instance) == (url, "override", instance)


def test_what_the_environment_says_wins_over_a_default() -> None:
    found = endpoint_of(replace(LLM, env_port=9, addresses=("172.17.0.2",)))

    assert found is not None
    assert found.url == "http://172.17.0.2:9"


def test_a_v6_only_container_is_asked_in_brackets() -> None:
    found = endpoint_of(replace(LLM, addresses=("fd00::2",)))

    assert found is not None
    assert found.instance == "[fd00::2]:8000"


def test_no_way_in_is_none() -> None:
    assert endpoint_of(LLM) is None


def test_a_server_on_a_unix_socket_has_no_port() -> None:
    assert (
        endpoint_of(replace(LLM, argv=(*SERVE, "--uds", "/s"), addresses=("172.17.0.2",))) is None
    )


@pytest.mark.parametrize(
    ("argv", "size"),
    [
        (("vllm", "serve", "m", "--tensor-parallel-size", "2"), 2),
        (("vllm", "serve", "m", "--tensor_parallel_size=4"), 4),
        (("vllm", "serve", "m", "-tp", "8"), 8),
        (("sh", "-c", "exec vllm serve m -tp 2 --port 1"), 2),
        (("vllm", "serve", "m", "--tensor-parallel-size", "$TP"), None),
        (("vllm", "serve", "m"), None),
    ],
)
def test_tensor_parallel_of(argv: tuple[str, ...], size: int | None) -> None:
    assert tensor_parallel_of(argv) == size
