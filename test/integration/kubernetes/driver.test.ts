import { whyNotKubernetes } from '../../support/kubernetes.ts'
import { containersContract } from '../sandboxes/contract.ts'
import { openSubject } from './subject.ts'

containersContract('kubernetes', openSubject, whyNotKubernetes)
