import { z } from 'zod';
import {
  lookupKeyCheck,
  lookupOfCheck,
  lookupSelectorCheck,
  maximumLookupKeys,
  maximumLookups,
} from './composition/lookups.ts';
import { agentConditionSchema, clauseSchema, whenSchema } from './conditions/declared.ts';
import { onlyIfSchema } from './conditions/only-if.ts';
import { expressionFunctions } from './expression/functions/index.ts';
import { standardFunctions } from './expression/functions/standard.ts';
import { templateDescription, triggerDescriptions } from './kind-fields.ts';
import { closed } from './kinds/declared.ts';
import { allOf, type Check, maxLength, noExpression, notEmpty } from './kinds/format.ts';
import type { Fields, Kind } from './kinds/kind.ts';
import { packageDefault } from './kinds/packages.ts';
import { kinds } from './kinds.ts';
import { merges } from './parameters/layers.ts';
import { keywordForm, valueKeywords } from './parameters/value-keywords.ts';
import { verificationKinds } from './verification.ts';

/** Path of the served JSON Schema, and its `$id`. */
export const moduleSchemaId = '/schemas/module/v1.json';

const checked = (check: Check, fault: string, meta: Record<string, unknown> = {}) =>
  z
    .string({ error: fault })
    .superRefine((text, context) => {
      const found = check(text);
      if (found !== undefined) context.addIssue({ code: 'custom', message: found });
    })
    .meta(meta);

const noControlCharacters: Check = (text) =>
  /[\x00-\x1f\x7f]/.test(text) ? 'must not contain control characters' : undefined;

const moduleName = checked(
  allOf(notEmpty, maxLength(128), noControlCharacters, (name) => {
    if (name.includes('/')) return 'must not contain "/"';
    // The name is a segment of URLs, where clients would normalize `.` and `..`.
    if (name === '.' || name === '..' || name.trim() !== name)
      return 'must not be "." or "..", or begin or end with a space';
    return undefined;
  }),
  'must be text',
  { minLength: 1, maxLength: 128, pattern: '^[^/\\u0000-\\u001f\\u007f]+$' },
);

const oneOf = <const V extends readonly [string, ...string[]]>(values: V) =>
  z.enum(values, { error: `must be one of ${values.join(', ')}` });

const id = checked(allOf(notEmpty, maxLength(128), noControlCharacters, noExpression), 'must be text, in quotes', {
  minLength: 1,
  maxLength: 128,
});

/** An ID, or a module and an ID. */
const reference = checked(
  allOf(notEmpty, maxLength(258), noControlCharacters, noExpression),
  'must be text, in quotes',
  {
    minLength: 1,
    maxLength: 258,
  },
);

const idList = (description: string) => z.array(reference, { error: 'must be a list of ids' }).meta({ description });

const immediately = z
  .boolean({ error: 'must be true or false' })
  .meta({ description: 'Whether the service is reloaded or restarted before any later resource is applied' })
  .optional();

const triggerList = (description: string) =>
  z
    .array(
      z.union([reference, closed('a mapping of id and immediately', { id: reference, immediately })], {
        error: 'must be an id, or a mapping of id and immediately',
      }),
      { error: 'must be a list of ids' },
    )
    .meta({ description });

function bodySchema(type: string, kind: Kind) {
  const shape: Record<string, z.ZodType> = fieldShape(kind.required, kind.optional);
  if (kind.templated) shape.template = id.meta({ description: templateDescription }).optional();
  for (const trigger of kind.triggers) shape[trigger] = triggerList(triggerDescriptions[trigger]).optional();
  return closed(`the mapping of the fields of ${type}`, shape, { description: kind.description });
}

function fieldShape(required: Fields, optional: Fields): Record<string, z.ZodType> {
  return {
    ...Object.fromEntries(Object.entries(required).map(([name, field]) => [name, field.declared])),
    ...Object.fromEntries(Object.entries(optional).map(([name, field]) => [name, field.declared.optional()])),
  };
}

const exactlyOne = (names: readonly string[]) => ({
  oneOf: names.map((name) => ({ required: [name], properties: { [name]: { not: { type: 'null' } } } })),
});

const resourceBody = closed(
  'a mapping of one kind to its fields',
  Object.fromEntries(Object.entries(kinds).map(([type, kind]) => [type, bodySchema(type, kind).optional()])),
  exactlyOne(Object.keys(kinds)),
  'kind',
);

const variant = closed('a mapping of when and resource', {
  when: whenSchema.optional(),
  resource: resourceBody.meta({ description: 'Absent if there is nothing to do on these machines' }).optional(),
});

const notification = closed(
  'a mapping of reload, restart, or rerun to an id',
  {
    reload: reference.meta({ description: 'Id of a service, or MODULE:ID' }).optional(),
    restart: reference.meta({ description: 'Id of a service, or MODULE:ID' }).optional(),
    rerun: reference.meta({ description: 'Id of a script, or MODULE:ID' }).optional(),
    immediately,
  },
  exactlyOne(['reload', 'restart', 'rerun']),
);

