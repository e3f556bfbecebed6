// pg-boss's worker; its arguments are settings of the instance and of work(), both in JSON.

import { load, terminated } from './processes.mjs'
import { makeHandler } from './slate.mjs'

const { PgBoss } = await load('pg-boss')
const [instance, work] = process.argv.slice(2).map((text) => JSON.parse(text))

const handle = makeHandler()
const boss = new PgBoss(instance)
boss.on('error', console.error)
boss.on('warning', console.error)
await boss.start()
// A handler gets all jobs of a batch at once and may run them concurrently.
await boss.work('noop', work, (jobs) => Promise.all(jobs.map((job) => handle(job.data.number))))
await terminated
await boss.stop()
