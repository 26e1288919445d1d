"""The engine's scheduler, after vLLM V1: running first, then waiting, preempt the youngest.

Key-value memory is counted in blocks, one of which is never used, so usage moves in steps of
1/(blocks - 1) as the real gauge does. One call of `step` is one forward pass.
"""

from collections import deque
from dataclasses import dataclass, field


@dataclass(slots=True)
class Sequence:
    id: int
    prompt: int
    limit: int
    not_before: float = 0.0  # no first token until then
    produced: int = 0
    computed: int = 0
    blocks: int = 0
    preempted: int = 0
    scheduled_at: float = 0.0

    @property
    def pending(self) -> int:
        return self.prompt + self.produced - self.computed


@dataclass(slots=True)
class Step:
    """What one forward pass does: tokens computed, and who gets a new token from it."""

    tokens: int = 0
    prefill_tokens: int = 0
    answered: list[Sequence] = field(default_factory=list)


class Scheduler:
    def __init__(self, *, blocks: int, block_size: int, max_seqs: int, max_tokens: int) -> None:
        self._usable = max(1, blocks - 1)
        self._block_size = block_size
        self._max_seqs = max_seqs
        self._max_tokens = max_tokens
        self._used = 0
        self.reserved = 0.0  # share of the memory that something else holds
        self.storm = False  # preempt somebody in every step
        self.running: list[Sequence] = []
        self.waiting: deque[Sequence] = deque()
        self.preemptions = 0

    @property
    def usage(self) -> float:
        return min(1.0, (self._used + self._held) / self._usable)

    @property
    def _held(self) -> int:
        return int(self.reserved * self._usable)

    def abort(self, number: int) -> None:
        for sequence in [s for s in (*self.running, *self.waiting) if s.id == number]:
            self.free(sequence)

    def free(self, sequence: Sequence) -> None:
        self._used -= sequence.blocks
        sequence.blocks = 0
        if sequence in self.running:
            self.running.remove(sequence)
        else:
            self.waiting.remove(sequence)

    def step(self, now: float) -> Step:
        step = Step()
        before = self.preemptions
        if self.storm and len(self.running) > 1:
            self._preempt(self.running[-1])
        for sequence in list(self.running):
            if sequence in self.running:
                self._advance(sequence, step, now)
        if self.preemptions == before:
            self._admit(step, now)
        return step

    def _admit(self, step: Step, now: float) -> None:
        while self.waiting and len(self.running) < self._max_seqs:
            sequence = self.waiting[0]
            share = min(sequence.pending, self._max_tokens - step.tokens)
            if share <= 0 or not self._grow(sequence, sequence.computed + share):
                return
            self.waiting.popleft()
            self.running.append(sequence)
            sequence.scheduled_at = sequence.scheduled_at or now
            self._advance(sequence, step, now)

    def _advance(self, sequence: Sequence, step: Step, now: float) -> None:
        share = min(sequence.pending, self._max_tokens - step.tokens)
        last = share == sequence.pending
        if share <= 0 or (last and not sequence.produced and now < sequence.not_before):
            return
        while not self._grow(sequence, sequence.computed + share):
            victim = self.running[-1]
            self._preempt(victim)
            if victim is sequence:
                return
        step.tokens += share
        step.prefill_tokens += share if share > 1 else 0
        sequence.computed += share
        if last:
            step.answered.append(sequence)

    def _grow(self, sequence: Sequence, tokens: int) -> bool:
        more = -(-tokens // self._block_size) - sequence.blocks
        if more > 0 and self._used + self._held + more > self._usable and self._used:
            return False
        if more > 0:
            sequence.blocks += more
            self._used += more
        return True

    def _preempt(self, sequence: Sequence) -> None:
        self.running.remove(sequence)
        self._used -= sequence.blocks
        sequence.blocks = sequence.computed = 0
        sequence.preempted += 1
        self.preemptions += 1
        self.waiting.appendleft(sequence)
