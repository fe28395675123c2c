"""How a broker says no: by closing the channel, or the whole connection, with a code and a text."""

ACCESS_REFUSED, NOT_FOUND, RESOURCE_LOCKED, PRECONDITION_FAILED = 403, 404, 405, 406
FRAME_ERROR, SYNTAX_ERROR, COMMAND_INVALID, CHANNEL_ERROR, UNEXPECTED_FRAME = 501, 502, 503, 504, 505
NOT_ALLOWED, NOT_IMPLEMENTED, INTERNAL_ERROR = 530, 540, 541

_WORDS = {
    403: "ACCESS_REFUSED",
    404: "NOT_FOUND",
    405: "RESOURCE_LOCKED",
    406: "PRECONDITION_FAILED",
    501: "FRAME_ERROR",
    502: "SYNTAX_ERROR",
    503: "COMMAND_INVALID",
    504: "CHANNEL_ERROR",
    505: "UNEXPECTED_FRAME",
    530: "NOT_ALLOWED",
    540: "NOT_IMPLEMENTED",
    541: "INTERNAL_ERROR",
}


class Refusal(Exception):
    """The broker closes something over what a client asked."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(code, text)
        self.code = code
        word = _WORDS.get(code, "")
        self.text = text if text.startswith(word) else f"{word} - {text}"


class ChannelRefusal(Refusal):
    """The channel is closed."""


class ConnectionRefusal(Refusal):
    """The connection is closed."""
