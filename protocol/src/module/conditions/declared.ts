import { z } from 'zod';
import { isMapping } from '../../mapping.ts';
import { compareVersions } from '../../version-order.ts';
import { celPrefix } from '../conditions.ts';
import type { Conditions, ValueSet } from '../document.ts';
import { closed, isExtensionKey, unknownKey } from '../kinds/declared.ts';
import { allOf, maxLength, noExpression, notEmpty } from '../kinds/format.ts';

/** Conditions as modules declare them: the schema for clauses of `supports` and for `when`, and the meaning of both. */

const checkText = allOf(notEmpty, maxLength(256), noExpression);

const text = z.string({ error: 'must be text: write it in quotes' }).superRefine((value, context) => {
  const found = checkText(value);
  if (found !== undefined) context.addIssue({ code: 'custom', message: found });
});
const textForm = { type: 'string', minLength: 1, maxLength: 256 };

const oneOf = <const V extends readonly [string, ...string[]]>(values: V) => ({
  value: z.enum(values, { error: `must be one of ${values.join(', ')}` }),
  form: { enum: [...values] },
});

const flag: Value = {
  value: z.union([z.enum(['true', 'false']), z.boolean()], { error: 'must be true or false' }),
  form: { enum: ['true', 'false', true, false] },
};

/** Parameters have types, so their values need no quotes. */
const scalar: Value = {
  value: z.union([z.string(), z.number(), z.boolean()], { error: 'must be text, a number, or true or false' }),
  form: { type: ['string', 'number', 'boolean'] },
};

/** Schema for one value, with its JSON Schema. */
interface Value {
  readonly value: z.ZodType;
  readonly form: Record<string, unknown>;
}

/** Returns the schema for a value, a list of values, or a mapping with `not`, `from`, and `below`. */
function condition({ value, form }: Value) {
  const list = z.array(value).min(1, 'must contain a value').max(256, 'must contain at most 256 values');
  const several = (given: unknown): z.ZodType => (Array.isArray(given) ? list : value);
  const range = closed('a value, a list of values, or a mapping of not, from, and below', {
    not: z
      .unknown()
      .superRefine((given, context) => forward(several(given), given, context))
      .optional(),
    from: text.optional(),
    below: text.optional(),
  }).superRefine((given, context) => {
    const { from, below } = given as { from?: string; below?: string };
    if (from !== undefined && below !== undefined && compareVersions(from, below) >= 0)
      context.addIssue({
        code: 'custom',
        message: `empty version range: \`from\` (${from}) must be lower than \`below\` (${below})`,
      });
  });
  const choice = { anyOf: [form, { type: 'array', items: form, minItems: 1, maxItems: 256 }] };
  return z
    .unknown()
    .superRefine((given, context) => {
      const isEmpty = ([key, entry]: [string, unknown]) => entry === null || isExtensionKey(key);
      if (isMapping(given) && Object.entries(given as object).every(isEmpty))
        context.addIssue({ code: 'custom', message: 'needs not, from, or below' });
      else forward(isMapping(given) ? range : several(given), given, context);
    })
    .meta({
      anyOf: [
        ...choice.anyOf,
        {
          type: 'object',
          properties: {
            not: { ...choice, description: 'None of these values, or no value at all' },
            from: { ...textForm, description: 'The lowest version' },
            below: { ...textForm, description: 'The lowest version that is too new' },
          },
          additionalProperties: false,
        },
      ],
    });
}

/** Reports the errors that a schema finds, with their positions below `at`. */
export function forward(
  schema: z.ZodType,
  given: unknown,
  context: z.RefinementCtx,
  at: readonly (string | number)[] = [],
): void {
  const parsed = schema.safeParse(given);
  for (const issue of parsed.error?.issues ?? [])
    context.addIssue({ ...issue, path: [...at, ...issue.path] } as Parameters<typeof context.addIssue>[0]);
}

const anyText: Value = { value: text, form: textForm };

const facts: Readonly<Record<string, Value>> = {
  platform: oneOf(['linux', 'windows', 'macos']),
  distro: anyText,
  version: anyText,
  arch: oneOf(['x86_64', 'aarch64', 'armv7']),
  init_system: oneOf(['systemd', 'openrc', 'init.d', 'launchd', 'scm']),
  family: oneOf(['debian', 'redhat', 'suse', 'arch', 'alpine']),
  major: anyText,
  codename: anyText,
  systemd_version: anyText,
  virtualization: anyText,
  container: flag,
  selinux: oneOf(['enforcing', 'permissive', 'disabled']),
  efi: flag,
};

const attributePrefix = 'attr.';
const keyForms: readonly RegExp[] = [
  /^tag\.[A-Za-z][A-Za-z0-9._/-]{0,62}$/,
  /^attr\.[A-Za-z0-9_][A-Za-z0-9._/:-]{0,254}$/,
];
const parameterKey = /^param\.[A-Za-z_][A-Za-z0-9_-]{0,63}$/;

