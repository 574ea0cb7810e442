/** Installs the stand-in into the folder in the first argument, like another process of Berth. */
import { installEngine } from '../../../src/openclaw/install.ts'
import { VERSION } from './registry.ts'

await installEngine({ version: VERSION, dir: process.argv[2] ?? '', onLine: console.log })
