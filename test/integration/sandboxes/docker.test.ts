import { after } from 'node:test'
import { containersContract } from './contract.ts'
import { cleanUp, openSubject, whyNotDocker } from './docker-subject.ts'

containersContract('docker', openSubject, await whyNotDocker())

after(cleanUp)
