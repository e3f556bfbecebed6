-- Returns an error with what varies from job to job replaced: quoted texts, UUIDs, hexadecimal and other numbers.
-- Errors with the same pattern belong to the same group. An error without type and message has its reason as pattern.
create or replace function trunkline_internal.error_pattern(p_error jsonb, p_reason text)
returns text
language sql
immutable
as $$
  select pg_catalog.regexp_replace(
    pg_catalog.regexp_replace(
      pg_catalog.regexp_replace(
        pg_catalog.regexp_replace(
          pg_catalog.regexp_replace(
            pg_catalog.left(
              coalesce(nullif(trunkline_internal.error_text(p_error => p_error), ''), p_reason, ''), 500
            ),
            -- An apostrophe within a word, as in "can't", starts no quoted text.
            '"[^"]*"|`[^`]*`|(?<![A-Za-z0-9_])''[^'']*''(?![A-Za-z0-9_])', '<text>', 'g'
          ),
          '[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}', '<uuid>', 'gi'
        ),
        '\m(0x[0-9a-f]+|(?=[0-9a-f]*[0-9])[0-9a-f]{8,})\M', '<number>', 'gi'
      ),
      '((?<![A-Za-z0-9])[+-])?[0-9]+([.,:/-][0-9]+)*', '<number>', 'g'
    ),
    '\s+', ' ', 'g'
  )
$$;
comment on function trunkline_internal.error_pattern(jsonb, text) is 'Returns an error with what varies from job to job replaced: quoted texts, UUIDs, hexadecimal and other numbers.';
