// Reads the orders of bench/apps/producing.py, as lines of JSON, for producers in Node.

import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

const BATCH = 1_000

/** Carry out orders until the input ends; what a producer was asked for is committed on return. */
export async function serve(producer) {
  say('ready')
  for await (const line of createInterface({ input: process.stdin })) {
    const [name, ...args] = JSON.parse(line)
    say(await ORDERS[name](producer, ...args))
  }
}

async function fill(producer, first, jobs) {
  const begin = performance.now()
  for (let at = first; at < first + jobs; at += BATCH) {
    const length = Math.min(BATCH, first + jobs - at)
    await producer.many(Array.from({ length }, (_, offset) => at + offset))
  }
  return (performance.now() - begin) / 1000
}

/** Enqueue one by one; with more concurrency, so many loops share the numbers. */
async function singly(producer, first, jobs, concurrency = 1) {
  let next = first
  const share = async () => {
    while (next < first + jobs) await producer.one(next++)
  }
  const begin = performance.now()
  await Promise.all(Array.from({ length: concurrency }, share))
  return (performance.now() - begin) / 1000
}

/** Enqueue one job at each moment; answer when each call began and returned. */
async function at(producer, moments) {
  const times = []
  for (const [number, moment] of moments.entries()) {
    await sleep(Math.max(0, moment - now()) / 1e6)
    const begin = now()
    await producer.one(number)
    times.push([begin, now()])
  }
  return times
}

// Nanoseconds of the clock of Python's monotonic_ns; exact for the first hundred days.
const now = () => Number(process.hrtime.bigint())

const say = (answer) => console.log(JSON.stringify(answer))

const ORDERS = { fill, singly, at }
