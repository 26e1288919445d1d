"""Start, serve, leave: the whole of one simulated server in the order in which vLLM does it."""

import os
import sys
from collections.abc import Sequence

from . import arguments, engine, startup
from .arguments import Arguments
from .exposition import Exposition
from .journal import Journal
from .scheduler import Scheduler
from .settings import Settings, read_settings

BLOCK_SIZE = 128
DEFAULT_SEQS = 256
DEFAULT_BATCHED_TOKENS = 2048


def main(argv: Sequence[str]) -> int:
    settings = read_settings()
    if settings.fail_start == "bad_arg":
        argv = [*argv, "--max-num-sequences", "5"]
    given = arguments.parse(list(argv))
    try:
        return _serve(given, settings)
    except startup.StartFailed as failed:
        return failed.exit_code


def _serve(given: Arguments, settings: Settings) -> int:
    blocks = int(given.num_gpu_blocks_override or settings.kv_blocks)
    block_size = given.block_size or BLOCK_SIZE
    max_len = given.max_model_len or startup.MODEL_LENGTH
    journal = _journal(given, blocks * block_size, max_len)
    failure = startup.planned_failure(settings, given)
    listener = startup.bind(given, journal, taken=failure == "port")
    startup.check_values(given, journal)
    scheduler = Scheduler(
        blocks=blocks,
        block_size=block_size,
        max_seqs=given.max_num_seqs or DEFAULT_SEQS,
        max_tokens=given.max_num_batched_tokens or DEFAULT_BATCHED_TOKENS,
    )
    link: list[tuple[int, int, int]] = []

    def fork() -> int:
        link.append(engine.start(scheduler, settings, listener))
        return link[0][0]

    startup.load(journal, settings, failure, fork)
    exposition = Exposition(
        model=given.names[0], blocks=blocks, block_size=block_size, max_len=max_len
    )
    if given.disable_log_stats:
        exposition.without_engine()
    sys.modules["ssl"] = None  # type: ignore[assignment]  # asyncio does without; saves 5 MB
    import asyncio  # noqa: PLC0415 - after the fork, so that the engine stays small

    from .server import Server  # noqa: PLC0415 - as above

    asyncio.run(Server(given, settings, journal, exposition).run(listener, link[0], max_len))
    return 0


def _journal(given: Arguments, tokens: int, max_len: int) -> Journal:
    replace = {
        "@ARGUMENTS@": str(given.stated),
        "@MODEL@": given.model,
        "@KV_TOKENS@": f"{tokens:,}",
        "@MAX_LEN@": f"{max_len:,}",
        "@LEN@": str(max_len),
        "@CONCURRENCY@": f"{tokens / max_len:.2f}",
        "@ADDRESS@": f"{given.host or '0.0.0.0'}:{given.port}",
        "@PID@": str(os.getpid()),
        "@SEQS@": str(given.max_num_seqs or DEFAULT_SEQS),
        "@BATCHED@": str(given.max_num_batched_tokens or DEFAULT_BATCHED_TOKENS),
    }
    return Journal(pids={"APIServer": os.getpid()}, replace=replace)
