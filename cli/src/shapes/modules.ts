import { faultSchema, getModule, listModules, uploadModule } from '@muster/protocol/http';
import { z } from 'zod';
import { answerOf, doneTo, prints, type Shapes } from './shape.ts';

const validated = z.strictObject({
  file: z.string(),
  name: z.string().nullable().describe('null: the module has faults'),
  valid: z.boolean(),
  faults: z.array(faultSchema),
  warnings: z.array(faultSchema),
});

export const shapes: Shapes = {
  'modules upload': prints(z.array(answerOf(uploadModule))),
  'modules list': prints(answerOf(listModules)),
  'modules show': prints(answerOf(getModule)),
  'modules remove': doneTo('removed'),
  'modules validate': prints(z.strictObject({ valid: z.boolean(), files: z.array(validated) })),
  'modules schema': prints(z.looseObject({}).describe('a JSON Schema, draft 2020-12')),
};