/** Nested loops, as a mapping of variables to the expressions of their lists, outermost first; or a literal map. */
const loopMapping = z.record(z.string(), z.unknown()).superRefine((loops, context) => {
  const names = Object.keys(loops);
  const other = names.find((name) => typeof loops[name] !== 'string');
  if (other === undefined || names.every((name) => typeof loops[name] !== 'string')) return;
  const message =
    'is not text, but other values are: write all values as expressions in quotes for nested loops, or each text as { value: "…" } for a map';
  context.addIssue({ code: 'custom', path: [other], message });
});

const resource = closed(
  'a mapping of a resource',
  {
    id: id.meta({ description: 'Unique in the module' }).optional(),
    name: checked(allOf(maxLength(256), noControlCharacters), 'must be text: write it in quotes', {
      description: 'A label for operators',
    }).optional(),
    depends_on: idList(
      'Ids of resources that are applied before this resource; MODULE:ID for a resource of another module; with ? at the end if it may be missing',
    ).optional(),
    notify: z
      .array(notification, { error: 'must be a list of mappings, such as { reload: nginx }' })
      .meta({ description: 'Resources that are reloaded, restarted, or rerun when this resource changes' })
      .optional(),
    when: whenSchema.optional(),
    only_if: onlyIfSchema.optional(),
    for_each: z
      .union([z.string(), z.array(z.unknown()), loopMapping], {
        error: 'must be a single expression, such as "${{ param.users }}", a list, a map, or nested loops',
      })
      .meta({
        description:
          'Declares one resource for each element of a list, of a map without text values, of an expression that yields a list or a map, or of nested loops',
      })
      .optional(),
    where: z
      .string({ error: 'must be an expression, such as "each.enabled"' })
      .meta({ description: 'A CEL condition that selects elements of for_each; other elements are skipped' })
      .optional(),
    resource: resourceBody.optional(),
    variants: z.array(variant, { error: 'must be a list of variants' }).min(1, 'must contain a variant').optional(),
  },
  exactlyOne(['resource', 'variants']),
);

const template = closed('a mapping of id and content', {
  id: id.meta({ description: 'Unique among the templates for one machine' }),
  when: whenSchema.optional(),
  content: z.string({ error: 'must be text' }),
});

const parameterTypes = ['string', 'integer', 'number', 'boolean', 'list', 'map'] as const;

const parameter = closed('a mapping of type and default', {
  type: oneOf(parameterTypes),
  default: z.unknown().optional(),
  description: checked(maxLength(1024), 'must be text').optional(),
  variants: z
    .array(closed('a mapping of when and value', { when: agentConditionSchema, value: z.unknown() }), {
      error: 'must be a list of mappings, each with when and value',
    })
    .meta({ description: 'Values for some machines, which replace the default' })
    .optional(),
  merge: oneOf(merges)
    .meta({
      description:
        'How the values of several assignments and the default are combined, from low to high precedence: the highest replaces all, mappings are merged key by key (deep), lists are joined (append), or joined without equal elements (unique)',
    })
    .optional(),
  ...Object.fromEntries(valueKeywords.map((name) => [name, z.unknown().meta(keywordForm(name)).optional()])),
});

const parameterName: Check = (name) =>
  /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/.test(name)
    ? undefined
    : 'is not a valid name for a parameter: use letters, digits, "_", and "-", and do not begin with a digit';

const requirement = closed('a mapping of module and with', {
  module: moduleName.meta({ description: 'Name of the module' }),
  with: z
    .record(checked(parameterName, 'must be text'), z.unknown(), { error: 'must be a mapping of parameters to values' })
    .meta({ description: 'Values for its parameters, unless an assignment sets them; without expressions' })
    .optional(),
});

const valueCheck = closed('a mapping of that and message', {
  that: checked(allOf(notEmpty, maxLength(2048)), 'must be an expression in quotes', {
    description: 'A condition in CEL, such as "param.from < param.to"',
  }),
  message: checked(allOf(notEmpty, maxLength(512), noControlCharacters, noExpression), 'must be text', {
    description: 'The error message if the condition is false; it should say what to write instead',
  }),
});

const lookupSource = checked(lookupOfCheck, 'must be text');
const lookupSources = z
  .record(checked(lookupKeyCheck, 'must be text'), lookupSource, {
    error: (issue) =>
      issue.code === 'invalid_key'
        ? (issue.issues[0]?.message ?? lookupKeyCheck(''))
        : 'must be a mapping of keys to texts',
  })
  .refine((sources) => Object.keys(sources).length > 0 && Object.keys(sources).length <= maximumLookupKeys, {
    error: `must have 1 to ${maximumLookupKeys} keys`,
  });

