"""What of a source's place may be shown: what is surely harmless, and a digest of the rest."""

import hashlib
import re

_WORD = re.compile(r"[A-Z]?[a-z\d]+|[A-Z\d]+(?![a-z])")
_SECRET = re.compile(
    r"(?:\w*_)?(?:user(?:_?(?:name|id))?|uid|login|pass|pwd|sig(?:nature)?|cred(?:ential)?s?|auth(?:orization)?"
    r"|\w*(?:password|passwd|passphrase|secret|token)"
    r"|(?:access|account|api|client|encryption|master|private|sas|secret|shared|ssl)_?key)"
)
_HOST = r"(?:[\w.-]+|\[[\da-fA-F:.]+\])(?::\d+)?"
_HOSTS = rf"{_HOST}(?:,{_HOST})*(?:[/:][\w.$-]+)?"
_REST = r"(?P<rest>(?:[/:;?][^@]*)?)"
# What is shown, and what may follow. A login ends at the last @; where an = stands before that, it may be in a password.
_HARMLESS = (
    re.compile(rf"(jdbc:\w+(?::\w+)?://)(?:[^=]*@)?({_HOSTS}){_REST}"),
    re.compile(rf"(jdbc:oracle:\w+:)[^=]*(@(?://)?{_HOSTS}){_REST}"),
)
_PARAMETERS = r"(?P<rest>(?:[?&;][^@]*)?)"
_PATH = r"(?:(?![?&;]\s*[\w.-]+\s*=)[^@])*"  # A question mark may stand for any letter.
_HARMLESS_PATHS = (
    re.compile(rf"((?!.*://)[\w.]+:)({_PATH}){_PARAMETERS}", re.DOTALL),
    re.compile(rf"([\w.]+:[\w.+-]+://)(?:[^/=]*:[^/=]*@)?((?:[\w.-]+@)?[\w.-]*(?::\d+)?(?=/|$){_PATH}){_PARAMETERS}"),
)

_LOGIN = re.compile(r"//[^/@:]*:(?!\d+[;?])[^/]*@")
_ORACLES_LOGIN = re.compile(r"^(jdbc:oracle:\w+:).*@")
_PARAMETER = re.compile(r"[?&;]([\w.-]+)=[^&;]*")
# Drivers of databases also read shop:user=reader;… and (host=db,user=reader).
_DRIVERS_PARAMETERS = (
    re.compile(r":([\w.-]+)=[^;]*"),
    re.compile(r"(?<=\()([\w.-]+)=(?:(?!,[\w.-]+=)[^()])*"),
    re.compile(r",([\w.-]+)=(?:(?!,[\w.-]+=)[^()])*"),
)


def disclosed(text: str) -> str:
    """A place as it may be shown; the same for the same place, and another for another."""
    found = next((match for each in _patterns(text) if (match := each.fullmatch(text))), None)
    if found is None:
        kind = ":".join(text.split(":")[: 1 + _is_jdbc(text)])
        return f"{kind}:… ({digest(identity(text), kind)})"
    harmless, known = found[1] + found[2], identity(text)
    is_all = not found["rest"] or harmless == known
    return harmless if is_all else f"{harmless} ({digest(known, harmless)})"


def identity(text: str) -> str:
    """What makes it this place: logins and passwords are left out as far as they are recognised. Not to be shown."""
    known = _without_secrets(_ORACLES_LOGIN.sub(r"\1@", _LOGIN.sub("//", text)), _PARAMETER)
    for pattern in _DRIVERS_PARAMETERS if _is_jdbc(text) else ():
        known = _without_secrets(known, pattern)
    return known


def without_logins(text: str) -> str:
    """A text in which places stand, without the logins and passwords in them, as far as they are recognised."""
    known = re.sub(r"://[^/\s]*@", "://", text)
    return re.sub(r"([?&;])([\w.-]+)=[^&;\s'\"`]*", lambda found: found[1] if is_secret(found[2]) else found[0], known)


def is_secret(name: str) -> bool:
    """Whether a parameter says who reads, and not what is read: a job stays the same when a password changes."""
    return bool(_SECRET.fullmatch("_".join(_WORD.findall(name)).lower()))


def digest(value: str, salt: str) -> str:
    """The same for the same value and salt; slow and short, so that guessing tells little."""
    found = hashlib.scrypt(value.encode(), salt=salt.encode(), n=1 << 14, r=8, p=1, dklen=4)
    return f"digest {found.hex()}"


def _patterns(text: str) -> tuple[re.Pattern[str], ...]:
    return _HARMLESS if _is_jdbc(text) else _HARMLESS_PATHS


def _is_jdbc(text: str) -> bool:
    return text.startswith("jdbc:")


def _without_secrets(text: str, parameter: re.Pattern[str]) -> str:
    return parameter.sub(lambda found: "" if is_secret(found[1]) else found[0], text)
