import { z } from 'zod';
import { prints, type Shapes } from './shape.ts';

const finding = z.strictObject({
  area: z.enum(['here', 'orchestrator', 'fleet', 'machine']),
  check: z.string().describe('stable name of the check, snake_case'),
  verdict: z.enum(['ok', 'warning', 'problem']),
  what: z.string(),
  why: z.string().nullable(),
  remedy: z.string().nullable(),
});

export const shapes: Shapes = {
  doctor: prints(
    z.strictObject({ ok: z.boolean().describe('true if there are no problems'), findings: z.array(finding) }),
  ),
};
