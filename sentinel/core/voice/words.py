"""The skeleton words of a message in each language.

Only headings and labels are translated. Names, actions, guards, causes and the sentences
that say why pass through as they stand in the log and on the command line.
"""

from dataclasses import dataclass
from typing import Literal

Language = Literal["en", "zh"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    headings: dict[str, str]  # by kind of notice
    severities: dict[str, str]
    labels: dict[str, str]
    colon: str
    comma: str


ENGLISH = Words(
    headings={
        "alert": "FIRING",
        "held": "HELD BACK",
        "approval": "APPROVAL ASKED",
        "action": "ACTION",
        "resolved": "RESOLVED",
        "digest": "DIGEST",
        "test": "TEST",
    },
    severities={},
    labels={
        "where": "Where",
        "target": "target",
        "host": "host",
        "model": "model",
        "pool": "pool",
        "since": "Since",
        "until": "Until",
        "state": "State",
        "cause": "Cause",
        "advice": "Advice",
        "did": "Action",
        "would": "Would do",
        "asks": "Asks to",
        "held": "Held back by",
        "because": "Because",
        "outcome": "Outcome",
        "alerts": "Alerts",
        "resolved": "Resolved",
        "detail": "Detail",
        "runbook": "Runbook",
        "approve": "To approve",
        "look": "To look",
    },
    colon=": ",
    comma=", ",
)

CHINESE = Words(
    headings={
        "alert": "告警",
        "held": "操作被拦下",
        "approval": "请求批准",
        "action": "已操作",
        "resolved": "已恢复",
        "digest": "汇总",
        "test": "测试",
    },
    severities={"critical": "严重", "warning": "警告", "info": "提示"},
    labels={
        "where": "位置",
        "target": "容器",
        "host": "主机",
        "model": "模型",
        "pool": "服务池",
        "since": "开始于",
        "until": "恢复于",
        "state": "状态",
        "cause": "原因",
        "advice": "建议",
        "did": "操作",
        "would": "本应执行",
        "asks": "请求执行",
        "held": "拦下它的",
        "because": "理由",
        "outcome": "结果",
        "alerts": "告警",
        "resolved": "已恢复",
        "detail": "详情",
        "runbook": "处置手册",
        "approve": "批准",
        "look": "查看",
    },
    colon="：",
    comma="，",
)

WORDS: dict[Language, Words] = {"en": ENGLISH, "zh": CHINESE}
