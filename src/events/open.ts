import type { Core } from '../core.ts'
import type { Route } from '../http/route.ts'
import type { FanOut } from './event.ts'
import { eventRoutes } from './event-routes.ts'
import { Sequencer } from './sequencer.ts'
import { EventTail } from './tail.ts'

export interface Events {
  routes: Route[]
  /** Publishes events until the role stops: those of operations at once, all others soon. */
  publish(): void
  /** Ends the streams. */
  close(): void
}

/** @param fanOut is called for each batch of published events, in its transaction. */
export function openEvents({ pool, notifications, log, parts }: Core, fanOut: FanOut): Events {
  const tail = new EventTail({ pool, notifications, log })
  return {
    routes: eventRoutes({ pool, tail }),
    publish() {
      const sequencer = new Sequencer({ pool, log, fanOut })
      const forget = notifications.on('berth_operation', () => sequencer.wake())
      sequencer.start()
      parts.add('events', () => {
        forget()
        return sequencer.stop()
      })
    },
    close: () => tail.close(),
  }
}
