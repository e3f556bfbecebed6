-- why: a job that a worker hands back before it started was not put off, so it must not count toward the bound on putting off
-- breaking: no

-- Both get one more argument, which create or replace cannot add; callers name their arguments.
-- squawk-ignore ban-drop-function
drop function if exists trunkline.release(text, uuid[], integer[], text);
-- squawk-ignore ban-drop-function
drop function if exists trunkline_internal.defer_attempts(text, uuid[], integer[], interval[], text, boolean, boolean, text);
