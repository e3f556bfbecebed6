-- Estimates the tokens of a job's call: what such calls of the task used, or the job's estimate; at most what the limit gives at once.
-- If they were charged nothing, concurrent calls could exceed a limit of tokens before the first of them is settled.
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
  -- Without an estimate, least() would return all that the limit gives.
  v_tokens := coalesce(v_tokens, p_of_job, 0);
  return least(v_tokens, (trunkline_internal.most_at_once(p_limit => p_limit)).tokens);
end;
$$;
comment on function trunkline_internal.default_tokens(text, bigint, trunkline_internal.limits, bigint) is 'Estimates the tokens of a job''s call: what such calls of the task used, or the job''s estimate; at most what the limit gives at once.';
