import { createHmac } from 'node:crypto';
import type { ChannelConfigs } from '@muster/protocol/http';
import type { Message } from '../domain/notifications/delivery.ts';
import type { Post } from './send.ts';

const signatureOf = (secret: string, body: string): string =>
  `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;

/**
 * Creates a POST that contains the unchanged event, with a signature if the channel has a secret.
 * @param sentAt Unix seconds; part of the signed content
 */
export function webhookPost({ url, secret }: ChannelConfigs['webhook'], message: Message, sentAt: number): Post {
  const { delivery_id, channel, event } = message;
  const body = JSON.stringify({ delivery_id, sent_at: sentAt, channel, event });
  return {
    url,
    headers: {
      'content-type': 'application/json',
      'x-muster-event': event.event_type,
      'x-muster-timestamp': String(sentAt),
      ...(secret === undefined ? {} : { 'x-signature-256': signatureOf(secret, body) }),
    },
    body,
  };
}
