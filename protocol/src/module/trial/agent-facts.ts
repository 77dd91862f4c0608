import { z } from 'zod';
import { isMapping } from '../../mapping.ts';
import type { LookupValues } from '../composition/lookups.ts';
import type { AgentFacts } from '../conditions.ts';
import type { Json, ModuleDocument } from '../document.ts';
import { closed } from '../kinds/declared.ts';
import { type ReadDocument, readDocument } from './document-file.ts';

/** Agent facts in a file, for a resolution without an orchestrator. */

const scalar = z.union([z.string(), z.number(), z.boolean()]);
type Facts = string | number | boolean | { [key: string]: Facts };
const nestedFacts: z.ZodType<Facts> = z.lazy(() => z.union([scalar, z.record(z.string(), nestedFacts)]));
const wrongFact = 'must be text, a number, true or false, or a mapping of them; write a list as text, "a,b"';
const facts = z.record(
  z.string(),
  z.unknown().superRefine((value, context) => {
    if (!nestedFacts.safeParse(value).success) context.addIssue({ code: 'custom', message: wrongFact });
  }),
  { error: 'must be a mapping of names to values, such as { platform: linux, distro: debian }' },
);

const agentFields = {
  name: z
    .string({ error: 'must be text: write it in quotes' })
    .meta({ description: 'Name; test-agent if absent' })
    .optional(),
  node_id: z.string({ error: 'must be text: write it in quotes' }).optional(),
  attributes: facts
    .meta({ description: 'Attributes that the agent reports, such as platform, distro, and version' })
    .optional(),
  tags: facts.meta({ description: 'Tags of the agent' }).optional(),
};

export const agentFactsSchema = closed('a mapping of attributes, tags, name, and node_id', agentFields, {
  description: 'The agent that the modules are resolved for',
});

export const lookupsSchema = z
  .record(
    z.string(),
    z.array(
      z.union([z.string(), z.record(z.string(), z.string({ error: 'must be text: write it in quotes' }))], {
        error: 'must be text: write it in quotes; or a mapping of keys to texts',
      }),
      { error: 'must be a list of texts or mappings' },
    ),
    {
      error: 'must be a mapping of names of lookups to lists, such as { nodes: ["10.0.0.1"] }',
    },
  )
  .meta({ description: 'Values of lookups, by name' });

const factsFile = closed('a mapping of attributes, tags, lookups, name, and node_id', {
  ...agentFields,
  lookups: lookupsSchema.optional(),
});

/** The API's response for an agent, as `muster agents show --json` prints it. */
const agentRecord = z
  .looseObject({
    node_id: z.string(),
    status: z.string(),
    name: z.string().nullable(),
    attributes: z.record(z.string(), z.string()),
    tags: z.record(z.string(), z.string()),
  })
  .transform(({ node_id, name, attributes, tags }) => ({ node_id, name, attributes, tags }));

/** Flattens nested facts by joining their names with dots, as agents do. */
function flat(values: Readonly<Record<string, unknown>>, prefix = ''): [string, string][] {
  return Object.entries(values).flatMap(([key, value]): [string, string][] =>
    typeof value === 'object' && value !== null
      ? flat(value as Record<string, unknown>, `${prefix}${key}.`)
      : [[`${prefix}${key}`, String(value)]],
  );
}

export const agentOf = (declared: z.output<typeof agentFactsSchema>): AgentFacts => ({
  name: declared.name ?? 'test-agent',
  node_id: declared.node_id ?? '0'.repeat(32),
  attributes: Object.fromEntries(flat(declared.attributes ?? {})),
  tags: Object.fromEntries(flat(declared.tags ?? {})),
});

export interface TrialFacts {
  readonly agent: AgentFacts;
  /** Lookup values, by name. */
  readonly lookups: LookupValues;
}

/** Reads a fact file: YAML, or the JSON output of `muster agents show --json`. */
export function readAgentFacts(source: string | Uint8Array): ReadDocument<TrialFacts> {
  const record = readDocument(agentRecord, source);
  if (record.ok) return { ...record, value: { agent: record.value, lookups: {} } };
  const read = readDocument(factsFile, source);
  return read.ok ? { ...read, value: { agent: agentOf(read.value), lookups: read.value.lookups ?? {} } } : read;
}

const parameterFile = z.record(z.string(), z.unknown(), { error: 'must be a mapping of names to values' });

type Declaring = readonly Pick<ModuleDocument, 'name' | 'parameters' | 'requires'>[];

/** Reads a parameter file: `{name: value}`, or `{module: {name: value}}` as in assignments. */
export function readParameters(
  source: string | Uint8Array,
  modules: Declaring,
): ReadDocument<Record<string, Record<string, Json>>> {
  const read = readDocument(parameterFile, source);
  return read.ok ? { ...read, value: byModule(read.value as Record<string, Json>, modules) } : read;
}

/** Returns parameters by module. The module name is optional if only one module is not required by another. */
export function byModule(
  values: Readonly<Record<string, Json>>,
  modules: Declaring,
): Record<string, Record<string, Json>> {
  const required = new Set(modules.flatMap(({ requires }) => requires.map(({ module }) => module)));
  const [sole, ...others] = modules.filter(({ name }) => !required.has(name));
  const isByModule = Object.entries(values).every(
    ([key, value]) => modules.some(({ name }) => name === key) && isMapping(value),
  );
  const declaresAll = sole !== undefined && Object.keys(values).every((key) => Object.hasOwn(sole.parameters, key));
  if (sole !== undefined && others.length === 0 && (declaresAll || !isByModule)) return { [sole.name]: { ...values } };
  return values as Record<string, Record<string, Json>>;
}