const lookup = closed('a mapping of selector and of', {
  when: whenSchema.optional(),
  selector: checked(lookupSelectorCheck, 'must be text: write it in quotes', {
    description: 'Selects approved agents, for example "role=web"',
  }),
  of: z
    .union([lookupSource, lookupSources], {
      error: ({ input }) =>
        (typeof input === 'string' ? lookupOfCheck(input) : undefined) ??
        'must be text, such as attr.default_address, or a mapping of keys to such texts',
    })
    .meta({
      description:
        'agent.name, agent.node_id, attr.NAME, or tag.KEY; or a mapping of keys to these. Agents without one of them are left out',
    }),
});

const verification = closed(
  'a mapping of http, tcp, or command',
  {
    when: whenSchema.optional(),
    http: closed('a mapping', fieldShape(verificationKinds.http.required, verificationKinds.http.optional)).optional(),
    tcp: closed('a mapping', fieldShape(verificationKinds.tcp.required, verificationKinds.tcp.optional)).optional(),
    command: verificationKinds.command.required.command.declared.optional(),
  },
  exactlyOne(['http', 'tcp', 'command']),
);

/** Schema of a module as written. `checkModule` checks relations between fields, such as ids, cycles, and conflicts. */
export const moduleSchema = closed(
  'a mapping with at least a name',
  {
    name: moduleName.meta({ description: 'The name of the module' }),
    supports: z
      .array(clauseSchema, { error: 'must be a list of clauses' })
      .meta({ description: 'Clauses, of which an agent must match at least one' })
      .optional(),
    requires: z
      .array(requirement, { error: 'must be a list of mappings, such as { module: base }' })
      .max(64, 'must list at most 64 modules')
      .meta({ description: 'Modules that this module requires' })
      .optional(),
    templates: z.array(template, { error: 'must be a list of templates' }).optional(),
    parameters: z
      .record(checked(parameterName, 'must be text'), parameter, {
        error: (issue) =>
          issue.code === 'invalid_key' ? parameterName('') : 'must be a mapping of names to parameters',
      })
      .meta({ description: 'Parameters, whose values assignments can set' })
      .optional(),
    require: z
      .array(valueCheck, {
        error: 'must be a list of mappings, such as { that: "param.from < param.to", message: "…" }',
      })
      .max(64, 'must list at most 64 conditions')
      .meta({ description: 'Conditions that the values of the parameters must satisfy' })
      .optional(),
    lookups: z
      .record(checked(parameterName, 'must be text'), lookup, {
        error: (issue) => (issue.code === 'invalid_key' ? parameterName('') : 'must be a mapping of names to lookups'),
      })
      .refine((lookups) => Object.keys(lookups).length <= maximumLookups, {
        error: `a module has at most ${maximumLookups} lookups`,
      })
      .meta({ description: 'Sorted lists of values of other agents, available as lookup.NAME' })
      .optional(),
    packages: packageDefault.declared.optional(),
    resources: z.array(resource, { error: 'must be a list of resources: begin each resource with "- "' }).optional(),
    verify: z
      .array(verification, { error: 'must be a list of checks' })
      .meta({ description: 'Checks that must succeed after an apply' })
      .optional(),
  },
  { title: 'Muster module' },
);

type JsonSchema = { [key: string]: unknown };

/**
 * Returns the JSON Schema (draft 2020-12) of a module, generated from the schema that parses it. Every object accepts
 * `x-` keys, and optional fields may be null. `x-functions` lists the functions of expressions, for editors.
 */
export function moduleJsonSchema(): JsonSchema {
  const schema = z.toJSONSchema(moduleSchema, { io: 'input', unrepresentable: 'any' }) as JsonSchema;
  loosen(schema);
  // Editors know functions by name. A name of Muster comes first, and so does the most common form of CEL's.
  const byName = Map.groupBy([...expressionFunctions, ...standardFunctions], ({ name }) => name);
  const functions = [...byName].flatMap(([name, [first]]) =>
    first === undefined ? [] : [{ name, form: first.form, about: first.about }],
  );
  return { ...schema, $id: moduleSchemaId, 'x-functions': functions };
}

/** Adapts the JSON Schema to the preprocessing of `closed`, which ignores `x-` keys and treats null as absent. */
function loosen(schema: unknown): void {
  if (Array.isArray(schema)) {
    for (const item of schema) loosen(item);
    return;
  }
  if (typeof schema !== 'object' || schema === null) return;
  const object = schema as JsonSchema;
  const { properties } = object;
  for (const [key, value] of Object.entries(object)) {
    if (key !== 'enum' && key !== 'required' && key !== 'oneOf') loosen(value);
  }
  if (object.additionalProperties !== false || typeof properties !== 'object' || properties === null) return;
  object.patternProperties = { '^x-': {}, ...(object.patternProperties as object | undefined) };
  const required = (object.required ?? []) as string[];
  const fields = properties as JsonSchema;
  for (const [name, field] of Object.entries(fields)) {
    if (!required.includes(name)) fields[name] = { anyOf: [field, { type: 'null' }] };
  }
}
