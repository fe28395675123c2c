"""The command that says, checks and sets what each role may do: permissions."""

from dataclasses import replace
from typing import Any

import click
from delayctl.cli import exit_codes
from delayctl.cli.carry_out import ask
from delayctl.cli.host import host_for
from delayctl.cli.options import (
    connection_from,
    connection_options,
    output_option,
    refuse_question,
    spec_from,
    template_options,
    topology_argument,
)
from delayctl.cli.output import tell
from delayctl.cli.permission_views import (
    Entitled,
    Review,
    change_text,
    length_warnings,
    review_json,
    review_text,
    rights_json,
    rights_text,
)
from delayctl.cli.views import to_json_text
from delayctl.topology.errors import BadOption, DelayctlError
from delayctl.topology.expand import expand
from delayctl.topology.management import Management
from delayctl.topology.permissions import Rights, lacking, rights_for, surplus
from delayctl.topology.spec import ROLES, GrantSpec, Role, Spec
from delayctl.topology.topic_permissions import refused_topics
from delayctl.topology.users import read_names, read_permissions, read_tags, read_topic_permissions, set_rights
from delayctl.topology.wording import did_you_mean, plural, quoted


@click.command(
    short_help="Show, check or set the rights that users need.",
    epilog="""\b
Examples:
  delayctl permissions topology.yaml                             # for every role, or the users in the file
  delayctl permissions topology.yaml --role publisher --user shop
  delayctl permissions topology.yaml --check                     # 1: somebody has too little or too much
  delayctl permissions topology.yaml --apply --url amqp://admin@mq.example.com/
""",
)
@topology_argument
@click.option("--role", type=click.Choice(ROLES), help="This role only.")
@click.option("--user", metavar="NAME", help="This user only; with --role it need not be in the file.")
@click.option("--check", is_flag=True, help="Compare with what the users under 'permissions:' have on the broker.")
@click.option("--apply", "apply_", is_flag=True, help="Set it for the users under 'permissions:'; asks before.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@output_option
@template_options
@connection_options
def permissions(topology: str, role: Role | None, user: str | None, output: str, **options: Any) -> int:
    """Say what each role needs to be able to do with what TOPOLOGY describes, and nothing more."""
    check, apply_, yes = (options.pop(name) for name in ("check", "apply_", "yes"))
    if check and apply_:
        raise click.UsageError("--check only looks and --apply sets: give one of them")
    refuse_question(topology, yes=yes or not apply_)
    connection, spec = connection_from(options), spec_from(topology, options)
    vhost = connection.vhost_for(spec)
    grants = _chosen(spec, role, user)
    if not (check or apply_):
        _print(_entitled(grants, role, spec), source=topology, vhost=vhost, output=output)
        return exit_codes.DONE
    if not grants:
        fix = "add permissions: {shop: publisher} to the file, or give --user and --role"
        raise DelayctlError("there is no user to look at", where=topology, fix=fix)
    management = host_for(connection, vhost).management
    assert management is not None
    reviews = _look(management, replace(spec, grants=grants), vhost)
    if apply_:
        reviews = _set(management, reviews, spec, vhost, ask_first=not yes)
    as_json = output == "json"
    tell(
        to_json_text(review_json(reviews, vhost=vhost))
        if as_json
        else review_text(reviews, source=topology, vhost=vhost)
    )
    # Tags and topic permissions are not ours to set: apply reports what is left to do, and has done its own part.
    is_done = not any(review.differs for review in reviews) if apply_ else all(review.is_fine for review in reviews)
    return exit_codes.DONE if is_done else exit_codes.FAILED


def _chosen(spec: Spec, role: Role | None, user: str | None) -> tuple[GrantSpec, ...]:
    """The users that are meant; () where only roles are."""
    grants = tuple(
        grant for grant in spec.grants if user in (None, grant.user) and (role is None or grant.role == role)
    )
    if grants or user is None:
        return grants
    if role is not None:
        return (GrantSpec(user, role),)
    known = [grant.user for grant in spec.grants]
    fix = "give --role too, or list the user under permissions: in the file"
    raise BadOption(f"--user {quoted(user)} is not in the file{did_you_mean(user, known)}", fix=fix)


def _entitled(grants: tuple[GrantSpec, ...], role: Role | None, spec: Spec) -> list[Entitled]:
    topology = expand(spec)
    if grants:
        return [Entitled(grant.role, rights_for(grant, spec, topology), grant.user) for grant in grants]
    roles: tuple[Role, ...] = ROLES if role is None else (role,)
    return [Entitled(each, rights_for(GrantSpec("", each), spec, topology)) for each in roles]


def _print(entitled: list[Entitled], *, source: str, vhost: str, output: str) -> None:
    for warning in length_warnings(entitled):
        click.echo(warning, err=True)
    if output == "json":
        click.echo(to_json_text(rights_json(entitled, vhost=vhost)))
    else:
        click.echo(rights_text(entitled, source=source, vhost=vhost))


def _look(management: Management, spec: Spec, vhost: str) -> list[Review]:
    """Every user that the file names, beside what it has on the broker."""
    topology = expand(spec)
    tags, found, there = read_tags(management), read_permissions(management), read_names(management)
    lacks, more = lacking(spec, topology, found), surplus(spec, topology, found, there)
    topics = refused_topics(spec, topology, read_topic_permissions(management), vhost=vhost)
    rights = {entry["user"]: Rights(entry["configure"], entry["write"], entry["read"]) for entry in found}
    return [
        Review(
            grant,
            rights_for(grant, spec, topology),
            tags.get(grant.user),
            rights.get(grant.user),
            tuple(lack for lack in lacks if lack.user == grant.user),
            tuple(surplus for surplus in more if surplus.user == grant.user),
            tuple(topic for topic in topics if topic.user == grant.user),
        )
        for grant in spec.grants
    ]


def _set(management: Management, reviews: list[Review], spec: Spec, vhost: str, *, ask_first: bool) -> list[Review]:
    """Set what differs; says how the users stand afterwards."""
    _refuse_strangers(reviews)
    to_set = [review for review in reviews if review.differs]
    if not to_set:
        return reviews
    click.echo(f"To be set:\n{change_text(to_set)}", err=True)
    if ask_first:
        ask("Set these rights?")
    for review in to_set:
        set_rights(management, review.grant.user, review.rights)
        click.echo(f"set {review.grant.user}", err=True)
    return _look(management, replace(spec, grants=tuple(review.grant for review in reviews)), vhost)


def _refuse_strangers(reviews: list[Review]) -> None:
    if strangers := [quoted(review.grant.user) for review in reviews if review.tags is None]:
        what = f"{plural(len(strangers), 'user')} of the file not on the broker: {', '.join(strangers)}"
        fix = "create them first (rabbitmqctl add_user NAME asks for the password), or correct the file"
        raise DelayctlError(f"{what}; nothing was set", fix=fix)
