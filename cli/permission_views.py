"""Rights and what users have of them, as text or JSON. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from delayctl.topology.pattern import MAX_PATTERN_BYTES, fits
from delayctl.topology.permissions import ADMINISTRATOR, VERBS, Lack, Rights, Surplus, tags_for
from delayctl.topology.spec import GrantSpec, Role
from delayctl.topology.topic_permissions import TopicLack
from delayctl.topology.wording import command, plural, shorten

_SHOWN_NAMES = 5
_SHOWN_PATTERN = 160


@dataclass(frozen=True, slots=True)
class Entitled:
    """A user with the rights that its role needs; without a user they are printed for whoever gets the role."""

    role: Role
    rights: Rights
    user: str | None = None

    @property
    def shown_user(self) -> str:
        """The user's name, or a placeholder that can't be taken for one."""
        return self.role.upper() if self.user is None else self.user


@dataclass(frozen=True, slots=True)
class Review:
    """How one user stands to its role: `found` is None for a user without rights here, `tags` for one that is not there."""

    grant: GrantSpec
    rights: Rights
    tags: tuple[str, ...] | None
    found: Rights | None
    lacks: tuple[Lack, ...] = ()
    more: tuple[Surplus, ...] = ()
    topics: tuple[TopicLack, ...] = ()

    @property
    def missing_tags(self) -> tuple[str, ...]:
        """Tags that the role needs and the user has not; an administrator may do all that others may."""
        has = self.tags or ()
        return () if ADMINISTRATOR in has else tuple(tag for tag in tags_for(self.grant.role) if tag not in has)

    @property
    def is_administrator(self) -> bool:
        """Say whether the user can give itself every right there is."""
        return ADMINISTRATOR in (self.tags or ())

    @property
    def is_fine(self) -> bool:
        """Say whether it has what it needs and no more."""
        return self.tags is not None and not (
            self.lacks or self.more or self.topics or self.missing_tags or self.is_administrator or self.found is None
        )

    @property
    def differs(self) -> bool:
        """Say whether its three patterns allow less or more than they should."""
        return bool(self.found is None or self.lacks or self.more)


def rights_text(entitled: Sequence[Entitled], *, source: str, vhost: str) -> str:
    """The rights as people read them, then as an administrator pastes them."""
    lines = [f"{source} → virtual host {vhost}", ""]
    for one in entitled:
        lines += [f"{one.shown_user} ({one.role})" if one.user is not None else one.role]
        lines += [f"  {verb:<9}  {getattr(one.rights, verb)}" for verb in VERBS]
        lines += [f"  {'tags':<9}  {tag}" for tag in tags_for(one.role)]
        lines += [""]
    return "\n".join([*lines, *command_lines(entitled, vhost)])


def command_lines(entitled: Sequence[Entitled], vhost: str) -> Iterator[str]:
    """What an administrator types."""
    yield "# For an administrator; what the user had in this virtual host is replaced."
    for one in entitled:
        words = ("rabbitmqctl", "set_permissions", "-p", vhost, one.shown_user)
        yield command(*words, one.rights.configure, one.rights.write, one.rights.read)
    tagged = [one for one in entitled if tags_for(one.role)]
    if tagged:
        yield "# Tags are replaced too: name those that the user has beside the new one."
    for one in tagged:
        yield command("rabbitmqctl", "set_user_tags", one.shown_user, *tags_for(one.role))


def length_warnings(entitled: Sequence[Entitled]) -> Iterator[str]:
    """What to say of patterns that newer brokers will not take."""
    for one in entitled:
        for verb in VERBS:
            if not fits(getattr(one.rights, verb)):
                size = len(getattr(one.rights, verb).encode())
                yield (
                    f"Warning: the {verb} pattern of {one.shown_user} has {size:,} bytes; "
                    f"RabbitMQ 4.3 takes {MAX_PATTERN_BYTES:,} at most, 3.10 about 32,000"
                )


def rights_json(entitled: Sequence[Entitled], *, vhost: str) -> dict[str, Any]:
    """The rights as programs read them; a role without a user has null there."""
    return {
        "vhost": vhost,
        "users": [
            {"user": one.user, "role": one.role, **_patterns(one.rights), "tags": list(tags_for(one.role))}
            for one in entitled
        ],
    }


def review_text(reviews: Sequence[Review], *, source: str, vhost: str) -> str:
    """How users stand to their roles, as people read it."""
    lines = [f"{source} ↔ users of virtual host {vhost}", ""]
    for review in reviews:
        who = f"{shorten(review.grant.user)} ({review.grant.role})"
        findings = list(_findings(review))
        lines += [f"  ok {who}"] if not findings else [f"   ! {who}", *(f"       {finding}" for finding in findings)]
    off = sum(not review.is_fine for review in reviews)
    verdict = (
        "Every user has what it needs and no more." if not off else f"{plural(off, 'user')} of {len(reviews)} to mend."
    )
    return "\n".join([*lines, "", verdict])


def _findings(review: Review) -> Iterator[str]:
    if review.tags is None:
        yield "is not among the broker's users"
    if review.tags is not None and review.found is None:
        yield "has no rights in this virtual host"
    if review.found is not None:
        for lack in review.lacks:
            yield f"lacks {lack.verb} on {_names(lack.names)}"
    for more in review.more:
        yield _surplus_text(more)
    for topic in review.topics:
        yield _topic_text(topic)
    if review.tags is not None and review.missing_tags:
        yield f"lacks the tag {', '.join(review.missing_tags)}"
    if review.is_administrator:
        yield "has the tag administrator, and can give itself every right"


def _surplus_text(more: Surplus) -> str:
    pattern = shorten(more.pattern, _SHOWN_PATTERN)
    if not more.is_readable:
        return f"{more.verb} {pattern} can't be compared with what it needs"
    beyond = [_names(more.names)] if more.names else []
    beyond += ["names that nobody has yet"] if more.is_open else []
    return f"{more.verb} {pattern} also takes {' and '.join(beyond)}"


def _topic_text(topic: TopicLack) -> str:
    does = "bind" if topic.verb == "read" else "publish"
    pattern = shorten(topic.pattern, _SHOWN_PATTERN) or "^$"
    gate = f"topic permission at {shorten(topic.exchange)} takes {topic.verb} {pattern} only"
    if topic.is_certain:
        return f"can't {does} {_names(topic.keys)}: its {gate}"
    return f"may not be able to {does} {_names(topic.keys) or 'what it has to'}: its {gate}"


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(shorten(name) for name in names[:_SHOWN_NAMES])
    return shown if len(names) <= _SHOWN_NAMES else f"{shown} and {len(names) - _SHOWN_NAMES:,} more"


def change_text(reviews: Sequence[Review]) -> str:
    """What would be set, and what it takes the place of."""
    lines: list[str] = []
    for review in reviews:
        lines += [f"  {'+' if review.found is None else '~'} {shorten(review.grant.user)} ({review.grant.role})"]
        for verb in VERBS:
            before = None if review.found is None else getattr(review.found, verb)
            after = getattr(review.rights, verb)
            lines += [f"      {verb}: {after if before in (None, after) else f'{before} → {after}'}"]
    return "\n".join(lines)


def review_json(reviews: Sequence[Review], *, vhost: str) -> dict[str, Any]:
    """How users stand to their roles, as programs read it."""
    return {
        "vhost": vhost,
        "fine": all(review.is_fine for review in reviews),
        "users": [_review_json(review) for review in reviews],
    }


def _review_json(review: Review) -> dict[str, Any]:
    return {
        "user": review.grant.user,
        "role": review.grant.role,
        "fine": review.is_fine,
        "exists": review.tags is not None,
        "needed": _patterns(review.rights),
        "found": None if review.found is None else _patterns(review.found),
        "lacks": {lack.verb: list(lack.names) for lack in review.lacks},
        "more": {
            more.verb: {"names": list(more.names), "open": more.is_open, "readable": more.is_readable}
            for more in review.more
        },
        "topics": [
            {
                "exchange": topic.exchange,
                "verb": topic.verb,
                "pattern": topic.pattern,
                "keys": list(topic.keys),
                "certain": topic.is_certain,
            }
            for topic in review.topics
        ],
        "tags": None if review.tags is None else list(review.tags),
        "missing_tags": list(review.missing_tags),
    }


def _patterns(rights: Rights) -> Mapping[str, str]:
    return {verb: getattr(rights, verb) for verb in VERBS}
