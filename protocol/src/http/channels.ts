import { z } from 'zod';
import { optional, textMap, unixSeconds } from './definition/fields.ts';
import { route } from './definition/route.ts';
import { operatorId } from './operators/operators.ts';

export const channelTypes = ['webhook', 'discord', 'slack', 'ntfy'] as const;
export type ChannelType = (typeof channelTypes)[number];

/** Replaces secrets in responses. If a client sends it back, the stored value is kept. */
export const maskedSecret = '••••';

const address = z.string().min(1).max(2048).describe('http or https address');
/** A header value: one line of printable ASCII characters. */
const headerText = z
  .string()
  .regex(/^[\x21-\x7e]{1,512}$/, 'must be 1 to 512 printable ASCII characters without spaces');
// Accepts the mask, which is not ASCII, because a client may send it back in place of a secret.
const secretText = z.union([z.literal(maskedSecret), headerText]);

export const channelConfigs = {
  webhook: z.strictObject({
    url: address.describe('address to which each event is posted as JSON'),
    secret: optional(z.string().min(1).max(512)).describe('key for the signature in `X-Signature-256`'),
  }),
  discord: z.strictObject({ webhook_url: address }),
  slack: z.strictObject({ webhook_url: address }),
  ntfy: z.strictObject({
    url: optional(address).describe('address of the server; default: https://ntfy.sh'),
    topic: z.string().regex(/^[-_A-Za-z0-9]{1,64}$/, 'must be 1 to 64 letters, digits, "-", or "_"'),
    token: optional(secretText).describe('access token'),
  }),
} as const;
/** Configurations by channel type. Omitted fields are undefined. */
export interface ChannelConfigs {
  webhook: { url: string; secret?: string | undefined };
  discord: { webhook_url: string };
  slack: { webhook_url: string };
  ntfy: { url?: string | undefined; topic: string; token?: string | undefined };
}
export type ChannelTarget = { [T in ChannelType]: { channel_type: T; config: ChannelConfigs[T] } }[ChannelType];

const name = z
  .string()
  .min(1)
  .max(64)
  .regex(/^[^\p{Cc}]*$/u, 'must not contain control characters')
  .refine((text) => text.trim() === text && text !== '', 'must not begin or end with a space');

const deliverySchema = z
  .strictObject({
    last_delivered_at: unixSeconds.nullable().describe('Unix seconds; null if nothing was delivered yet'),
    last_error: z.string().nullable().describe('why the last attempt failed; null if it succeeded'),
    failures: z.number().int().nonnegative().describe('number of failed attempts since the last delivery'),
    failing_since: unixSeconds
      .nullable()
      .describe('time at which the channel was reported as failing; null if it is not failing'),
    next_attempt_at: unixSeconds
      .nullable()
      .describe('time of the next attempt after a failure, if messages wait; null if the channel is not backing off'),
  })
  .meta({ id: 'ChannelDelivery' });

export const channelSchema = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    channel_type: z.enum(channelTypes),
    config: textMap.describe(`configuration, with secrets replaced by ${maskedSecret}`),
    created_at: unixSeconds,
    created_by: z.string(),
    delivery: deliverySchema.describe('health of deliveries, including tests'),
  })
  .meta({ id: 'Channel' });
export type Channel = z.infer<typeof channelSchema>;
const channelExample: Channel = {
  id: '01KAGZ8R3E5F6G7H8J9K0M1N2P',
  name: 'on-call',
  channel_type: 'webhook',
  config: { url: 'https://hooks.example/muster', secret: maskedSecret },
  created_at: 1795000000,
  created_by: operatorId,
  delivery: {
    ...{ last_delivered_at: 1795000100, last_error: null, failures: 0, failing_since: null, next_attempt_at: null },
  },
};
const params = z.strictObject({ id: z.string() });
const exampleParams = { id: channelExample.id };

export const listChannels = route({
  id: 'listChannels',
  method: 'GET',
  path: '/channels',
  tag: 'Channels',
  summary: 'List channels',
  access: 'operator',
  answers: { 200: z.array(channelSchema) },
  errors: [],
  example: { answer: [channelExample] },
});

export const getChannel = route({
  id: 'getChannel',
  method: 'GET',
  path: '/channels/{id}',
  tag: 'Channels',
  summary: 'Show a channel',
  access: 'operator',
  params,
  answers: { 200: channelSchema },
  errors: ['channel_not_found'],
  example: { params: exampleParams, answer: channelExample },
});

const created = <T extends ChannelType>(type: T) =>
  z.strictObject({ name, channel_type: z.literal(type), config: channelConfigs[type] });

export const createChannel = route({
  id: 'createChannel',
  method: 'POST',
  path: '/channels',
  tag: 'Channels',
  summary: 'Add a channel, which receives all later events',
  description:
    'Addresses are http or https. Link-local, metadata, multicast, and unspecified addresses are refused: literal addresses by this request, and resolved addresses at each connection.',
  access: 'admin',
  body: z.discriminatedUnion('channel_type', [
    created('webhook'),
    created('discord'),
    created('slack'),
    created('ntfy'),
  ]),
  answers: { 201: channelSchema },
  errors: ['too_many_channels', 'secrets_locked'],
  example: {
    body: {
      name: 'on-call',
      channel_type: 'webhook',
      config: { url: 'https://hooks.example/muster', secret: 'correct horse' },
    },
    answer: channelExample,
  },
});

export const updateChannel = route({
  id: 'updateChannel',
  method: 'PUT',
  path: '/channels/{id}',
  tag: 'Channels',
  summary: 'Change a channel',
  description: `\`config\` replaces the whole configuration. A secret that is sent as ${maskedSecret} keeps its value. Waiting messages are sent immediately.`,
  access: 'admin',
  params,
  body: z.strictObject({
    name: optional(name),
    config: optional(z.record(z.string().max(64), z.json())).describe(
      'all fields of the configuration, as for a new channel of this type',
    ),
  }),
  bodyOptional: true,
  answers: { 200: channelSchema },
  errors: ['channel_not_found', 'secrets_locked'],
  example: {
    params: exampleParams,
    body: { config: { url: 'https://hooks.example/muster', secret: maskedSecret } },
    answer: channelExample,
  },
});

export const removeChannel = route({
  id: 'removeChannel',
  method: 'DELETE',
  path: '/channels/{id}',
  tag: 'Channels',
  summary: 'Remove a channel and its waiting messages',
  access: 'admin',
  params,
  answers: { 204: null },
  errors: ['channel_not_found'],
  example: { params: exampleParams },
});

export const testChannel = route({
  id: 'testChannel',
  method: 'POST',
  path: '/channels/{id}/test',
  tag: 'Channels',
  summary: 'Send a test message to a channel',
  description: 'Makes one attempt of at most 10 seconds, even in a maintenance window.',
  access: 'admin',
  params,
  answers: {
    200: z
      .strictObject({
        delivered: z.literal(true),
        status: z.number().int().describe('HTTP status of the response'),
      })
      .meta({ id: 'ChannelTest' }),
  },
  errors: ['channel_not_found', 'channel_failed'],
  example: { params: exampleParams, answer: { delivered: true, status: 200 } },
});
