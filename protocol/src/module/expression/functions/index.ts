import { formatFunctions } from './formats.ts';
import type { ExpressionFunction } from './function.ts';
import { listFunctions } from './lists.ts';
import { networkFunctions } from './networks.ts';
import { textFunctions } from './texts.ts';
import { versionFunctions } from './versions.ts';

export type { ExpressionFunction } from './function.ts';

/** Functions that evaluate their arguments only when needed. Their code is in `environment.ts`. */
const lazyFunctions: readonly ExpressionFunction[] = [
  {
    name: 'default',
    form: 'default(value, other)',
    signatures: [],
    about: 'The value, or `other` if the value or a key on the way to it is missing or null.',
    examples: [
      ['{"a": 1}.b | default(2)', '2'],
      ['default([3][0], 2)', '3'],
    ],
  },
  {
    name: 'omit',
    form: 'omit(value)',
    signatures: [],
    about:
      'The value; if it is missing or null, the field, element, or key is left out as if it had not been written. `omit` by itself always leaves it out.',
    examples: [
      ['[1, {"a": 1}.b | omit]', '[1]'],
      ['{"a": true ? 1 : omit}', '{"a":1}'],
    ],
  },
  {
    name: 'secret',
    form: 'secret(name)',
    signatures: [],
    about: 'The secret whose name is computed. As with `secrets.NAME`, it can only be inserted into text.',
    examples: [],
  },
];

/** All functions that expressions support in addition to the CEL functions. */
export const expressionFunctions: readonly ExpressionFunction[] = [
  ...lazyFunctions,
  ...listFunctions,
  ...textFunctions,
  ...formatFunctions,
  ...networkFunctions,
  ...versionFunctions,
];
