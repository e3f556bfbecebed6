// The slate of bench/apps/slate.py for handlers in Node, which cannot map a file into memory. Records
// are buffered, each with its time, and written a few times a second and at the end of the process.

import { fstatSync, openSync, readSync, writeSync } from 'node:fs'

const FLUSH_MS = 5
const BYTES_PER_JOB = 9
const MOST = 255

const WORK_MS = 1000 * Number(process.env.TRUNKLINE_BENCH_WORK_SECONDS || 0)

export class Slate {
  constructor(path) {
    this.file = openSync(path, 'r+')
    this.jobs = Math.floor(fstatSync(this.file).size / BYTES_PER_JOB)
    this.notes = new Map()
    this.timer = null
    process.on('exit', () => this.flush())
  }

  /** Called by the handler, first thing. */
  note(number) {
    // The clock of Python's monotonic_ns.
    const now = process.hrtime.bigint()
    if (!(number >= 0 && number < this.jobs)) throw new RangeError(`no job ${number} on the slate`)
    const note = this.notes.get(number)
    if (note) note.count++
    else this.notes.set(number, { start: now, count: 1 })
    this.timer ??= setTimeout(() => this.flush(), FLUSH_MS).unref()
  }

  flush() {
    clearTimeout(this.timer)
    this.timer = null
    const numbers = Float64Array.from(this.notes.keys()).sort()
    for (let from = 0, to = 1; from < numbers.length; from = to, to++) {
      while (numbers[to] === numbers[to - 1] + 1) to++
      this.#write(numbers[from], to - from)
    }
    this.notes.clear()
  }

  /** Write the notes of consecutive jobs, and nothing of jobs that another process may note. */
  #write(first, jobs) {
    const starts = new BigInt64Array(jobs)
    const counts = new Uint8Array(jobs)
    readSync(this.file, starts, 0, starts.byteLength, 8 * first)
    readSync(this.file, counts, 0, jobs, 8 * this.jobs + first)
    for (let at = 0; at < jobs; at++) {
      const note = this.notes.get(first + at)
      if (!counts[at]) starts[at] = note.start
      counts[at] = Math.min(MOST, counts[at] + note.count)
    }
    writeSync(this.file, starts, 0, starts.byteLength, 8 * first)
    // Last, because a concurrent reader takes a time only if there is a count.
    writeSync(this.file, counts, 0, jobs, 8 * this.jobs + first)
  }
}

/** What every handler does: note the job, then take the configured time. */
export function makeHandler() {
  const slate = new Slate(process.env.TRUNKLINE_BENCH_SLATE)
  if (!WORK_MS) return async (number) => slate.note(number)
  return (number) => {
    slate.note(number)
    return new Promise((resolve) => setTimeout(resolve, WORK_MS))
  }
}
