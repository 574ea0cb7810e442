import { after } from 'node:test'
import { containersContract } from './contract.ts'
import { openSubject, removeImages, whyNotDocker } from './docker-subject.ts'

const skip = await whyNotDocker()

after(removeImages)

containersContract('docker', openSubject, skip)
