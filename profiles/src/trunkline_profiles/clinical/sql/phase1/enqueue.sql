-- Enqueue: enqueue_job_v3, and the function that creates single jobs of this profile.
-- requires: base, configuration, limits, job_types, files
-- source: 8

create or replace function clinical.checked_estimate(p_payload jsonb, p_provider text, p_endpoint text)
returns bigint
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_most constant numeric := 1e12;
  v_given text := p_payload ->> 'estimated_tokens';
  v_limit bigint;
  v_tokens numeric;
begin
  if v_given is null then
    return 1000::bigint;
  end if;
  -- Accepts whole numbers, also as text and as 5.0, but not 5.5, "abc", true and [5].
  if jsonb_typeof(p_payload -> 'estimated_tokens') in ('number', 'string') and v_given ~ '^-?[0-9]{1,13}(\.0+)?$' then
    v_tokens := v_given::numeric;
  end if;
  if v_tokens is null or v_tokens < 0 or v_tokens > c_most then
    perform clinical.refuse(
      p_code => 'invalid_estimate', p_message => format('estimated_tokens is not a whole number from 0: %s', left(v_given, 100)),
      p_detail => jsonb_build_object('estimated_tokens', left(v_given, 100))
    );
  end if;
  select l.tokens_per_minute into v_limit from trunkline.limits as l where l.name = p_provider || '/' || p_endpoint;
  if v_tokens > v_limit then
    perform clinical.refuse(
      p_code => 'invalid_estimate',
      p_message => format(
        'estimated_tokens %s is more than %s/%s can ever allow in a minute: %s', v_tokens::bigint, p_provider, p_endpoint, v_limit
      ),
      p_detail => jsonb_build_object(
        'estimated_tokens', v_tokens::bigint, 'tokens_per_minute', v_limit, 'limit', p_provider || '/' || p_endpoint
      )
    );
  end if;
  return v_tokens::bigint;
end;
$$;
comment on function clinical.checked_estimate(jsonb, text, text) is 'Returns the estimated tokens of a payload, by default 1000; refuses a value that is not a whole number, is negative, or is more than the endpoint can ever allow.';

create or replace function clinical.job_payload(p_payload jsonb, p_type clinical.job_types, p_tokens bigint)
returns jsonb
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  -- The job calls the endpoint that its claim waits for. Both are set here, whatever the caller or the previous stage passes.
  select (p_payload - 'endpoint') || jsonb_strip_nulls(jsonb_build_object(
    'estimated_tokens', p_tokens, 'endpoint', p_type.provider_name || '/' || p_type.api_endpoint
  ))
$$;
comment on function clinical.job_payload(jsonb, clinical.job_types, bigint) is 'Returns the payload to store: with its estimate, and the endpoint that the registry has for its type.';

-- Earlier versions have other arguments; create or replace would keep those functions too.
drop function if exists clinical.make_job(text, text, jsonb, text, integer, timestamptz, uuid, text);
drop function if exists clinical.make_job(text, text, jsonb, text, integer, timestamptz, uuid, text, boolean);

create or replace function clinical.job_tags(p_name text, p_category text)
returns text[]
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select array['job_name:' || p_name, 'job_category:' || coalesce(p_category, 'standard')]
$$;
comment on function clinical.job_tags(text, text) is 'Returns the tags of a job with this name and category.';

create or replace function clinical.make_job(
  p_type text,
  p_name text,
  p_payload jsonb,
  p_category text default null,
  p_priority integer default null,
  p_run_at timestamptz default null
)
returns uuid
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_file uuid;
  v_patient uuid;
  v_tokens bigint;
  v_type clinical.job_types;
begin
  select t.* into v_type from clinical.job_types as t where t.job_type = p_type;
  if not found then
    perform clinical.refuse(
      p_code => 'unknown_job_type',
      p_message => format(
        'unknown job type %L; allowed are: %s', p_type,
        (select string_agg(t.job_type, ', ' order by t.job_type) from clinical.job_types as t where t.is_active)
      ),
      p_detail => jsonb_build_object('job_type', p_type)
    );
  end if;
  if not v_type.is_active then
    perform clinical.refuse(
      p_code => 'job_type_inactive', p_message => format('job type %s is not active', p_type),
      p_detail => jsonb_build_object('job_type', p_type)
    );
  end if;
  if p_payload is null or p_payload = '{}'::jsonb or p_payload = 'null'::jsonb then
    perform clinical.refuse(
      p_code => 'payload_empty', p_message => 'payload cannot be empty', p_detail => jsonb_build_object('job_type', p_type)
    );
  elsif jsonb_typeof(p_payload) <> 'object' then
    perform clinical.refuse(
      p_code => 'payload_not_object', p_message => format('payload is a JSON %s and must be an object', jsonb_typeof(p_payload)),
      p_detail => jsonb_build_object('job_type', p_type)
    );
  end if;
  v_tokens := clinical.checked_estimate(p_payload => p_payload, p_provider => v_type.provider_name, p_endpoint => v_type.api_endpoint);
  if v_type.needs_file or p_payload ? 'shell_file_id' then
    v_file := clinical.as_uuid(p_text => p_payload ->> 'shell_file_id');
    select f.patient_id into v_patient from clinical.shell_files as f where f.id = v_file;
    if v_patient is null then
      perform clinical.refuse(
        p_code => 'unknown_file', p_message => format('the payload of %s names no known file as shell_file_id', p_type),
        p_detail => jsonb_build_object('job_type', p_type, 'shell_file_id', p_payload -> 'shell_file_id')
      );
    end if;
  end if;
  return (trunkline.enqueue(
    p_task => p_type,
    p_payload => clinical.job_payload(p_payload => p_payload, p_type => v_type, p_tokens => v_tokens),
    p_priority => coalesce(p_priority, 5),
    p_run_at => p_run_at,
    p_tenant => v_patient::text,
    p_correlation_id => v_file::text,
    p_tags => clinical.job_tags(p_name => coalesce(p_name, p_type), p_category => p_category),
    p_cost => case when v_type.api_endpoint is not null then jsonb_build_object('tokens', v_tokens) end
  )).job_id;
end;
$$;
comment on function clinical.make_job(text, text, jsonb, text, integer, timestamptz) is 'Checks a request and creates its job, for the patient of its file, with the estimated cost; the engine writes its audit event.';

create or replace function clinical.require_enqueue()
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if clinical.configured(p_key => 'queue.v3_enqueue_enabled') <> 'true' then
    perform clinical.refuse(p_code => 'enqueue_disabled', p_message => 'enqueue disabled');
  end if;
end;
$$;
comment on function clinical.require_enqueue() is 'Refuses while queue.v3_enqueue_enabled is off.';

create or replace function clinical.enqueue_job_v3(
  job_type text,
  job_name text,
  job_payload jsonb,
  job_category text default 'standard',
  priority integer default 5,
  scheduled_at timestamptz default null
)
returns uuid
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform clinical.require_enqueue();
  return clinical.make_job(
    p_type => enqueue_job_v3.job_type, p_name => enqueue_job_v3.job_name, p_payload => enqueue_job_v3.job_payload,
    p_category => enqueue_job_v3.job_category, p_priority => enqueue_job_v3.priority, p_run_at => enqueue_job_v3.scheduled_at
  );
end;
$$;
comment on function clinical.enqueue_job_v3(text, text, jsonb, text, integer, timestamptz) is 'Enqueues one job of a known type in the caller''s transaction; returns its id.';
