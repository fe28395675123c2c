"""What a RocketMQ broker answers: put statuses, response codes, send statuses, and the errors they become."""

from enum import Enum

from delayctl.topology.errors import DelayctlError


class PutMessageStatus(Enum):
    """What became of a message at the store."""

    PUT_OK = "PUT_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"
    SERVICE_NOT_AVAILABLE = "SERVICE_NOT_AVAILABLE"
    CREATE_MAPPED_FILE_FAILED = "CREATE_MAPPED_FILE_FAILED"
    MESSAGE_ILLEGAL = "MESSAGE_ILLEGAL"
    PROPERTIES_SIZE_EXCEEDED = "PROPERTIES_SIZE_EXCEEDED"
    OS_PAGE_CACHE_BUSY = "OS_PAGE_CACHE_BUSY"
    WHEEL_TIMER_MSG_ILLEGAL = "WHEEL_TIMER_MSG_ILLEGAL"
    WHEEL_TIMER_NOT_ENABLE = "WHEEL_TIMER_NOT_ENABLE"


class ResponseCode(Enum):
    """What the broker answers to a request."""

    SUCCESS = "SUCCESS"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"
    SERVICE_NOT_AVAILABLE = "SERVICE_NOT_AVAILABLE"
    SYSTEM_ERROR = "SYSTEM_ERROR"
    MESSAGE_ILLEGAL = "MESSAGE_ILLEGAL"
    NO_PERMISSION = "NO_PERMISSION"
    SUBSCRIPTION_GROUP_NOT_EXIST = "SUBSCRIPTION_GROUP_NOT_EXIST"


class SendStatus(Enum):
    """What the producer is told about a message that was stored."""

    SEND_OK = "SEND_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"


# The message is stored all the same: only the flush or the replica is late.
STORED_LATE = {
    PutMessageStatus.FLUSH_DISK_TIMEOUT,
    PutMessageStatus.FLUSH_SLAVE_TIMEOUT,
    PutMessageStatus.SLAVE_NOT_AVAILABLE,
}

_RESPONSES = {
    PutMessageStatus.PUT_OK: ResponseCode.SUCCESS,
    PutMessageStatus.FLUSH_DISK_TIMEOUT: ResponseCode.FLUSH_DISK_TIMEOUT,
    PutMessageStatus.FLUSH_SLAVE_TIMEOUT: ResponseCode.FLUSH_SLAVE_TIMEOUT,
    PutMessageStatus.SLAVE_NOT_AVAILABLE: ResponseCode.SLAVE_NOT_AVAILABLE,
    PutMessageStatus.SERVICE_NOT_AVAILABLE: ResponseCode.SERVICE_NOT_AVAILABLE,
    PutMessageStatus.CREATE_MAPPED_FILE_FAILED: ResponseCode.SYSTEM_ERROR,
    PutMessageStatus.MESSAGE_ILLEGAL: ResponseCode.MESSAGE_ILLEGAL,
    PutMessageStatus.PROPERTIES_SIZE_EXCEEDED: ResponseCode.MESSAGE_ILLEGAL,
    PutMessageStatus.OS_PAGE_CACHE_BUSY: ResponseCode.SYSTEM_ERROR,
    PutMessageStatus.WHEEL_TIMER_MSG_ILLEGAL: ResponseCode.MESSAGE_ILLEGAL,
    PutMessageStatus.WHEEL_TIMER_NOT_ENABLE: ResponseCode.SYSTEM_ERROR,
}
_SEND_STATUSES = {
    ResponseCode.SUCCESS: SendStatus.SEND_OK,
    ResponseCode.FLUSH_DISK_TIMEOUT: SendStatus.FLUSH_DISK_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: SendStatus.FLUSH_SLAVE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: SendStatus.SLAVE_NOT_AVAILABLE,
}


class MQClientError(DelayctlError):
    """A client refuses a call, or finds no broker."""


class MQBrokerError(MQClientError):
    """The broker answered a request with an error."""

    def __init__(self, code: ResponseCode, what: str) -> None:
        super().__init__(f"{what}: {code.value}")
        self.response_code = code


class NumberFormatError(MQBrokerError):
    """A property that must be a whole number is none; the put throws, the sender hears SYSTEM_ERROR."""

    def __init__(self, name: str, value: str) -> None:
        super().__init__(ResponseCode.SYSTEM_ERROR, f"property {name} is no whole number: {value!r}")


class BrokerStartError(DelayctlError):
    """The broker cannot start and exits."""

    def __init__(self, what: str, exit_code: int) -> None:
        super().__init__(f"{what}; the broker exits with {exit_code}")
        self.exit_code = exit_code


class UnsupportedOperationError(DelayctlError):
    """A batch holds what a batch cannot hold."""


def response_code(status: PutMessageStatus) -> ResponseCode:
    """What a sender is answered for a put status."""
    return _RESPONSES[status]


def send_status(code: ResponseCode) -> SendStatus:
    """What `send` returns for an answer; an answer that says the message is not stored is raised."""
    try:
        return _SEND_STATUSES[code]
    except KeyError:
        raise MQBrokerError(code, "the broker did not store the message") from None
