"""Xids: the driver's numbers for what went wrong on a GPU, after NVIDIA's catalogue.

What helps is what the catalogue says to do at once. Only `restart` lies in Sentinel's hands;
a container is never touched for the others, because one that starts on a broken GPU hangs.
The GPU's own recovery action, where the driver tells it, counts for more than any number.
"""

from dataclasses import dataclass
from typing import Literal

Fault = Literal["application", "driver", "hardware", "link", "none"]
Help = Literal["nothing", "restart", "reset", "reboot", "inspect"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Xid:
    number: int
    says: str
    fault: Fault  # most likely
    severity: Literal["info", "warning", "critical"]
    helps: Help  # restart: of the container; reset: of the GPU; reboot: of the host

    @property
    def may_act(self) -> bool:
        """Whether starting the container again is the cure."""
        return self.helps == "restart"


_SEVERITY: dict[Help, Literal["info", "warning", "critical"]] = {
    "nothing": "info",
    "restart": "warning",
    "inspect": "warning",
    "reset": "critical",
    "reboot": "critical",
}


def _xid(number: int, fault: Fault, helps: Help, says: str) -> Xid:
    return Xid(number=number, says=says, fault=fault, severity=_SEVERITY[helps], helps=helps)


XIDS: dict[int, Xid] = {
    xid.number: xid
    for xid in (
        _xid(8, "driver", "restart", "the GPU stopped processing"),
        _xid(11, "application", "restart", "the commands sent to the GPU were invalid"),
        _xid(13, "application", "restart", "a kernel raised an exception, mostly out of bounds"),
        _xid(31, "application", "restart", "a kernel used an address that is not mapped"),
        _xid(32, "hardware", "restart", "commands were corrupted on their way, often by PCIe"),
        _xid(38, "driver", "nothing", "the driver's firmware reported an error"),
        _xid(43, "application", "nothing", "a faulty application was ended; the GPU is well"),
        _xid(44, "driver", "nothing", "a fault while contexts were switched"),
        _xid(45, "none", "nothing", "the work of a process that went away was cleared"),
        _xid(46, "driver", "reset", "the GPU stopped processing"),
        _xid(48, "hardware", "reset", "memory had an error that ECC cannot correct"),
        _xid(61, "driver", "inspect", "an internal controller reached a breakpoint"),
        _xid(62, "hardware", "reset", "an internal controller halted"),
        _xid(63, "hardware", "nothing", "a bad part of memory will be replaced at the next reset"),
        _xid(64, "hardware", "reset", "a bad part of memory could not be replaced"),
        _xid(69, "application", "restart", "a command of the wrong class was sent"),
        _xid(74, "link", "reset", "a connection over NVLink failed, on either side of it"),
        _xid(79, "hardware", "reboot", "the GPU fell off the bus"),
        _xid(92, "hardware", "nothing", "memory has many errors, all corrected by ECC"),
        _xid(94, "hardware", "restart", "a memory error struck one application, and only it"),
        _xid(95, "hardware", "reset", "a memory error may have struck every application"),
        _xid(109, "driver", "reset", "switching contexts took too long"),
        _xid(110, "hardware", "reset", "a security fault"),
        _xid(119, "driver", "reset", "the GPU's system processor (GSP) did not answer"),
        _xid(120, "driver", "reset", "the GPU's system processor (GSP) reported an error"),
        _xid(121, "hardware", "nothing", "errors on the link to the CPU, all corrected"),
        _xid(136, "link", "reset", "a link could not be trained"),
        _xid(137, "application", "nothing", "a memory fault over NVLink"),
        _xid(140, "hardware", "reset", "memory errors came before bad parts could be replaced"),
        _xid(143, "hardware", "reset", "the GPU could not be initialised"),
        *(_xid(n, "link", "inspect", "an error of NVLink") for n in range(144, 151)),
        _xid(154, "none", "nothing", "the recovery that the driver asks for has changed"),
        _xid(155, "link", "reset", "NVLink went down, perhaps on purpose"),
        _xid(156, "hardware", "reset", "a bad part of the GPU will be replaced at the next reset"),
        _xid(157, "hardware", "inspect", "a bad part of the GPU cannot be replaced: none is left"),
        _xid(158, "hardware", "reset", "the GPU ran into a fatal timeout"),
        _xid(171, "hardware", "reset", "GPU memory (DRAM) had an error that cannot be corrected"),
        _xid(172, "hardware", "reset", "the GPU's SRAM had an error that cannot be corrected"),
    )
}

OTHER = "other"
LABELS = (*map(str, XIDS), OTHER)


def label_of(number: int) -> str:
    return str(number) if number in XIDS else OTHER


_HELP: dict[Help, str] = {
    "nothing": "Nothing needs to be done",
    "restart": "Starting the container again helps",
    "inspect": "Look into it; a restart of the container does not help",
    "reset": "The GPU needs a reset; a restart of the container does not help",
    "reboot": "The host needs a reboot; a restart of the container does not help",
}


def explain(number: int) -> str:
    """One sentence or two for the person on call."""
    xid = XIDS.get(number)
    if xid is None:
        return f"Xid {number}: see NVIDIA's catalogue of Xids"
    return f"Xid {number}: {xid.says}. {_HELP[xid.helps]}"
