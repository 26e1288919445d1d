"""Keys that are checked and kept, and that this version does nothing with.

The table is the whole truth: a version that learns a part takes its line away.
"""

from collections.abc import Iterator
from fnmatch import fnmatchcase

from sentinel.config.document import dotted
from sentinel.config.section import Loc, keys_of, sections
from sentinel.config.settings import Settings

_NOT_YET = {
    "pools.*.switch": "traffic is not moved yet",
    "remedies.*.ladder.*.shift_traffic": "a person is called in its place yet",
    "remedies.*.ladder.*.restart.drain": "traffic is not moved away first yet",
    "metrics_source.prometheus.http_config.oauth2": "OAuth2 is not spoken yet",
    "metrics_source.prometheus.http_config.proxy_connect_header": "no such header is sent yet",
    "schedule.restarts": "planned restarts are not carried out yet",
    "schedule.digest": "no digest is sent yet",
    "schedule.heartbeat": "no heartbeat is sent yet",
    "receivers.*.slack_configs.*.app_token": "Slack bots are not used yet; use api_url",
    "receivers.*.slack_configs.*.app_token_file": "Slack bots are not used yet; use api_url_file",
    "receivers.*.wechat_configs": "the WeCom app is not used yet; use wecom_configs",
    "receivers.*.email_configs": "no e-mail is sent yet",
    "receivers.*.alertmanager_configs": "alerts are not sent on to an Alertmanager yet",
    "global.slack_socket_mode": "there are no buttons in Slack yet; use `sentinel approve`",
    "receivers.*_configs.*.http_config": "messages are sent without it yet",
    "global.http_config": "messages are sent without it yet",
    "templates": "messages have Sentinel's own wording yet",
}


_OF_ALERTMANAGERS_TEXT = (
    "title", "title_link", "pretext", "text", "message_text", "fallback", "footer", "color",
    "callback_id", "image_url", "thumb_url", "fields", "actions", "html", "message", "payload",
)  # fmt: skip
_NOT_YET |= {
    f"receivers.*_configs.*.{key}": "Sentinel writes its own text" for key in _OF_ALERTMANAGERS_TEXT
}


def not_yet(settings: Settings) -> list[tuple[str, str]]:
    """Each key that is set in vain, and what that means."""
    return [(dotted(at), sentence) for at, sentence in set_in_vain(settings)]


def set_in_vain(settings: Settings) -> Iterator[tuple[Loc, str]]:
    for at, section in sections(settings):
        for key, name in keys_of(type(section)).items():
            if name in section.model_fields_set and getattr(section, name):
                here = (*at, key)
                path = ".".join(str(part) for part in here)
                for glob, sentence in _NOT_YET.items():
                    if fnmatchcase(path, glob):
                        yield here, sentence
