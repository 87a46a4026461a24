"""The board: every change is a command in the journal, every question reads to its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from elastream.core.groupings.base import Feedback
from elastream.engines.spark.backends.board import NO_PLAN, Board, LanePlan
from elastream.engines.spark.backends.encoding import (
    feedback_from_json,
    feedback_kind,
    feedback_to_json,
    plan_from_json,
    plan_to_json,
)
from elastream.engines.spark.backends.kafka.journal import Journal
from elastream.engines.spark.backends.members import Attendance, MemberName


class KafkaBoard(Board):
    """The board on a connection's journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def plan(self, known: LanePlan = NO_PLAN) -> LanePlan:
        """Make it anew only if it is newer."""
        state = self._journal.sync()
        if state.plan is None or state.plan_version <= known.version:
            return known
        return plan_from_json(state.plan, state.plan_version)

    def publish(self, plan: LanePlan) -> None:
        """Append it."""
        self._journal.append("publish", plan=plan_to_json(plan))

    def new_generation(self, roles: Sequence[MemberName]) -> int:
        """Append the roles."""
        generation: int = self._journal.append("new_generation", roles=list(roles))
        return generation

    def take_role(self, generation: int, worker: int) -> MemberName | None:
        """Append the request; the first one gets the role."""
        role: MemberName | None = self._journal.append(
            "take_role", generation=generation, worker=worker
        )
        return role

    def report_ready(self, generation: int, role: MemberName) -> None:
        """Append it."""
        self._journal.append("report_ready", generation=generation, name=role)

    def ready(self, generation: int) -> frozenset[MemberName]:
        """Look them up."""
        roles = self._journal.sync().roles.get(generation, [])
        return frozenset(role.name for role in roles if role.ready)

    def start(self, generation: int) -> None:
        """Append it."""
        self._journal.append("start", generation=generation)

    def may_begin(self, generation: int, role: MemberName) -> bool | None:
        """Compare the numbers."""
        state = self._journal.sync()
        if all(each.name != role for each in state.roles.get(generation, [])):
            return None
        return state.started == generation

    def abandon(self, generation: int) -> None:
        """Append it."""
        self._journal.append("abandon", generation=generation)

    def reassign(self, role: MemberName, to: MemberName) -> bool:
        """Append the request."""
        given: bool = self._journal.append("reassign", name=role, to=to)
        return given

    def roles(self) -> Mapping[MemberName, int | None]:
        """Look them up."""
        state = self._journal.sync()
        return {role.name: role.worker for role in state.roles.get(state.started, [])}

    def vacate(self, names: Sequence[MemberName]) -> None:
        """Append it."""
        self._journal.append("vacate", names=list(names))

    def report_deaths(self, dead: Mapping[MemberName, str]) -> None:
        """Append them."""
        self._journal.append("report_deaths", dead=list(dead.items()))

    def members(self) -> Mapping[MemberName, Attendance]:
        """Look them up."""
        return {name: of.attendance for name, of in self._journal.sync().members.items()}

    def dismiss(self, names: Sequence[MemberName] | None = None) -> None:
        """Append it."""
        self._journal.append("dismiss", names=None if names is None else list(names))

    def beat(self, name: MemberName, busy_for: float = 0.0) -> None:
        """Append it."""
        self._journal.append("beat", name=name, busy_for=busy_for)

    def probe(self) -> None:
        """Append the heartbeat of nobody."""
        self._journal.append("beat", name=("", 0), busy_for=0.0)

    def report_failure(self, generation: int, name: MemberName, error: str) -> None:
        """Append it."""
        self._journal.append("report_failure", generation=generation, name=name, error=error)

    def failures(self, generation: int | None = None) -> Mapping[MemberName, str]:
        """Look them up."""
        state = self._journal.sync()
        return dict(state.failures.get(state.started if generation is None else generation, {}))

    def post(
        self, sender: MemberName, feedback: Feedback, producers: Iterable[MemberName] | None = None
    ) -> None:
        """Append it; nobody is woken by it."""
        self._journal.append(
            "post",
            name=sender,
            kind=feedback_kind(feedback),
            content=feedback_to_json(feedback),
            producers=None if producers is None else list(producers),
        )

    def feedback(
        self, producer: MemberName, operators: Sequence[str], after: int
    ) -> tuple[int, list[tuple[str, Feedback]]]:
        """Look up what has a higher number."""
        news = sorted(
            (number, sender[0], kind, content)
            for (whom, sender, kind), (number, content) in self._journal.sync().feedback.items()
            if number > after and whom in (None, producer) and sender[0] in operators
        )
        newest = news[-1][0] if news else after
        return newest, [
            (operator, feedback_from_json(kind, content)) for _, operator, kind, content in news
        ]
