import { createHmac } from 'node:crypto';
import type { AuditEvent } from '@muster/protocol/http';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { codePoint } from '../../../protocol/test/code-point.ts';
import { oneLine } from '../domain/shared/single-line.ts';
import { discordPost, ntfyPost, slackPost } from './chat.ts';
import { forDiscord, forSlack } from './text.ts';
import { webhookPost } from './webhook.ts';

const message = (more: Partial<AuditEvent> = {}) => ({
  delivery_id: '01KAGZ8R3E5F6G7H8J9K0M1N2P',
  channel: { id: '01KAGZ8R3E5F6G7H8J9K0M1N2Q', name: 'on-call' },
  event: {
    id: '01KAGZ8R3E5F6G7H8J9K0M1N2R',
    event_type: 'agent.lost',
    severity: 'critical' as const,
    timestamp: '2026-11-20T08:00:00.000Z',
    actor: { type: 'system', id: '', name: '' },
    target: { type: 'agent', id: 'ab'.repeat(16), name: 'web-1' },
    summary: 'agent web-1 is lost',
    metadata: {},
    ...more,
  },
});
const hostile = '@everyone <@123> <!channel> [click](https://evil.example) **bold** `x`\r\nsecond\u202eline\u0000';

describe('webhooks', () => {
  test('sends the unchanged event to webhooks, and signs its bytes', () => {
    const post = webhookPost({ url: 'https://h.example/x', secret: 'key' }, message({ summary: hostile }), 1795000000);
    expect(JSON.parse(post.body)).toEqual({
      delivery_id: '01KAGZ8R3E5F6G7H8J9K0M1N2P',
      sent_at: 1795000000,
      channel: { id: '01KAGZ8R3E5F6G7H8J9K0M1N2Q', name: 'on-call' },
      event: message({ summary: hostile }).event,
    });
    expect(post.headers['x-signature-256']).toBe(
      `sha256=${createHmac('sha256', 'key').update(post.body).digest('hex')}`,
    );
    expect(post.headers['x-muster-timestamp']).toBe('1795000000');
  });
  test('sends no signature without a secret', () => {
    expect(webhookPost({ url: 'https://h.example/x' }, message(), 1).headers).not.toHaveProperty('x-signature-256');
  });
});

describe('chats', () => {
  test('disables mentions and escapes markup in messages to Discord', () => {
    const post = discordPost({ webhook_url: 'https://d.example/x' }, message({ summary: hostile }));
    const body = JSON.parse(post.body);
    expect(body.allowed_mentions).toEqual({ parse: [] });
    expect(body).not.toHaveProperty('content');
    expect(body.embeds[0].color).toBe(0xdc2626);
    expect(body.embeds[0].description).toBe(
      '\\@everyone \\<\\@123\\> \\<!channel\\> \\[click\\]\\(https\\:\u200b//evil.example\\) \\*\\*bold\\*\\* \\`x\\` secondline ',
    );
  });

  test('sends plain text to Slack, with special characters escaped', () => {
    const body = JSON.parse(slackPost({ webhook_url: 'https://s.example/x' }, message({ summary: hostile })).body);
    expect(body).toMatchObject({ mrkdwn: false, link_names: false, parse: 'none', unfurl_links: false });
    for (const block of body.blocks)
      for (const text of [block.text, ...(block.elements ?? [])].filter(Boolean))
        expect(text).toMatchObject({ type: 'plain_text', emoji: false });
    expect(body.text).toContain('&lt;!channel&gt;');
    expect(body.text).not.toMatch(/[<>]/);
  });

  test('sends ntfy JSON with the event’s priority, and the bearer token', () => {
    const post = ntfyPost({ topic: 'fleet', token: 'tk_1' }, message({ summary: hostile }));
    expect(post.url).toBe('https://ntfy.sh/');
    expect(post.headers.authorization).toBe('Bearer tk_1');
    expect(JSON.parse(post.body)).toEqual({
      topic: 'fleet',
      title: 'agent.lost',
      message: expect.not.stringMatching(/[\r\n\u202e\u0000]/),
      priority: 5,
      tags: ['rotating_light', 'agent.lost'],
    });
    expect(
      JSON.parse(ntfyPost({ topic: 'f', url: 'http://n.example' }, message({ severity: 'info' })).body).priority,
    ).toBe(3);
  });

  test('converts any text to one line of bounded length without markup', () => {
    fc.assert(
      fc.property(fc.string({ unit: codePoint, maxLength: 2000 }), (text) => {
        const line = oneLine(text, 500);
        expect([...line].length).toBeLessThanOrEqual(500);
        expect(line).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
        expect(line.isWellFormed()).toBe(true);
        expect(forSlack(line)).not.toMatch(/[<>]|&(?!amp;|lt;|gt;)/);
        expect(forDiscord(line).replaceAll(/\\[^0-9A-Za-z\s]/g, '')).not.toMatch(/[\\*_~`|>#[\]()<@:]/);
      }),
    );
  });
});
