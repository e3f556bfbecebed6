-- Estimates a call of a job that does not say its tokens: what such calls of the task took of the bucket, else what its job was estimated; never more than the limit gives at once.
-- Charged as nothing, calls at once would pass a limit of tokens together before the first of them has told what it took.
create or replace function trunkline_internal.default_tokens(
  p_task text,
  p_bucket bigint,
  p_limit trunkline_internal.limits,
  p_of_job bigint
)
returns bigint
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_tokens bigint;
begin
  select nullif(e.tokens, 0) into v_tokens from trunkline_internal.estimates as e where e.task = p_task and e.bucket = p_bucket;
  -- Of nothing known the least would be all that the limit gives.
  v_tokens := coalesce(v_tokens, p_of_job, 0);
  return least(v_tokens, (trunkline_internal.most_at_once(p_limit => p_limit)).tokens);
end;
$$;
comment on function trunkline_internal.default_tokens(text, bigint, trunkline_internal.limits, bigint) is 'Estimates a call of a job that does not say its tokens: what such calls of the task took of the bucket, else what its job was estimated; never more than the limit gives at once.';
