"""Every kind of break is found where it should be, and rewrites nothing but its own span."""

from __future__ import annotations

import ast
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

from tests.support.processes import REPOSITORY
from tests.unit.mutants import tiny
from tools.mutants import equivalents, python_sites, sample, sql_sites
from tools.mutants.choice import test_files as chosen
from tools.mutants.mutation import KINDS, Mutation
from tools.mutants.project import Project
from tools.mutants.trunkline import trunkline

_OURS = trunkline(REPOSITORY)


@cache
def _sites(path: Path) -> list[Mutation]:
    return _OURS.sites(path)


class _Remembering(Project):
    """Parses each file once; several tests draw from all of them."""

    def sites(self, path: Path) -> list[Mutation]:
        return list(_sites(path))


PROJECT = _Remembering(**{field.name: getattr(_OURS, field.name) for field in fields(_OURS)})

FUNCTION = """\
-- A comment with and, order by and limit 1.
create or replace function trunkline.take(p_limit integer) returns boolean language plpgsql as $$
declare
  v_job uuid := null;
begin
  if p_limit < 1 and p_limit is not null then
    perform trunkline_internal.refuse(p_name => 'invalid_argument');
  end if;
  select w.job_id into v_job
  from trunkline_internal.waiting as w
  where w.state = 'ready' and w.place between 1 and 5 and (w.bucket is null or w.held)
  order by w.priority desc, w.sequence
  limit p_limit
  for update of w skip locked;
  update trunkline_internal.waiting as w set state = 'taken' where w.job_id = v_job;
  perform trunkline_internal.wake_sleepers(p_queue => 'a and b');
  perform pg_advisory_xact_lock(1);
  return v_job is not null;
end;
$$;
comment on function trunkline.take(integer) is 'Takes one and limit 1.';
"""
VIEW = """\
create or replace view trunkline.shown with (security_barrier = true) as
select max(j.at) as at from trunkline_internal.jobs as j where j.tenant = 'a';
"""
MODULE = '''\
"""Doc."""
def open_bucket(self, names: list[str], wanted: int) -> bool:
    """Doc."""
    _log.info("said")
    if wanted < 1:
        raise ValueError(wanted)
    with self._lock:
        self.taken += min(wanted, 5)
    self._arrived.set()
    for name in sorted(names)[:wanted]:
        if not name and self.taken:
            continue
        self._check(name)
    return bool(self.taken)
'''


def changed(mutations: list[Mutation], kind: str) -> set[tuple[str, str]]:
    return {(one.before, one.after) for one in mutations if one.kind == kind}


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("condition", "if p_limit < 1 and p_limit is not null then", "if p_limit < 1 then"),
        ("condition", "if p_limit < 1 and p_limit is not null then", "if p_limit is not null then"),
        ("condition", "if p_limit < 1 and p_limit is not null then", "if false then"),
        (
            "condition",
            "where w.state = 'ready' and w.place between 1 and 5 and (w.bucket is null or w.held)",
            "where w.state = 'ready' and (w.bucket is null or w.held)",
        ),
        (
            "condition",
            "update trunkline_internal.waiting as w set state = 'taken' where w.job_id = v_job;",
            "update trunkline_internal.waiting as w set state = 'taken' where true;",
        ),
        ("lock", "for update of w skip locked;", ";"),
        ("lock", "for update of w skip locked;", "for update of w ;"),
        ("lock", "perform pg_advisory_xact_lock(1);", "null;"),
        ("order", "order by w.priority desc, w.sequence", ""),
        ("order", "order by w.priority desc, w.sequence", "order by w.priority , w.sequence"),
        ("bound", "limit p_limit", ""),
        (
            "bound",
            "if p_limit < 1 and p_limit is not null then",
            "if p_limit <= 1 and p_limit is not null then",
        ),
        ("wake-up", "perform trunkline_internal.wake_sleepers(p_queue => 'a and b');", "null;"),
        ("refusal", "perform trunkline_internal.refuse(p_name => 'invalid_argument');", "null;"),
        ("result", "return v_job is not null;", "return true;"),
        ("comparison", "return v_job is not null;", "return v_job is null;"),
    ],
)
def test_sql_breaks(kind: str, before: str, after: str) -> None:
    assert (before, after) in changed(sql_sites.sites("a.sql", FUNCTION), kind)


