// Shared by the processes of all Node products.

import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const require = createRequire(join(process.env.TRUNKLINE_BENCH_NODE_PREFIX, 'any.js'))

/** Import a package from the product's own folder, which is not above this file. */
export const load = (name) => import(pathToFileURL(require.resolve(name)).href)

/** Fulfilled when this process is asked to end. */
export const terminated = new Promise((resolve) => process.once('SIGTERM', resolve))
