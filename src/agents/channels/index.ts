/** The parts of channels that workers use. */
export { CHANNELS, type Channel, type ChannelChange, channelChangeOf } from './channel-schema.ts'
export { mergeChannel, requireChannels, saveChannel } from './channel-service.ts'
export { readChannels, type StoredChannel } from './channel-store.ts'
export { checkTelegramToken } from './telegram.ts'