def test_sql_outside_of_code_is_left_alone() -> None:
    lines = {one.before for one in sql_sites.sites("a.sql", FUNCTION)}
    assert not [line for line in lines if line.startswith(("--", "comment", "create"))]
    assert {one.after for one in sql_sites.sites("a.sql", VIEW)} == {
        "select max(j.at) as at from trunkline_internal.jobs as j where true;",
        "select max(j.at) as at from trunkline_internal.jobs as j where j.tenant <> 'a';",
        "select min(j.at) as at from trunkline_internal.jobs as j where j.tenant = 'a';",
    }
    assignments = [one for one in sql_sites.sites("a.sql", FUNCTION) if "set state <>" in one.after]
    assert assignments == []


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("condition", "if wanted < 1:", "if False:"),
        ("comparison", "if wanted < 1:", "if wanted > 1:"),
        ("bound", "if wanted < 1:", "if wanted <= 1:"),
        ("refusal", "raise ValueError(wanted)", "pass"),
        ("lock", "with self._lock:", "if True:"),
        ("statement", "self.taken += min(wanted, 5)", "pass"),
        ("bound", "self.taken += min(wanted, 5)", "self.taken += max(wanted, 5)"),
        ("wake-up", "self._arrived.set()", "pass"),
        ("order", "for name in sorted(names)[:wanted]:", "for name in list(names)[:wanted]:"),
        ("bound", "for name in sorted(names)[:wanted]:", "for name in sorted(names)[:]:"),
        ("condition", "if not name and self.taken:", "if self.taken:"),
        ("comparison", "if not name and self.taken:", "if (name) and self.taken:"),
        ("condition", "continue", "pass"),
        ("refusal", "self._check(name)", "pass"),
        ("result", "return bool(self.taken)", "return False"),
    ],
)
def test_python_breaks(kind: str, before: str, after: str) -> None:
    mutations = python_sites.sites("a.py", MODULE)
    assert (before, after) in changed(mutations, kind)
    assert not [one for one in mutations if "said" in one.before or "Doc" in one.before]


def test_a_mutation_touches_its_own_lines_only() -> None:
    for mutation in [*sql_sites.sites("a.sql", FUNCTION), *python_sites.sites("a.py", MODULE)]:
        text = FUNCTION if mutation.path == "a.sql" else MODULE
        mutated = mutation.apply(text)
        assert mutated != text
        assert mutated.startswith(text[: mutation.start])
        assert mutated.endswith(text[mutation.end :])


def test_every_mutation_of_our_own_python_can_be_parsed() -> None:
    for mutation in sample.draw(PROJECT, seed=7, count=300):
        if mutation.path.endswith(".py"):
            ast.parse(mutation.apply((PROJECT.root / mutation.path).read_text(encoding="utf-8")))


def test_a_seed_gives_the_same_sample_and_a_larger_one_begins_with_it() -> None:
    one = sample.draw(PROJECT, seed=3, count=60)
    assert sample.draw(PROJECT, seed=3, count=20) == one[:20]
    assert len({mutation.key for mutation in one}) == 60
    assert sample.draw(PROJECT, seed=4, count=60) != one
    assert {mutation.kind for mutation in one} <= set(KINDS)
    assert {mutation.path.rpartition(".")[2] for mutation in one} == {"py", "sql"}
    (flow,) = {PROJECT.domain_of(one.path) for one in sample.draw(PROJECT, 3, 9, ["flow"])}
    assert flow == "flow"


def test_tests_are_chosen_by_folder_and_likely_ones_come_first() -> None:
    def first(domain: str, path: str) -> str:
        mutations = PROJECT.sites(PROJECT.root / path)
        files = chosen(PROJECT, mutations[0])
        assert len(files) == len(set(files))
        assert PROJECT.domain_of(path) == domain
        return files[0]

    assert first("queue", "src/trunkline/sql/queue/api/pause_queue.sql").startswith(
        "tests/sql/pause_queue/"
    )
    assert first("worker", "src/trunkline/worker/process_pool.py").endswith("test_process_pool.py")
    assert first(
        "clinical", "profiles/src/trunkline_profiles/clinical/sql/phase1/audit.sql"
    ).endswith("test_cp_audit.py")
    for name, domain in PROJECT.domains.items():
        for folder in [*domain.sources, *domain.tests, *domain.further]:
            assert (PROJECT.root / folder).exists(), f"{folder} of {name}"


def test_equivalents_are_found_again_after_lines_moved(tmp_path: Path) -> None:
    listing = tmp_path / "equivalents.toml"
    listing.write_text(
        '[[equivalent]]\npath = "src/shop/till.py"\nscope = "discount"\n'
        'before = "if member and amount > 100:"\nafter = "if member:"\nreason = "No small sales."\n'
        '[[equivalent]]\npath = "src/shop/till.py"\nscope = "gone"\n'
        'before = "a"\nafter = "b"\nreason = "It was so."\n'
    )
    project = tiny.make(tmp_path / "shop", equivalents=listing)
    known = equivalents.load(listing)
    assert known.stale(project) == ["src/shop/till.py gone: b"]
    tiny.write(project.root, "src/shop/till.py", "# Moved\n\n\n" + tiny.SOURCE)
    mutations = project.sites(project.root / "src" / "shop" / "till.py")
    assert [m.after for m in mutations if known.reason(m)] == ["if member:"]
    listing.write_text(listing.read_text().replace("It was so.", " "))
    with pytest.raises(ValueError, match="has no reason"):
        equivalents.load(listing)


def test_our_own_equivalents_have_reasons_and_match() -> None:
    assert equivalents.load(PROJECT.equivalents).stale(PROJECT) == []


def test_the_limit_of_a_select_into_one_row_is_left_alone() -> None:
    body = "select a into {} from b order by a limit 1;"
    text = "create function f() returns void language plpgsql as $$ begin {} end $$;"
    for into, found in [("v_a", 0), ("strict v_a", 1)]:
        sites = sql_sites.sites("f.sql", text.format(body.format(into)))
        assert sum(site.kind == "bound" for site in sites) == found
