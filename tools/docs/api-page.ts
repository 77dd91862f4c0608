// Generates the tables of docs/api.md from the route table and docs/openapi.json, for tools/docs/write-openapi.ts. The
// rest of the page is handwritten.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { errorKinds } from '@muster/protocol';
import { apiPrefix, errorsOf, type Route, routes, tagDescriptions } from '@muster/protocol/http';
import { root } from '../suite/cli.ts';
import { type FieldRow, fieldsOf, type JsonSchema, shapeOf, typeText } from './api-schema.ts';

const path = join(root, 'docs', 'api.md');
const begin = '<!-- made by node tools/docs/write-openapi.ts from here -->';
const end = '<!-- to here -->';

interface Content {
  schema?: JsonSchema;
  example?: unknown;
}
interface Operation {
  parameters?: { in: string; name: string; required?: boolean; description?: string; schema: JsonSchema }[];
  requestBody?: { required?: boolean; content: Record<string, Content> };
  responses: Record<string, { $ref?: string; content?: Record<string, Content> }>;
}
interface Document {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, JsonSchema> };
}

const methodsInOrder: readonly Route['method'][] = ['GET', 'POST', 'PUT', 'DELETE'];
const who = { anyone: 'anyone', operator: 'any operator', admin: 'admin' } as const;
const sentence = (text: string): string => (/[.:!?]$/.test(text) ? text : `${text}.`);
/** Routes sorted by path, so that related routes are adjacent. */
const ordered = [...routes].sort((one, other) =>
  one.path === other.path
    ? methodsInOrder.indexOf(one.method) - methodsInOrder.indexOf(other.method)
    : one.path < other.path
      ? -1
      : 1,
);
/** Escapes vertical bars, which would start another cell of the table. */
const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
const anchor = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-');

/**
 * Returns the errors specific to a route. The rules on the page describe the errors of every route with the same access
 * or kind.
 */
function ownErrors(route: Route): string[] {
  const { errors: _, ...plain } = route;
  const common = new Set(errorsOf({ ...plain, errors: [] }));
  return errorsOf(route).filter((code) => !common.has(code) || route.errors.includes(code));
}

function describedBy(schema: JsonSchema | undefined): string {
  if (!schema) return '';
  const name = shapeOf(schema);
  return name === null && schema.properties ? 'an object with the fields below' : typeText(schema);
}

function fieldTable(rows: readonly FieldRow[]): string[] {
  return [
    '| field | value | what it is |',
    '|---|---|---|',
    ...rows.map(({ path: name, required, type, description }) =>
      cellRow([required ? `\`${name}\`` : `\`${name}\`?`, type, description]),
    ),
    '',
  ];
}

const cellRow = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`.replaceAll('|  |', '| |');

function inputs(operation: Operation): string[] {
  const parameters = operation.parameters ?? [];
  const body = operation.requestBody;
  const content = Object.entries(body?.content ?? {})[0];
  const lines: string[] = [];
  if (parameters.length > 0)
    lines.push(
      '| parameter | in | value | what it is |',
      '|---|---|---|---|',
      ...parameters.map(({ in: place, name, required, description, schema }) => {
        const fallback = schema.default === undefined ? '' : `; default \`${schema.default}\``;
        return cellRow([
          required ? `\`${name}\`` : `\`${name}\`?`,
          place,
          typeText(plainQuery(schema)) + fallback,
          description ?? '',
        ]);
      }),
      '',
    );
  if (content) {
    const [media, { schema = {} }] = content;
    const optional = body?.required ? '' : ', which may be absent';
    const form = media === 'application/json' ? '' : ` as \`${media}\``;
    lines.push(`Body${form}${optional}: ${describedBy(schema)}.`, '');
    if (shapeOf(schema) === null && fieldsOf(schema).length > 0) lines.push(...fieldTable(fieldsOf(schema)));
  }
  return lines;
}

/** Removes the pattern of an integer query parameter: the type implies it. */
const plainQuery = ({ pattern, ...schema }: JsonSchema): JsonSchema =>
  schema.type === 'integer' || pattern === undefined ? schema : { ...schema, pattern };

