import type { ChannelTarget } from '@muster/protocol/http';
import type { Deliver, Message } from '../domain/notifications/delivery.ts';
import { discordPost, ntfyPost, slackPost } from './chat.ts';
import { type Post, type SendLimits, send } from './send.ts';
import { webhookPost } from './webhook.ts';

function postOf(target: ChannelTarget, message: Message, sentAt: number): Post {
  switch (target.channel_type) {
    case 'webhook':
      return webhookPost(target.config, message, sentAt);
    case 'discord':
      return discordPost(target.config, message);
    case 'slack':
      return slackPost(target.config, message);
    case 'ntfy':
      return ntfyPost(target.config, message);
  }
}

export interface DeliverOptions extends Pick<SendLimits, 'denyPrivate' | 'resolve'> {
  readonly version: string;
  /** Returns Unix milliseconds. */
  readonly now: () => number;
}

/** Sends messages over the network. All attempts to send a message use the same ID. */
export function createDeliver(options: DeliverOptions): Deliver {
  const { version, now, resolve } = options;
  return (target, message, { timeoutMs, signal }) => {
    const { url, headers, body } = postOf(target, message, Math.floor(now() / 1000));
    const common = {
      'user-agent': `Muster/${version}`,
      'idempotency-key': message.delivery_id,
      'x-muster-delivery': message.delivery_id,
    };
    return send(
      { url, headers: { ...common, ...headers }, body },
      {
        timeoutMs,
        denyPrivate: options.denyPrivate,
        signal,
        resolve,
      },
    );
  };
}
