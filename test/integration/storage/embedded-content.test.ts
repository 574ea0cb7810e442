import { contentCases, storageContract } from './contract.ts'
import { openSubject } from './embedded-subject.ts'

storageContract('embedded, content', openSubject, { groups: contentCases })