function answers(route: Route, operation: Operation): string[] {
  const lines: string[] = [];
  const told: string[] = [];
  for (const [status, schema] of Object.entries(route.answers)) {
    const contents = Object.entries(operation.responses[status]?.content ?? {});
    if (schema === null || contents.length === 0) told.push(`${status} without a body`);
    else {
      const other = contents.map(([media]) => media).filter((media) => media !== 'application/json');
      const [, { schema: shown = {} }] = contents[0] as [string, Content];
      const form = other.length === 0 ? '' : ` as ${other.map((media) => `\`${media}\``).join(' or ')}`;
      told.push(`${status}${form}: ${describedBy(shown)}`);
      if (shapeOf(shown) === null && lines.length === 0 && !(shown.items && shapeOf(shown.items)))
        lines.push(...(fieldsOf(shown).length > 0 ? fieldTable(fieldsOf(shown)) : []));
    }
  }
  const errors = ownErrors(route).map((code) => `\`${code}\` (${errorKinds[code as 'internal'].status})`);
  return [
    `Answers ${told.join('; ')}.`,
    '',
    ...lines,
    ...(errors.length > 0 ? [`Errors of its own: ${errors.join(', ')}.`, ''] : []),
  ];
}

function operationSection(route: Route, document: Document): string[] {
  const operation = document.paths[apiPrefix + route.path]?.[route.method.toLowerCase()];
  if (!operation) throw new Error(`docs/openapi.json has no ${route.id}; run: node tools/docs/write-openapi.ts`);
  const traits = [
    `\`${route.id}\`, ${who[route.access]}`,
    ...(route.respondAsync ? ['takes `Prefer: respond-async`'] : []),
    ...(route.paged ? ['pages by `Link`'] : []),
  ];
  return [
    `### ${route.method} ${route.path}`,
    '',
    `${route.summary} (${traits.join(', ')}).${route.description ? ` ${route.description}` : ''}`,
    '',
    ...inputs(operation),
    ...answers(route, operation),
  ];
}

/** Returns the generated part of the page. */
function tables(document: Document): string {
  const tags = [...new Set(routes.map(({ tag }) => tag))].sort();
  const overview = (tag: string) =>
    ordered
      .filter((route) => route.tag === tag)
      .map((route) => {
        const statuses = [...new Set(errorsOf(route).map((code) => errorKinds[code].status))].sort((a, b) => a - b);
        const title = `${route.method} ${route.path}`;
        return cellRow([
          `[\`${title}\`](#${anchor(title)})`,
          who[route.access],
          Object.keys(route.answers).join(', '),
          statuses.join(', '),
          route.summary,
        ]);
      });
  const shapes = Object.entries(document.components.schemas)
    .filter(([name]) => !name.startsWith('__'))
    .sort(([one], [other]) => (one < other ? -1 : 1));
  return [
    '## Routes',
    '',
    ...tags.flatMap((tag) => [
      `**${tag}**`,
      '',
      '| method and path | who | answers | errors | |',
      '|---|---|---|---|---|',
      ...overview(tag),
      '',
    ]),
    ...tags.flatMap((tag) => [
      `## ${tag}`,
      '',
      ...(tagDescriptions[tag] === undefined ? [] : [tagDescriptions[tag], '']),
      ...ordered.filter((route) => route.tag === tag).flatMap((route) => operationSection(route, document)),
    ]),
    '## Shapes',
    '',
    'A field with `?` may be absent. `x[].y` is the field `y` of each object in the list `x`, `x.*` each value of a map.',
    '',
    ...shapes.flatMap(([name, schema]) => [
      `### ${name} object`,
      '',
      ...(schema.description ? [sentence(schema.description), ''] : []),
      ...(fieldsOf(schema).length > 0 ? fieldTable(fieldsOf(schema)) : [`${typeText(schema)}.`, '']),
    ]),
  ]
    .join('\n')
    .trimEnd();
}

const document = JSON.parse(readFileSync(join(root, 'docs', 'openapi.json'), 'utf8')) as Document;
const page = readFileSync(path, 'utf8');
const [before, rest] = page.split(begin) as [string, string | undefined];
const after = rest?.split(end)[1];
if (rest === undefined || after === undefined) throw new Error(`docs/api.md has lost its marks: ${begin} … ${end}`);
const text = `${before}${begin}\n\n${tables(document)}\n\n${end}${after}`;
if (!process.argv.includes('--check')) writeFileSync(path, text);
else if (page !== text) {
  console.error('docs/api.md is not what the routes say; run: node tools/docs/write-openapi.ts');
  process.exitCode = 1;
}
