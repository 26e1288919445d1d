"""The words for a part that hung or died, and for the engine that is gone with it."""

from sentinel.core.diagnosis.pattern import Rank
from sentinel.core.diagnosis.wording import GONE, PART, SHAPE, START, pattern

PARTS = (
    pattern(
        "startup_timeout",
        r"Timed out waiting for engine(?: core processes|s to send)"
        r"(?:.*Waited (?P<waited>[\d.]+) ?s)?",
        r"Did not receive response from front-end process within",
        r"DP Coordinator process failed to report ZMQ addresses within timeout=(?P<after>\d+)",
        **START,
    ),
    pattern(
        "nccl_timeout",
        r"Watchdog caught collective operation timeout"
        r"(?:.*OpType=(?P<operation>\w+).*Timeout\(ms\)=(?P<timeout_ms>\d+))?",
        **SHAPE,
    ),
    pattern(
        "nccl_timeout",
        r"(?:NCCL|Process group) watchdog thread terminated|[Hh]eartbeat monitor timed out",
        sure=0.85,
        anywhere=True,
        rank=Rank.PART,
    ),
    pattern(
        "nccl_timeout",
        r"NCCL [Ee]rror|ncclUnhandledCudaError|nccl(?:System|Internal|Remote)Error",
        r"DistBackendError|NCCL communicator was aborted|client socket has timed out after",
        r"Timed out after \d+ seconds waiting for clients",
        r"gloo/transport/.*(?:Connection closed|Connection reset|[Tt]imed out)",
        sure=0.7,
        **PART,
    ),
    pattern(
        "worker_hung",
        r"RPC call to (?P<method>\w+) timed out|Engine iteration timed out",
        r"collective_rpc timed out",
        **PART,
    ),
    pattern(
        "engine_hung",
        r"(?:MQLLMEngine|RPCServer) didn't reply within (?P<waited_ms>\d+) ?ms",
        r"No heartbeat received from MQLLMEngine",
        sure=0.75,
        **PART,
    ),
    pattern(
        "worker_died",
        r"Worker proc (?P<worker>\S+) died unexpectedly(?:.*?\(exit code: (?P<code>-?\d+)\))?",
        r"RayWorkerProc rank=(?P<rank>\S+) died unexpectedly",
        r"Worker (?P<process>\S+) pid \d+ died, exit code: (?P<ended>-?\d+)",
        anywhere=True,
        rank=Rank.PART,
    ),
    pattern(
        "worker_died",
        r"ActorDiedError|RayActorError|NodeDiedError|[Tt]he actor died unexpectedly|worker died$",
        sure=0.85,
        **PART,
    ),
    pattern(
        "worker_died",
        r"A worker died or was killed while executing",
        sure=0.85,
        anywhere=True,
        rank=Rank.PART,
    ),
    pattern("worker_died", r"^RuntimeError: cancelled$", sure=0.75, **PART),
)

CONSEQUENCES = (
    pattern(
        "engine_died",
        r"engine core exited unexpectedly|[Ee]ngine core proc\w* .*died unexpectedly",
        r"Engine process \(pid \d+\) died|Engine loop has died",
        sure=0.92,
        **GONE,
    ),
    pattern(
        "engine_died",
        r"EngineCore (?:encountered a fatal error|hit an exception)",
        r"is already dead, terminating|has failed, terminating|rather than RPCError from",
        r"fatal signal from worker processes|Engine background task failed",
        r"Task finished unexpectedly\. This should never happen|Background loop has errored",
        sure=0.88,
        **GONE,
    ),
    pattern(
        "engine_died",
        r"Process \S+ \(PID: \d+\) died with exit code (?P<code>-?\d+)",
        r"Failed core proc\(s\): \{[^}]*: (?P<ended>-\d+)",
        r"^(?:Segmentation fault|Aborted \(core dumped\)|Illegal instruction)",
        r"Fatal Python error: (?:Segmentation fault|Aborted|Illegal instruction)",
        r"Segfault encountered|terminate called after throwing",
        sure=0.85,
        **GONE,
    ),
    pattern(
        "sigkill_unknown",
        r"^Killed$|: line \d+: +\d+ Killed\b",
        sure=0.6,
        **GONE,
    ),
)
