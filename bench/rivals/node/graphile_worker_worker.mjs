// graphile-worker's worker; its only argument is the preset's settings, in JSON.

import { load, terminated } from './processes.mjs'
import { makeHandler } from './slate.mjs'

// As in its own performance test: otherwise, a log line for each job would be measured too.
process.env.NO_LOG_SUCCESS = '1'
const { run } = await load('graphile-worker')

const handle = makeHandler()
const runner = await run({
  preset: { worker: JSON.parse(process.argv[2]) },
  taskList: { noop: (payload) => handle(payload.number) },
  // Otherwise, it would end itself with the signal that it received, as if it had failed.
  noHandleSignals: true,
})
const failed = runner.promise.then(() => {
  throw new Error('the worker ended by itself')
})
await Promise.race([terminated, failed])
await runner.stop()
