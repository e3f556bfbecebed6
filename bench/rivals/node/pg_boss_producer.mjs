// pg-boss's producer; with 'install' and settings of the queue, it only creates the tables.

import { load } from './processes.mjs'
import { serve } from './producing.mjs'

const { PgBoss } = await load('pg-boss')

const boss = new PgBoss({ max: 10, supervise: false, schedule: false })
boss.on('error', console.error)
await boss.start()
if (process.argv[2] === 'install') {
  await boss.createQueue('noop', JSON.parse(process.argv[3]))
} else {
  await serve({
    one: (number) => boss.send('noop', { number }),
    many: (numbers) => boss.insert('noop', numbers.map((number) => ({ data: { number } }))),
  })
}
await boss.stop()
