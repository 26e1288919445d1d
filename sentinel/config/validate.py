"""The tree against the schema, with all that is wrong in one go.

Pydantic leaves out the checks across a section's keys as long as one key of it is wrong. So
the wrong keys are taken out and the rest is looked at once more; only what is then said of
a key that is there counts, since anything else may be due to what was taken out.
"""

from typing import Any

from pydantic import ValidationError

from sentinel.config.blame import blame
from sentinel.config.document import Entries, plain
from sentinel.config.fault import Fault
from sentinel.config.section import Loc
from sentinel.config.settings import Settings


def validate(root: Entries) -> tuple[Settings | None, list[Fault]]:
    """The settings, or every fault."""
    data = plain(root)
    try:
        return Settings.model_validate(data), []
    except ValidationError as error:
        faults = blame(error, root)
        for found in error.errors():
            _take_out(data, found["loc"])
    try:
        Settings.model_validate(data)
    except ValidationError as error:
        faults += blame(error, root, only_of_keys=True)
    return None, faults


def _take_out(data: Any, at: Loc) -> None:
    """Remove the innermost key on the way `at`; indices of lists must stay as they are."""
    holder, key = None, ""
    for part in at:
        if isinstance(data, dict) and part in data:
            holder, key, data = data, str(part), data[part]
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
        else:
            break
    if holder is not None:
        holder.pop(key, None)