const anyCondition = condition(anyText);
const parameterCondition = condition(scalar);

/** @param ofParameters whether `param.NAME` is allowed as a key */
function conditionsSchema(ofParameters: boolean) {
  const known = [...Object.keys(facts), 'tag.<key>', 'attr.<key>', ...(ofParameters ? ['param.<name>'] : [])];
  const shape = Object.fromEntries(Object.entries(facts).map(([key, value]) => [key, condition(value).optional()]));
  return z.preprocess(
    (value) => {
      if (!isMapping(value)) return value;
      return Object.fromEntries(Object.entries(value).filter(([key, entry]) => !isExtensionKey(key) && entry !== null));
    },
    z
      .object(shape, { error: 'must be a mapping of keys to values' })
      .loose()
      .superRefine((value, context) => {
        for (const [key, given] of Object.entries(value)) {
          if (Object.hasOwn(facts, key)) continue;
          const fact = canonicalKey(key);
          if (fact !== key && Object.hasOwn(value, fact))
            context.addIssue({ code: 'custom', path: [key], message: `is the same fact as ${fact}: keep one of them` });
          const schema = keyForms.some((form) => form.test(key))
            ? anyCondition
            : ofParameters && parameterKey.test(key)
              ? parameterCondition
              : undefined;
          if (schema === undefined) {
            context.addIssue({
              code: 'unrecognized_keys',
              keys: [key],
              input: value,
              message: unknownKey('key', key, known),
            });
            continue;
          }
          for (const issue of schema.safeParse(given).error?.issues ?? []) {
            context.addIssue({ ...issue, path: [key, ...issue.path] } as Parameters<typeof context.addIssue>[0]);
          }
        }
      })
      .meta({
        additionalProperties: false,
        patternProperties: {
          '^x-': {},
          '^tag\\.': anyCondition.meta(),
          '^attr\\.': anyCondition.meta(),
          ...(ofParameters ? { '^param\\.': parameterCondition.meta() } : {}),
        },
        description: 'The agent must have all of these values',
      }),
  );
}

/** Schema for a clause of `supports`, which is matched before parameters have values. */
export const clauseSchema = conditionsSchema(false);

/** Returns the schema for `when`: a mapping, or a CEL condition. */
const orExpression = (mapping: z.ZodType): z.ZodType =>
  z
    .unknown()
    .superRefine((given, context) => forward(typeof given === 'string' ? text : mapping, given, context))
    .meta({
      // Evaluated only for the JSON Schema, which programs that must start quickly do not need.
      get anyOf() {
        const { $schema: _, ...form } = z.toJSONSchema(mapping, { io: 'input', unrepresentable: 'any' });
        return [form, { ...textForm, description: 'A condition in CEL, such as "param.tls"' }];
      },
    });

/** Schema of `when`. */
export const whenSchema = orExpression(conditionsSchema(true));
/** Schema for `when` where parameters have no values yet. */
export const agentConditionSchema = orExpression(clauseSchema);

const listOf = (value: unknown): string[] | undefined => {
  const values = (Array.isArray(value) ? value : [value]).filter(
    (item) => typeof item === 'string' || typeof item === 'number' || typeof item === 'boolean',
  );
  return values.length === 0 ? undefined : [...new Set(values.map(String))];
};

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** Reads conditions as written. Skips malformed values. */
export function readConditions(value: unknown): Conditions {
  if (typeof value === 'string') return { [`${celPrefix}${value}`]: { in: ['true'] } };
  if (!isMapping(value)) return {};
  const conditions: Record<string, ValueSet> = {};
  for (const [key, given] of Object.entries(value)) {
    const set = isExtensionKey(key) || given === null ? undefined : readSet(given);
    if (set !== undefined) conditions[canonicalKey(key)] = set;
  }
  return conditions;
}

/** Writes `attr.distro` as `distro`, so that conditions on the same fact are compared. */
const canonicalKey = (key: string): string => {
  const name = key.slice(attributePrefix.length);
  return key.startsWith(attributePrefix) && Object.hasOwn(facts, name) ? name : key;
};

function readSet(given: unknown): ValueSet | undefined {
  if (typeof given !== 'object' || Array.isArray(given)) {
    const values = listOf(given);
    return values === undefined ? undefined : { in: values };
  }
  const { not, from, below } = given as Readonly<Record<string, unknown>>;
  const [notIn, lowest, limit] = [listOf(not), textOf(from), textOf(below)];
  const set = {
    ...(notIn === undefined ? {} : { notIn }),
    ...(lowest === undefined ? {} : { from: lowest }),
    ...(limit === undefined ? {} : { below: limit }),
  };
  return Object.keys(set).length === 0 ? undefined : set;
}
