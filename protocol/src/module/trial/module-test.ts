import { z } from 'zod';
import type { Fault } from '../../errors.ts';
import type { LookupValues } from '../composition/lookups.ts';
import type { AgentFacts } from '../conditions.ts';
import type { Json } from '../document.ts';
import { closed } from '../kinds/declared.ts';
import { kinds } from '../kinds.ts';
import { suggestion } from '../nearest.ts';
import { agentFactsSchema, agentOf, lookupsSchema } from './agent-facts.ts';
import { readDocument } from './document-file.ts';

/** Test files for modules: an agent, parameters, and the expected resolution. */

const textList = (noun: string) =>
  z.array(z.string({ error: `must be text: write it in quotes` }), { error: `must be a list of ${noun}` });
const json = z.unknown().transform((value) => value as Json);

const kindFields = (type: keyof typeof kinds) => [
  ...Object.keys(kinds[type].required),
  ...Object.keys(kinds[type].optional),
  'reload_on',
  'restart_on',
  'rerun_on',
];

function expectedBody(type: keyof typeof kinds) {
  const known = kindFields(type);
  return z
    .record(z.string(), json, { error: `must be a mapping of the fields of ${type} to expected values; {} for any` })
    .superRefine((fields, context) => {
      for (const name of Object.keys(fields))
        if (!known.includes(name))
          context.addIssue({
            code: 'custom',
            path: [name],
            message: `${type} has no field "${name}"${suggestion(name, known)}`,
          });
    });
}

const expectedResource = closed(
  'a mapping of a kind to its expected fields, such as { file-unix: { mode: "0644" } }',
  {
    ...Object.fromEntries(
      (Object.keys(kinds) as (keyof typeof kinds)[]).map((type) => [type, expectedBody(type).optional()]),
    ),
    name: z.string({ error: 'must be text' }).optional(),
    depends_on: textList('ids').optional(),
  },
  {},
  'kind',
);

const expectation = closed('a mapping of resources, absent, faults, or secrets', {
  resources: z
    .record(z.string(), expectedResource, {
      error: 'must be a mapping of ids to resources, such as { motd: { file-unix: { mode: "0644" } } }',
    })
    .meta({ description: 'Expected resources by id, with the fields to compare' })
    .optional(),
  absent: textList('ids').meta({ description: 'Ids that no resource has' }).optional(),
  faults: textList('texts, each a part of an expected error message')
    .min(1, 'must contain a text; leave faults out if none is expected')
    .meta({ description: 'Parts of the messages of all expected errors' })
    .optional(),
  secrets: textList('names of secrets').meta({ description: 'Names of all secrets that are used' }).optional(),
}).superRefine((given, context) => {
  const { resources, absent, faults, secrets } = given;
  const others = resources ?? absent ?? secrets;
  if (others === undefined && faults === undefined && context.issues.length === 0)
    context.addIssue({ code: 'custom', message: 'expects nothing: write resources, absent, faults, or secrets' });
  if (faults !== undefined && others !== undefined)
    context.addIssue({
      code: 'custom',
      path: ['faults'],
      message: 'cannot be combined with resources, absent, or secrets: with an error there are no resources',
    });
});

const caseFields = {
  name: z.string({ error: 'must be text' }).meta({ description: 'Name of the test' }).optional(),
  agent: agentFactsSchema,
  parameters: z
    .record(z.string(), json, { error: 'must be a mapping of names to values' })
    .meta({ description: 'Values by parameter, or by module and parameter if there are several modules' })
    .optional(),
  lookups: lookupsSchema.optional(),
  expect: expectation,
};

const testFile = closed('a mapping of agent and expect, or of tests', {
  modules: textList('files')
    .min(1, 'must contain a file')
    .meta({ description: 'Files of the modules, relative to this file' })
    .optional(),
  ...caseFields,
  agent: caseFields.agent.optional(),
  expect: caseFields.expect.optional(),
  tests: z
    .array(closed('a mapping of name, agent, parameters, and expect', caseFields), {
      error: 'must be a list of tests, each with agent and expect',
    })
    .meta({ description: 'Several tests, instead of agent, parameters, and expect' })
    .optional(),
}).superRefine((file, context) => {
  const single = (['name', 'agent', 'parameters', 'lookups', 'expect'] as const).filter(
    (key) => file[key] !== undefined,
  );
  if (file.tests === undefined) {
    for (const key of ['agent', 'expect'] as const)
      if (file[key] === undefined)
        context.addIssue({ code: 'custom', message: `needs ${key}, or tests with a list of tests` });
  } else if (single.length > 0)
    context.addIssue({
      code: 'custom',
      path: [single[0] as string],
      message: 'cannot be combined with tests: move it into each of them',
    });
});

type Expectation = z.output<typeof expectation>;
export type ExpectedResource = z.output<typeof expectedResource>;

export interface ModuleTest {
  /** Name of the test; null if the file has a single test without a name. */
  readonly name: string | null;
  readonly agent: AgentFacts;
  readonly parameters: Readonly<Record<string, Json>>;
  readonly lookups: LookupValues;
  readonly expect: Expectation;
  readonly line: number;
  readonly column: number;
  /** Returns the position of a path below `expect`. */
  readonly at: (path: readonly (string | number)[]) => { line: number; column: number };
}

export interface ModuleTestFile {
  /** Module files as written; null if the test file does not name any. */
  readonly modules: readonly string[] | null;
  readonly tests: readonly ModuleTest[];
}

/**
 * Reads a test file.
 * @returns the tests, or all errors in the file with line and column
 */
export function readModuleTests(
  source: string | Uint8Array,
): { ok: true; file: ModuleTestFile } | { ok: false; faults: Fault[] } {
  const read = readDocument(testFile, source);
  if (!read.ok) return read;
  const { modules, tests, agent, expect, name, parameters, lookups } = read.value;
  const testOf = (one: z.output<ReturnType<typeof oneCase>>, path: (string | number)[]): ModuleTest => ({
    name: one.name ?? null,
    agent: agentOf(one.agent),
    parameters: one.parameters ?? {},
    lookups: one.lookups ?? {},
    expect: one.expect,
    ...read.at(path.length === 0 ? ['expect'] : path),
    at: (below) => read.at([...path, 'expect', ...below]),
  });
  const all =
    tests !== undefined
      ? tests.map((one, index) => testOf(one, ['tests', index]))
      : agent === undefined || expect === undefined
        ? []
        : [testOf({ name, agent, parameters, lookups, expect }, [])];
  return { ok: true, file: { modules: modules ?? null, tests: all } };
}

const oneCase = () => closed('', caseFields);
