import type { ChannelType } from '@muster/protocol/http';

/** Names of the types of channels, as their services write them. */
export const channelTypeNames: Readonly<Record<ChannelType, string>> = {
  webhook: 'Webhook',
  discord: 'Discord',
  slack: 'Slack',
  ntfy: 'ntfy',
};
