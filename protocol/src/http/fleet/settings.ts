import { z } from 'zod';
import { route } from '../definition/route.ts';

export const settingsSchema = z
  .strictObject({
    settings: z
      .record(z.string(), z.json())
      .describe('all keys with their effective values; secrets are shown as `••••`'),
    sources: z
      .record(z.string(), z.enum(['default', 'file', 'environment', 'flag']))
      .describe('sources of the values by dotted key'),
  })
  .meta({ id: 'Settings' });
export type Settings = z.infer<typeof settingsSchema>;

export const getSettings = route({
  id: 'getSettings',
  method: 'GET',
  path: '/settings',
  tag: 'Status',
  summary: 'Show the effective configuration',
  access: 'admin',
  answers: { 200: settingsSchema },
  errors: [],
  example: {
    answer: {
      settings: { api_port: 4748, drift: { enabled: true, interval: 600 } },
      sources: { api_port: 'default', 'drift.enabled': 'default', 'drift.interval': 'file' },
    },
  },
});
