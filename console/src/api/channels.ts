import {
  type ChannelType,
  createChannel,
  listChannels,
  removeChannel,
  testChannel,
  updateChannel,
} from '@muster/protocol/http';
import { queryOptions } from '@tanstack/react-query';
import { call } from './client.ts';
import { keys } from './query-keys.ts';

export const channelsQuery = queryOptions({
  queryKey: keys.channels,
  queryFn: ({ signal }) => call(listChannels, { signal }),
  // Milliseconds. Polled, because deliveries cause no events.
  refetchInterval: 30_000,
});

export type ChannelConfig = Readonly<Record<string, string>>;

export const addChannel = (name: string, channel_type: ChannelType, config: ChannelConfig) =>
  call(createChannel, { body: { name, channel_type, config } as never });

export const changeChannel = (id: string, name: string, config: ChannelConfig) =>
  call(updateChannel, { params: { id }, body: { name, config } });

export const deleteChannel = (id: string) => call(removeChannel, { params: { id } });

/**
 * Sends one test notification.
 * @throws ApiError with the receiver's response if delivery fails
 */
export const tryChannel = (id: string) => call(testChannel, { params: { id } });
