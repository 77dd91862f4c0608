import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { errorKinds } from '@muster/protocol';
import { apiPrefix, errorsOf, type Route, routes } from '@muster/protocol/http';
import { describe, expect, test } from 'vitest';
import { fieldsOf, type JsonSchema } from '../docs/api-schema.ts';
import { root } from '../suite/cli.ts';
import { type ContractOperation, fixedOperations, furtherOperations } from './api-contract.ts';

/** Contract operations that are not fully implemented. Remove an operation from this list when it is complete. */
const missing = new Set<string>([]);

const titleOf = ({ method, path }: { method: string; path: string }) => `${method} ${path}`;
const all = [...fixedOperations, ...furtherOperations];
const routeOf = (operation: ContractOperation) => routes.find((route) => titleOf(route) === titleOf(operation));
const present = all.filter((operation) => !missing.has(titleOf(operation)));

interface Described {
  operationId: string;
  parameters?: { in: string; name: string; schema: JsonSchema }[];
  requestBody?: { content: Record<string, { schema: JsonSchema }> };
  responses: Record<string, { $ref?: string; content?: Record<string, { schema: JsonSchema }> }>;
}
interface Problem {
  schema: { allOf: [unknown, { properties: { code: { enum: string[] } } }] };
}
const document = JSON.parse(readFileSync(join(root, 'docs/openapi.json'), 'utf8')) as {
  paths: Record<string, Record<string, Described>>;
  components: {
    schemas: Record<string, JsonSchema>;
    responses: Record<string, { content: { 'application/problem+json': Problem } }>;
  };
};
const describedAs = (route: { method: string; path: string }): Described | undefined =>
  document.paths[apiPrefix + route.path]?.[route.method.toLowerCase()];

/** Returns the object that a schema describes or contains, inline or by reference. */
function objectOf(schema: JsonSchema | undefined): JsonSchema | undefined {
  if (!schema) return undefined;
  if (schema.$ref) return objectOf(document.components.schemas[schema.$ref.split('/').at(-1) as string]);
  if (schema.items) return objectOf(schema.items);
  const choices = (schema.anyOf ?? schema.oneOf ?? []).filter(({ type }) => type !== 'null');
  return choices.length > 0 ? objectOf(choices[0]) : schema;
}
const contentOf = (content: Record<string, { schema: JsonSchema }> | undefined) =>
  Object.values(content ?? {})[0]?.schema;

describe('the API contract', () => {
  test('lists every operation once, including the 67 operations of the first release', () => {
    expect(fixedOperations).toHaveLength(67);
    expect(new Set(all.map(titleOf)).size).toBe(all.length);
  });

  test.each(present.map((operation) => [titleOf(operation), operation] as const))(
    'implements %s as the contract specifies',
    (_, operation) => {
      const route = routeOf(operation) as Route;
      expect(route.access).toBe(operation.access);
      for (const status of operation.statuses) expect(Object.keys(route.answers)).toContain(String(status));
      expect(Math.min(...Object.keys(route.answers).map(Number))).toBe(operation.statuses[0]);
      const statuses = new Set(errorsOf(route).map((code) => errorKinds[code].status));
      for (const status of operation.errors) expect([...statuses], `an error ${status}`).toContain(status);

      const described = describedAs(operation) as Described;
      const query = (described.parameters ?? [])
        .filter((parameter) => parameter.in === 'query')
        .map(({ name }) => name);
      expect(query).toEqual(expect.arrayContaining([...operation.query]));
      const body = objectOf(contentOf(described.requestBody?.content));
      if (operation.body) {
        const required = new Set(body?.required ?? []);
        for (const field of operation.body) {
          const name = field.replace('?', '');
          expect(Object.keys(body?.properties ?? {})).toContain(name);
          expect(required.has(name), `${name} is required`).toBe(!field.endsWith('?'));
        }
        // An additional required field would break clients that follow the contract.
        for (const name of required) expect(operation.body).toContain(name);
      }
      if (operation.answer.length > 0) {
        const answer = objectOf(contentOf(described.responses[String(operation.statuses[0])]?.content));
        expect(Object.keys(answer?.properties ?? {})).toEqual(expect.arrayContaining([...operation.answer]));
      }
    },
  );
});

describe('docs/api.md', () => {
  const page = readFileSync(join(root, 'docs/api.md'), 'utf8');
  const sections = new Map(
    page
      .split(/^### /m)
      .slice(1)
      .map((text) => {
        const [title = '', ...rest] = text.split('\n');
        return [title, rest.join('\n').split(/^## /m)[0] as string] as const;
      }),
  );
  const rules = page.split('\n## Routes\n')[0] as string;
  const fieldNames = (section: string) => [...section.matchAll(/^\| `([^`]+)`\?? \|/gm)].map(([, name]) => name);

  test('documents exactly the operations in the route table and the OpenAPI document', () => {
    const titles = [...sections.keys()].filter((title) => /^[A-Z]+ \//.test(title)).sort();
    expect(titles).toEqual(routes.map(titleOf).sort());
    const described = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.slice(apiPrefix.length)}`),
    );
    expect(described.sort()).toEqual(titles);
  });

  test.each(routes.map((route) => [titleOf(route), route] as const))(
    'documents the parameters, fields, statuses, and codes of %s',
    (title, route) => {
      const section = sections.get(title) as string;
      const described = describedAs(route) as Described;
      expect(section).toContain(`\`${described.operationId}\``);
      expect(section).toContain(route.access === 'operator' ? 'any operator' : route.access);
      const names = fieldNames(section);
      for (const { name, in: location } of described.parameters ?? []) {
        expect(names).toContain(name);
        expect(section).toMatch(new RegExp(`^\\| \`${name}\`\\?? \\| ${location} \\|`, 'm'));
      }
      const body = contentOf(described.requestBody?.content);
      if (body && !body.$ref) for (const { path } of fieldsOf(body)) expect(names).toContain(path);
      for (const status of Object.keys(route.answers)) expect(section).toMatch(new RegExp(`[ ;]${status}[ :.]`));
      for (const [status, response] of Object.entries(described.responses)) {
        const name = response.$ref?.split('/').at(-1);
        if (name === undefined) continue;
        const problem = document.components.responses[name]?.content['application/problem+json'] as Problem;
        // An error code is documented with the operation or, if many operations share it, in the rules.
        for (const code of problem.schema.allOf[1].properties.code.enum)
          expect(
            section.includes(`\`${code}\` (${status})`) || rules.includes(`| \`${code}\` (${status}) |`),
            code,
          ).toBe(true);
      }
    },
  );

  test.each(Object.entries(document.components.schemas).filter(([name]) => !name.startsWith('__')))(
    'documents every field of the shape %s',
    (name, schema) => {
      expect(fieldNames(sections.get(`${name} object`) ?? '')).toEqual(fieldsOf(schema).map(({ path }) => path));
    },
  );
});
