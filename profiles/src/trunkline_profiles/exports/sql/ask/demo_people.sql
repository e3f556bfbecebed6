-- Two people with documents; the second one has a single document.

with people as (
  insert into exports.people (id, name)
  values (gen_random_uuid(), 'Ann Example'), (gen_random_uuid(), 'Bob Example')
  returning id, name
),
documents as (
  insert into exports.documents (user_id, title, data)
  select p.id, concat('Résumé ', n.n), %(data)s::jsonb
  from people as p
  cross join lateral generate_series(1, case when starts_with(p.name, 'Ann') then %(documents)s::integer else 1 end) as n (n)
  returning user_id, id, title
)
select p.id, p.name, array_agg(d.id order by length(d.title), d.title)
from people as p
join documents as d on d.user_id = p.id
group by p.id, p.name
order by p.name
