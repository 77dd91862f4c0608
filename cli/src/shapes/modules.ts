import {
  faultSchema,
  getModule,
  listModuleRevisions,
  listModules,
  moduleFileSchema,
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

const place = z.strictObject({
  module: z.string(),
  line: z.number().int().nullable(),
  column: z.number().int().nullable(),
});
const explainedResource = z.strictObject({
  module: z.string(),
  id: z.string().nullable(),
  element: z.string().nullable().describe('position or key of the element of for_each'),
  type: z.string(),
  identity: z.string(),
  name: z.string().nullable(),
  places: z.array(place).describe('declarations that it consists of'),
  fields: z.record(
    z.string(),
    z.strictObject({
      value: z.unknown().describe('null if hidden; secrets are expressions'),
      hidden: z.boolean(),
      place: place.nullable().describe('null for a value that the module does not have'),
      from: z.array(z.string()).describe('names that its expressions read, such as param.port'),
    }),
  ),
  only_if: z.unknown(),
  depends_on: z.array(z.string()),
  reload_on: z.array(z.string()),
  restart_on: z.array(z.string()),
  rerun_on: z.array(z.string()),
});
const explained = z.strictObject({
  resources: z.array(explainedResource).describe('in the order of execution'),
  verify: z.array(z.strictObject({ module: z.string(), type: z.string(), body: z.record(z.string(), z.unknown()) })),
  parameters: z
    .record(
      z.string(),
      z.record(
        z.string(),
        z.strictObject({
          value: z.unknown(),
          origin: z.enum(['given', 'variant', 'default']),
          from: z.enum(['assignment', 'requires', 'given', 'variant', 'default']),
          name: z.string().nullable().describe('assignment, or module that requires this one; null for other origins'),
          place,
        }),
      ),
    )
    .describe('by module and parameter, with the place of the declaration'),
  secrets: z.array(z.string()).describe('names'),
});
const mismatch = z.strictObject({
  line: z.number().int(),
  column: z.number().int(),
  message: z.string(),
  difference: z.strictObject({ expected: z.string(), actual: z.string() }).nullable(),
});
const tested = z.strictObject({
  passed: z.number().int(),
  failed: z.number().int(),
  files: z.array(
    z.strictObject({
      file: z.string(),
      tests: z.array(
        z.strictObject({
          name: z.string(),
          passed: z.boolean(),
          mismatches: z.array(mismatch),
          faults: z.array(faultSchema).describe('resolution errors that the test does not expect'),
        }),
      ),
    }),
  ),
});

const side = z.strictObject({ revision: z.number().int().nullable(), file: z.string().nullable() });

export const shapes: Shapes = {
  'modules upload': prints(z.array(answerOf(uploadModule))),
  'modules list': prints(answerOf(listModules)),
  'modules show': prints(answerOf(getModule)),
  'modules download': prints(
    z.strictObject({
      name: z.string(),
      revision: z.number().int(),
      directory: z.string(),
      files: z.array(moduleFileSchema),
    }),
  ),
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
      diff: z.string().describe('unified diff; empty if the texts are identical'),
      files: z
        .array(z.strictObject({ path: z.string(), change: z.enum(['added', 'removed', 'changed']) }))
        .describe('files next to the module that differ'),
    }),
  ),
  'modules deps': prints(answerOf(orderModules)),
  'modules eval': prints(
    z.strictObject({
      kind: z.enum(['value', 'omitted', 'secret']),
      value: z.unknown().describe('null unless the kind is value'),
      text: z
        .string()
        .nullable()
        .describe('the text, in which secrets stay expressions; null unless the kind is secret'),
      from: z.array(z.string()).describe('names that the expression reads, such as param.port'),
    }),
  ),
  'modules resolve': prints(explained),
  'modules test': prints(tested),
  'modules schema': prints(z.looseObject({}).describe('a JSON Schema, draft 2020-12')),
};
