"""vLLM's part of /metrics: families, labels and order as a real server writes them, our values.

A value that nothing sets keeps what an idle server shows. Histogram bounds are read from the
recording, so they cannot drift from vLLM's.
"""

import resource
import time
from pathlib import Path

TEXTS = Path(__file__).with_name("texts")
TOKEN_FAMILIES = (
    "vllm:request_prompt_tokens",
    "vllm:request_generation_tokens",
    "vllm:request_max_num_generation_tokens",
    "vllm:request_params_max_tokens",
    "vllm:request_prefill_kv_computed_tokens",
)


def go_float(value: float) -> str:
    """As prometheus_client prints: Go's exponents come sooner than Python's."""
    text = repr(float(value))
    dot = text.find(".")
    if value > 0 and dot > 6:
        mantissa = f"{text[0]}.{text[1:dot]}{text[dot + 1 :]}".rstrip("0.")
        return f"{mantissa}e+0{dot - 1}"
    return "+Inf" if text == "inf" else text


class Exposition:
    """Every sample by its name with labels, in the order of the recording."""

    def __init__(self, *, model: str, blocks: int, block_size: int, max_len: int) -> None:
        self._model = model
        self._started = time.time()
        self._lines: list[str] = []  # comments, and the names of samples
        self._values: dict[str, float] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._bounds: dict[str, list[tuple[float, str]]] = {}
        self._cache = {
            'block_size="128",cache_dtype': f'block_size="{block_size}",cache_dtype',
            'attention_block_size="128"': f'attention_block_size="{block_size}"',
            'num_gpu_blocks="16384"': f'num_gpu_blocks="{blocks}"',
            'size_tokens="2097152"': f'size_tokens="{blocks * block_size}"',
            'max_concurrency="512.0"': f'max_concurrency="{blocks * block_size / max_len}"',
        }
        for line in _recorded(max_len):
            self._place(line.replace('model_name="@"', f'model_name="{model}"'))
        self._measure_process()

    def _place(self, text: str) -> None:
        if text.startswith("#"):
            self._lines.append(text)
            return
        name, _, value = text.rpartition(" ")
        if name.startswith("vllm:cache_config_info"):
            for old, new in self._cache.items():
                name = name.replace(old, new)
        self._lines.append(name)
        self._values[name] = self._started if "_created{" in name else float(value)
        family, bucket, labels = name.partition("_bucket{")
        if bucket:
            bound = float(labels.split('le="', 1)[1].split('"', 1)[0])
            self._bounds.setdefault(family, []).append((bound, name))

    def _name(self, family: str, label: str) -> str:
        """The sample of `family` for our engine; labels stand in alphabetical order."""
        name = self._names.get((family, label))
        if name is None:
            labels = sorted(x for x in ('engine="0"', f'model_name="{self._model}"', label) if x)
            name = self._names[family, label] = f"{family}{{{','.join(labels)}}}"
            if name not in self._values:
                raise KeyError(name)
        return name

    def set(self, family: str, value: float, label: str = "") -> None:
        self._values[self._name(family, label)] = value

    def add(self, family: str, amount: float, label: str = "") -> None:
        self._values[self._name(family, label)] += amount

    def observe(self, family: str, value: float) -> None:
        self.add(f"{family}_count", 1)
        self.add(f"{family}_sum", value)
        for bound, name in self._bounds[family]:
            if value <= bound:
                self._values[name] += 1

    def value(self, family: str) -> float:
        return self._values[self._name(family, "")]

    def without_engine(self) -> None:
        """--disable-log-stats: no series of vLLM's own at all."""
        self._lines = [line for line in self._lines if "vllm:" not in line]

    def text(self) -> str:
        self._measure_process()
        values = self._values
        lines = [f"{x} {go_float(values[x])}" if x in values else x for x in self._lines]
        return "\n".join(lines) + "\n"

    def _measure_process(self) -> None:
        usage, values = resource.getrusage(resource.RUSAGE_SELF), self._values
        values["process_start_time_seconds"] = round(self._started, 2)
        values["process_cpu_seconds_total"] = round(usage.ru_utime + usage.ru_stime, 2)
        values["process_resident_memory_bytes"] = usage.ru_maxrss * 1024
        values["process_open_fds"] = len(list(Path("/proc/self/fd").iterdir()))


def _recorded(max_len: int) -> list[str]:
    """The recording, with the token histograms' bounds as this --max-model-len makes them."""
    lines: list[str] = []
    for line in (TEXTS / "metrics.txt").read_text().splitlines():
        family, bucket, _ = line.partition("_bucket{")
        if not bucket or family not in TOKEN_FAMILIES:
            lines.append(line)
        elif 'le="1.0"' in line:
            lines += [line.replace('le="1.0"', f'le="{bound}"') for bound in _one_two_five(max_len)]
    return lines


def _one_two_five(top: int) -> list[str]:
    bounds = [float(m * 10**power) for power in range(9) for m in (1, 2, 5)]
    return [str(bound) for bound in bounds if bound <= top] + ["+Inf"]
