// graphile-worker's producer; with 'install' it only creates the tables.

import { load } from './processes.mjs'
import { serve } from './producing.mjs'

const { makeWorkerUtils } = await load('graphile-worker')

const utils = await makeWorkerUtils({ preset: { worker: { maxPoolSize: 10 } } })
if (process.argv[2] === 'install') {
  await utils.migrate()
} else {
  await serve({
    one: (number) => utils.addJob('noop', { number }),
    many: (numbers) =>
      utils.addJobs(numbers.map((number) => ({ identifier: 'noop', payload: { number } }))),
  })
}
await utils.release()
