/** Installs the stand-in into the folder of the first argument, as another process of Berth would. */
import { installEngine } from '../../../src/openclaw/install.ts'
import { VERSION } from './registry.ts'

await installEngine({ version: VERSION, dir: process.argv[2] ?? '', onLine: console.log })
