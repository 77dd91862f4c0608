import { z } from 'zod';
import { nameParams, pageQuery } from './definition/fields.ts';
import { route } from './definition/route.ts';

export const kindSchema = z
  .strictObject({
    name: z.string(),
    summary: z.string(),
    platforms: z.array(z.enum(['linux', 'macos', 'windows'])).describe('platforms that the kind supports'),
    executable: z.boolean().describe('whether agents of this release apply the kind'),
    field_count: z.number().int(),
  })
  .meta({ id: 'Kind' });
export type Kind = z.infer<typeof kindSchema>;

export const kindFieldSchema = z
  .strictObject({
    name: z.string(),
    type: z
      .enum(['text', 'integer', 'boolean', 'choice', 'list', 'map', 'any', 'ids'])
      .describe(
        '`list` is a list of strings, `map` a map of names to strings, `any` any value except null, and `ids` a list of resource ids',
      ),
    required: z.boolean(),
    identity: z.boolean().describe('whether the field is a part of the identity of a resource'),
    default: z.string().nullable().describe('value of an absent field; null if an absent field is not managed'),
    values: z
      .array(z.string())
      .nullable()
      .describe('allowed values of a choice; null if any value of the type is allowed'),
    minimum: z.number().nullable(),
    maximum: z.number().nullable(),
    sensitive: z.boolean().describe('whether the value is never shown, even if it contains no secret'),
    description: z.string(),
  })
  .meta({ id: 'KindField' });
export type KindField = z.infer<typeof kindFieldSchema>;

export const kindWithFieldsSchema = kindSchema
  .extend({
    fields: z.array(kindFieldSchema),
    exclusive: z.array(z.array(z.string())).describe('groups of fields, of which at most one may be given'),
    example: z.string().describe('a resource of the kind, as an entry of `resources` in YAML'),
  })
  .meta({ id: 'KindWithFields' });
export type KindWithFields = z.infer<typeof kindWithFieldsSchema>;

const example: Kind = {
  ...{ name: 'sysctl', summary: 'A kernel parameter', platforms: ['linux'], executable: true, field_count: 3 },
};
const key: KindField = {
  ...{ name: 'key', type: 'text', required: true, identity: true, default: null, values: null },
  ...{ minimum: null, maximum: null, sensitive: false, description: 'Name of the parameter' },
};
const value: KindField = { ...key, name: 'value', identity: false, description: 'Value of the parameter' };
const ensure: KindField = {
  ...{ ...value, name: 'ensure', type: 'choice', required: false, default: 'present', values: ['present', 'absent'] },
  description: 'Desired presence of the resource; default: present',
};

const exampleWithFields: KindWithFields = {
  ...{ ...example, fields: [key, value, ensure], exclusive: [] },
  example: '- id: example\n  resource:\n    sysctl:\n      key: net.ipv4.ip_forward\n      value: "1"',
};

export const listKinds = route({
  id: 'listKinds',
  method: 'GET',
  path: '/kinds',
  tag: 'Kinds',
  summary: 'List the kinds of resources that modules may use',
  access: 'operator',
  query: z.strictObject(pageQuery(500, 1000)),
  paged: true,
  answers: { 200: z.array(kindSchema) },
  errors: [],
  example: { answer: [example] },
});

export const getKind = route({
  id: 'getKind',
  method: 'GET',
  path: '/kinds/{name}',
  tag: 'Kinds',
  summary: 'Show the fields of a kind, and an example',
  access: 'operator',
  params: nameParams,
  answers: { 200: kindWithFieldsSchema },
  errors: ['kind_not_found'],
  example: { params: { name: example.name }, answer: exampleWithFields },
});
