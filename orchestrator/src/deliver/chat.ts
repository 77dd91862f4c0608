import { eventSentence } from '@muster/protocol/event-sentence';
import type { AuditEvent, ChannelConfigs } from '@muster/protocol/http';
import type { Message } from '../domain/notifications/delivery.ts';
import { oneLine } from '../domain/shared/single-line.ts';
import type { Post } from './send.ts';
import { forDiscord, forSlack } from './text.ts';

/** Formats messages for Discord, Slack, and ntfy. */

type Severity = AuditEvent['severity'];

const json = { 'content-type': 'application/json' };
const maxSummaryLength = 500;

const colours: Record<Severity, number> = { info: 0x3b82f6, warning: 0xf59e0b, critical: 0xdc2626 };

export function discordPost({ webhook_url }: ChannelConfigs['discord'], { event, delivery_id }: Message): Post {
  const body = {
    embeds: [
      {
        title: forDiscord(oneLine(`${event.severity}: ${event.event_type}`, 100)),
        description: forDiscord(oneLine(eventSentence(event), maxSummaryLength)),
        color: colours[event.severity],
        timestamp: event.timestamp,
        footer: { text: `Muster ${delivery_id}` },
      },
    ],
    // Disables mentions.
    allowed_mentions: { parse: [] },
  };
  return { url: webhook_url, headers: json, body: JSON.stringify(body) };
}

export function slackPost({ webhook_url }: ChannelConfigs['slack'], { event, delivery_id }: Message): Post {
  const summary = oneLine(eventSentence(event), maxSummaryLength);
  const heading = oneLine(`${event.severity}: ${event.event_type}`, 100);
  const body = {
    // Clients show this text in notifications, and `blocks` in the channel.
    text: forSlack(`${heading}: ${summary}`),
    mrkdwn: false,
    link_names: false,
    parse: 'none',
    unfurl_links: false,
    unfurl_media: false,
    // `plain_text` disables markup.
    blocks: [
      { type: 'header', text: { type: 'plain_text', text: heading, emoji: false } },
      { type: 'section', text: { type: 'plain_text', text: summary, emoji: false } },
      {
        type: 'context',
        elements: [{ type: 'plain_text', text: `${event.timestamp} · Muster ${delivery_id}`, emoji: false }],
      },
    ],
  };
  return { url: webhook_url, headers: json, body: JSON.stringify(body) };
}

const priorities: Record<Severity, number> = { info: 3, warning: 4, critical: 5 };
const emblems: Record<Severity, string> = {
  info: 'information_source',
  warning: 'warning',
  critical: 'rotating_light',
};
const publicServer = 'https://ntfy.sh/';

/** Creates a POST of JSON, because ntfy's plain-text format would put untrusted text into headers. */
export function ntfyPost({ url, topic, token }: ChannelConfigs['ntfy'], { event }: Message): Post {
  const body = {
    topic,
    title: oneLine(event.event_type, 100),
    message: oneLine(eventSentence(event), maxSummaryLength),
    priority: priorities[event.severity],
    tags: [emblems[event.severity], event.event_type],
  };
  return {
    url: url ?? publicServer,
    headers: { ...json, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
    body: JSON.stringify(body),
  };
}
