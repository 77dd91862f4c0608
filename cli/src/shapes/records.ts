import { sampleSchema } from '@muster/protocol';
import {
  chainedEventSchema,
  getAuditRetention,
  getSettings,
  getState,
  latestSamples,
  listAudit,
  listSamples,
  listTags,
  matchSelector,
  pruneAudit,
  verifyAudit,
  webLogin,
} from '@muster/protocol/http';
import { z } from 'zod';
import { shapes as ofAgents } from './agents.ts';
import { answerOf, prints, printsLines, type Shapes } from './shape.ts';

const tagged = ofAgents['agents tag'] ?? null;
const count = z.number().int();
const before = z.string().describe('RFC 3339');

export const shapes: Shapes = {
  'tags list': prints(answerOf(listTags)),
  'tags set': tagged,
  'tags remove': tagged,
  'tags replace': tagged,
  'selectors match': prints(answerOf(matchSelector)),
  'metrics list': prints(answerOf(latestSamples)),
  'metrics show': prints(answerOf(listSamples)),
  'metrics follow': printsLines(sampleSchema),
  'state show': prints(answerOf(getState)),
  'audit list': prints(answerOf(listAudit)),
  'audit follow': printsLines(chainedEventSchema),
  'audit verify': prints(answerOf(verifyAudit)),
  'audit export': prints(
    z.union([
      z.strictObject({ file: z.string(), events: count, bytes: count }).describe('with --output'),
      chainedEventSchema.describe('one event per line, on standard output'),
    ]),
  ),
  'audit prune': prints(
    z.union([
      (answerOf(pruneAudit) as z.ZodObject).extend({ before }),
      z.strictObject({ before, would_delete: count }).describe('with --dry-run'),
    ]),
  ),
  'audit retention show': prints(answerOf(getAuditRetention)),
  'audit retention set': prints(answerOf(getAuditRetention)),
  'audit retention off': prints(answerOf(getAuditRetention)),
  'audit retention clear': prints(answerOf(getAuditRetention)),
  events: printsLines(
    z.union([
      z.strictObject({ event: z.literal('audit'), data: chainedEventSchema }),
      z
        .strictObject({
          event: z.enum([
            'operation',
            'operations',
            'run',
            'agent',
            'agents',
            'window',
            'notification',
            'output',
            'gap',
          ]),
          data: z.looseObject({}),
        })
        .describe('events outside the log'),
    ]),
  ),
  'settings show': prints(answerOf(getSettings)),
  'web-login': prints(answerOf(webLogin)),
};
