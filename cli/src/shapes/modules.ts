import {
  faultSchema,
  getModule,
  listModuleRevisions,
  listModules,
  orderModules,
  uploadModule,
} from '@muster/protocol/http';
import { z } from 'zod';
import { answerOf, doneTo, prints, type Shapes } from './shape.ts';

const validated = z.strictObject({
  file: z.string(),
  name: z.string().nullable().describe('null if the module has errors'),
  valid: z.boolean(),
  faults: z.array(faultSchema),
  warnings: z.array(faultSchema),
});

const side = z.strictObject({ revision: z.number().int().nullable(), file: z.string().nullable() });

export const shapes: Shapes = {
  'modules upload': prints(z.array(answerOf(uploadModule))),
  'modules list': prints(answerOf(listModules)),
  'modules show': prints(answerOf(getModule)),
  'modules remove': doneTo('removed'),
  'modules validate': prints(z.strictObject({ valid: z.boolean(), files: z.array(validated) })),
  'modules check': prints(z.strictObject({ valid: z.boolean(), files: z.array(validated) })),
  'modules history': prints(answerOf(listModuleRevisions)),
  'modules diff': prints(
    z.strictObject({
      name: z.string(),
      from: side.nullable().describe('null if there is only one revision'),
      to: side,
      equal: z.boolean(),
      diff: z.string().describe('unified; empty when they are equal'),
    }),
  ),
  'modules deps': prints(answerOf(orderModules)),
  'modules schema': prints(z.looseObject({}).describe('a JSON Schema, draft 2020-12')),
};
