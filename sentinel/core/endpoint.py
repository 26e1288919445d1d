"""Where a container answers HTTP, worked out from its command line and its network.

The command line is read as vLLM's own argparse reads it: the last `--port` wins, `--port=N`
and `--port N` are one, underscores are dashes. What a shell or a wrapper script decides is
taken from the environment it would take it from; a container never says more than that.
"""

import ipaddress
import itertools
import re
import shlex
from collections.abc import Iterable, Mapping

from sentinel.core.model.container import Container, PublishedPort
from sentinel.core.model.target import Endpoint

DEFAULT_PORT = 8000

# Where the wrappers people run vLLM under (SageMaker's, NIM's, and most home-made ones) read
# their port. vLLM's own VLLM_PORT is not among them: it is for talk between its processes.
_WRAPPER_PORTS = ("SM_VLLM_PORT", "NIM_HTTP_API_PORT", "PORT")

_SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh"})
_RUNS_TEXT = re.compile(r"-[a-z]*c")  # `-c`, also among others as in `-lc`
_OPERATOR = re.compile(r"[();<>|&]+")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?::?-([^}]*))?\})")


def port_of(argv: Iterable[str]) -> int | None:
    """The port the command line asks for; None if it does not say, or not in plain."""
    return _as_port(_filled(_option(words_of(argv), "--port"), {}))


def env_port_of(argv: Iterable[str], environment: Mapping[str, str]) -> int | None:
    """The port, where it is the environment that decides it; else None.

    It decides when the command line names a variable, or when the command is a wrapper that
    vLLM's arguments are hidden in.
    """
    words = words_of(argv)
    asked = _option(words, "--port")
    if asked is not None:
        return _as_port(_filled(asked, environment)) if "$" in asked else None
    if any(_is_vllm(word) for word in words):
        return None
    ports = (_as_port(environment.get(name)) for name in _WRAPPER_PORTS)
    return next((port for port in ports if port is not None), None)


def served_model_of(argv: Iterable[str]) -> str | None:
    """The name clients ask for, as far as the command line tells."""
    words = words_of(argv)
    positional = None
    if "serve" in words[:-1]:
        following = words[words.index("serve") + 1]
        positional = None if following.startswith("-") else following
    name = (
        _option(words, "--served-model-name")
        or positional
        or _option(words, "--model")
        or _option(words, "--model-tag")
    )
    return None if name is None or "$" in name else name


def tensor_parallel_of(argv: Iterable[str]) -> int | None:
    """Over how many processes it spreads each layer, as far as the command line tells."""
    words = words_of(argv)
    short = next((value for name, value in itertools.pairwise(words) if name == "-tp"), None)
    text = _option(words, "--tensor-parallel-size") or short
    return int(text) if text is not None and text.isascii() and text.isdigit() else None


def endpoint_of(container: Container, override: str | None = None) -> Endpoint | None:
    """Where to ask, or None if the container cannot be reached from the host."""
    if override:
        url = override if "://" in override else f"http://{override}"
        return Endpoint(url=url.rstrip("/"), found_by="override")
    words = words_of(container.argv)
    if _option(words, "--uds"):  # a unix socket instead of any port
        return None
    said = container.env_port or port_of(container.argv)
    port = said or DEFAULT_PORT
    scheme = "https" if _option(words, "--ssl-certfile") else "http"
    if container.host_network:
        host = _listens_on(_option(words, "--host"))
        return Endpoint(url=f"{scheme}://{host}:{port}", found_by="host network")
    if published := _published(container.ports, port, certain=said is not None):
        host = _reached_by(published.host_ip)
        url = f"{scheme}://{host}:{published.host_port}"
        return Endpoint(url=url, found_by="published port")
    if container.addresses:
        host = _bracketed(min(container.addresses, key=lambda address: ":" in address))
        return Endpoint(url=f"{scheme}://{host}:{port}", found_by="container address")
    return None


def words_of(argv: Iterable[str]) -> tuple[str, ...]:
    """The words vLLM gets: of `sh -c "…"`, those of the command in it that is vLLM's."""
    words = tuple(argv)
    for at, word in enumerate(words):
        if _program(word) in _SHELLS:
            flags = tuple(itertools.takewhile(lambda w: w.startswith("-"), words[at + 1 :]))
            script = at + 1 + len(flags)
            if flags and _RUNS_TEXT.fullmatch(flags[-1]) and script < len(words):
                return _of_script(words[script], words[script + 1 :])
    return words


def _of_script(script: str, arguments: tuple[str, ...]) -> tuple[str, ...]:
    given = {"$0": arguments[:1], "$@": arguments[1:], "$*": arguments[1:]}
    commands: list[list[str]] = [[]]
    for word in _shell_words(script):
        if _OPERATOR.fullmatch(word):
            commands.append([])
        else:
            commands[-1] += given.get(word, (word,))
    serving = [command for command in commands if any(map(_is_vllm, command))]
    return tuple(serving[-1]) if serving else tuple(itertools.chain(*commands))


def _shell_words(script: str) -> list[str]:
    script = script.replace("\\\n", " ")
    lexer = shlex.shlex(script, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:  # a quote that does not close: better than nothing
        return script.split()


def _program(word: str) -> str:
    return word.rpartition("/")[2]


def _is_vllm(word: str) -> bool:
    return _program(word) == "vllm" or word.startswith("vllm.entrypoints")


def _option(words: Iterable[str], name: str) -> str | None:
    """The value of the last `--name value` or `--name=value`."""
    found, due = None, False
    for word in words:
        if due:
            found, due = word, False
            continue
        option, has_value, value = word.partition("=")
        if option.startswith("--") and option.replace("_", "-") == name:
            found, due = (value, False) if has_value else (found, True)
    return found


def _filled(word: str | None, environment: Mapping[str, str]) -> str | None:
    """`word` with `$NAME` and `${NAME:-default}` replaced, where that can be known."""
    if word is None:
        return None
    return _VARIABLE.sub(
        lambda m: environment.get(m[1] or m[2]) or (m[0] if m[3] is None else m[3]), word
    )


def _as_port(text: str | None) -> int | None:
    if text is None or not text.isascii() or not text.strip().isdigit():
        return None
    port = int(text)
    return port if 0 < port < 65536 else None


def _published(ports: Iterable[PublishedPort], port: int, *, certain: bool) -> PublishedPort | None:
    """The way in to `port`; if the port is only assumed, the one way in there is."""
    ways = sorted(ports, key=lambda way: _preference(way.host_ip))
    matching = [way for way in ways if way.container_port == port]
    if not matching and not certain and len({way.container_port for way in ways}) == 1:
        matching = ways
    return matching[0] if matching else None


def _preference(host_ip: str) -> int:
    address = _address(host_ip)
    if address is None or not (address.is_loopback or address.is_unspecified):
        return 2
    return 0 if address.version == 4 else 1


def _reached_by(host_ip: str) -> str:
    address = _address(host_ip)
    if address is not None and address.is_unspecified:
        return "127.0.0.1" if address.version == 4 else "[::1]"
    return _bracketed(host_ip)


def _listens_on(asked: str | None) -> str:
    """A server told to listen on one address only is not on the loopback address."""
    address = _address(asked or "")
    return "127.0.0.1" if address is None or address.is_unspecified else _bracketed(str(address))


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
