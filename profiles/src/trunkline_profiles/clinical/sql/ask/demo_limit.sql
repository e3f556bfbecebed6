update clinical.api_rate_limits as l
set
  requests_per_minute = %(requests_per_minute)s,
  tokens_per_minute = %(tokens_per_minute)s,
  concurrent_requests = %(concurrency)s
where l.provider_name || '/' || l.api_endpoint = %(endpoint)s
returning l.status
