"""Compares stored CQs with their texts while the gateway serves, once for each revision of the compiler.

A literal is called fixed if it is a part of the plan or of the SELECT list, and not only of the row of constants.
Earlier versions had two faults with fixed literals. On the fast path (grouping/compiler/prepared.py), later CQs of a
text template could get the SELECT list, aggregates or join of the template's first CQ. And two aggregates of a query
were taken for one if they differed only in elements of IN lists after the first. So the texts of all CQs whose
templates have fixed literals are compiled again. If a CQ is stored with other literals than its text has, it is
replaced as by CREATE OR REPLACE.
"""

from __future__ import annotations

import logging
import re
import time
from collections import deque

from gateway.commands.statements import Statements
from gateway.model.held import NotYet
from gateway.model.loaded import Loaded
from gateway.model.unit import CqKey
from gateway.state.cq_pass import CqPass
from gateway.state.work import Change, joined
from gateway.state.working_copy import WorkingCopy
from gateway.topics.positions import TopicEnds
from grouping.compiler.literal_differences import differ_in_literals
from grouping.compiler.prepared import Preparer
from grouping.model.errors import InputError
from grouping.model.group import canonical_constants
from grouping.plan.group import CompiledQuery
from grouping.statements.cq_text import CqText

__all__ = ["REVISION", "StoredQueries"]

log = logging.getLogger(__name__)

REVISION = 2
"""The revision of the compiler. A higher number makes the next gateway compare all stored CQs again."""
_LIST = re.compile(r"\bIN\b", re.IGNORECASE)
_STEP_SECONDS = 0.02
"""Approximate time of one step; commands are carried out between two steps."""
_LOADED_AT_ONCE = 50


class StoredQueries:
    """Finds stored CQs that differ from their texts, and compiles these CQs again."""

    def __init__(self, working: WorkingCopy, statements: Statements, positions: TopicEnds) -> None:
        self._working = working
        self._statements = statements
        self._positions = positions
        self._pass = CqPass(working, REVISION)
        self._waiting: deque[tuple[CqKey, bytes]] = deque()
        """CQs that were read but not yet compared, with the ids of their templates."""
        self._has_fixed: dict[bytes, bool] = {}
        """Id of a template → whether it may have fixed literals, so that its CQs may be wrong."""
        self._compared = self._replaced = 0

    def reload(self) -> None:
        """Start the comparison again, unless all CQs were compared already. Call `reload` before the first step.

        Raises:
            StoreUnavailable: Redis does not answer.
        """
        self._pass.reload()
        self._preparer = Preparer(self._statements.catalog)
        self._waiting.clear()
        self._has_fixed.clear()
        self._compared = self._replaced = 0

    @property
    def busy(self) -> bool:
        """Whether CQs are left to be compared."""
        return self._pass.is_due

    def step(self, now_ms: int) -> Change:
        """Compare some CQs within the unit of work, and return the change.

        Args:
            now_ms: The present, epoch milliseconds.

        Raises:
            OperationalError: A server does not answer.
        """
        if not self._pass.is_due:
            return Change()
        until = time.monotonic() + _STEP_SECONDS
        changes: list[Change] = []
        while time.monotonic() < until:
            if not self._waiting and not self._read():
                if not changes:  # the changes of this step must be committed first
                    self._finish()
                break
            changes += self._compare(now_ms)
        return joined(changes)

    def _read(self) -> bool:
        """Read further CQs, and return whether there were any."""
        while found := self._pass.next():
            self._waiting += [(key, cq.template) for key, cq in found if self._has_fixed.get(cq.template, True)]
            if self._waiting:
                return True
        return False

    def _finish(self) -> None:
        self._pass.finish()
        if self._compared:
            log.info("stored cqs were compared", extra={"cqs": self._compared, "replaced": self._replaced})

    def _compare(self, now_ms: int) -> list[Change]:
        """Compare the next waiting CQs with their texts, and return the changes of wrong CQs."""
        some = [self._waiting.popleft() for _ in range(min(len(self._waiting), _LOADED_AT_ONCE))]
        some = [(key, template) for key, template in some if self._has_fixed.get(template, True)]
        loaded = self._working.load(key for key, _ in some)
        changes = []
        for key, template in some:
            query = self._compiled(loaded, key, template)
            if query is None or not self._is_wrong(loaded, key, query):
                continue
            try:
                changes.append(self._replace(loaded, key, query, now_ms))
            except NotYet:
                self._waiting.append((key, template))
            except InputError as error:
                _log_kept(key, error)
        return changes

    def _compiled(self, loaded: Loaded, key: CqKey, template: bytes) -> CompiledQuery | None:
        """Compile the text of a loaded CQ.

        Returns:
            The compiled query; None if the template has no fixed literals, or if the CQ or its sources are gone.
        """
        cq = loaded.cq(key)
        try:
            if cq is None or not self._may_be_wrong(template, cq.text):
                return None
            self._compared += 1
            return self._preparer.create(cq.text)[1]
        except InputError as error:
            _log_kept(key, error)
        except Exception:  # a fault of the compiler must not stop the gateway at each start
            log.exception("a stored cq failed because of a fault of the compiler", extra={"cq": key.name})
        return None

    def _may_be_wrong(self, template: bytes, text: CqText) -> bool:
        """Tell whether a text may have fixed literals; each text without a template, or with IN, may have them."""
        if not template:
            return True
        fixed = self._has_fixed.get(template)
        if fixed is None:
            has_list = _LIST.search(str(text)) is not None
            fixed = self._has_fixed[template] = has_list or self._preparer.has_fixed_literals(text)
        return fixed

    def _is_wrong(self, loaded: Loaded, key: CqKey, query: CompiledQuery) -> bool:
        """Tell whether a CQ is stored with other literals than its text has."""
        destination = loaded.destination_of(loaded.existing(key))
        compiled = (query.plan.group_id, query.select.select_id, canonical_constants(query.row))
        if compiled == (destination.group_id, destination.select_id, destination.constants):
            return False
        plan = self._working.plan(destination.stream_id, destination.group_id)
        select = self._working.select(destination.stream_id, destination.select_id)
        return differ_in_literals(CompiledQuery(plan, destination.row, select), query)

    def _replace(self, loaded: Loaded, key: CqKey, query: CompiledQuery, now_ms: int) -> Change:
        self._positions.begin()
        try:
            change = self._statements.registry.recompile(loaded, key, query, now_ms)
        finally:
            self._positions.finish()
        self._replaced += 1
        log.warning(
            "a stored cq had the plan of another text, and is compiled again",
            extra={"subscriber": key.subscriber, "cq": key.name},
        )
        return change


def _log_kept(key: CqKey, error: InputError) -> None:
    log.warning(
        "a stored cq cannot be compiled again, and stays as it is",
        extra={"subscriber": key.subscriber, "cq": key.name, "error": str(error)},
    )
