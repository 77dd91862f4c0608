import { type ErrorCode, errorKinds } from '@muster/protocol';
import type { Problem } from '@muster/protocol/client';
import {
  apiPrefix,
  chainedEventSchema,
  errorsOf,
  faultSchema,
  mediaOf,
  type Route,
  routes,
  tagDescriptions,
} from '@muster/protocol/http';
import { z } from 'zod';
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiPathsObject } from 'zod-openapi';

// The client needs `Problem` without schemas. `satisfies` requires exactly one schema for each field of `Problem`.
const problemSchema = z
  .strictObject({
    type: z.string().describe('URI that identifies the kind of error'),
    title: z.string(),
    status: z.number().int(),
    detail: z.string().describe('explanation of this occurrence'),
    instance: z.string().describe('request id, as in the orchestrator’s log'),
    code: z.string().describe('stable identifier of the error; see docs/errors.md'),
    errors: z.array(faultSchema).optional().describe('one entry for each error in the input'),
    planned_at: z
      .number()
      .int()
      .optional()
      .describe('when the stale plan was requested, in Unix seconds; only with the code `plan_stale`'),
  } satisfies { readonly [Field in keyof Problem]-?: z.ZodType<Field extends 'errors' ? unknown : Problem[Field]> })
  .meta({ id: 'Problem', description: 'Problem details (RFC 9457)' });

type Parameter = { in: string; name: string; example?: unknown; schema?: { type?: unknown } };
type Header = { description: string; schema: { type: 'string' | 'integer' } };

const header = (description: string, type: Header['schema']['type'] = 'string'): Header => ({
  description,
  schema: { type },
});
const errorHeaders: Readonly<Record<number, Record<string, Header>>> = {
  401: { 'WWW-Authenticate': header('authentication scheme: `Bearer`') },
  429: { 'Retry-After': header('seconds to wait', 'integer') },
  503: { 'Retry-After': header('seconds to wait', 'integer') },
};
const answerHeaders: Readonly<Record<number, Record<string, Header>>> = {
  202: {
    Location: header('URL of the outcome'),
    'Preference-Applied': header('`respond-async`, if it was requested'),
  },
};
const linkHeader = { Link: header('`<…>; rel="next"` if the list continues') };
const meanings: Readonly<Record<number, string>> = { 200: 'OK', 201: 'Created', 202: 'Accepted', 204: 'Done; no body' };

const preferHeader = z.object({
  prefer: z.string().optional().describe('`respond-async`: answer 202 immediately instead of waiting for the agents'),
});

/**
 * Creates the API description from the route table and the schemas that validate requests.
 * @param version product version
 * @returns an OpenAPI 3.1 document
 */
export function printOpenApi(version: string): ReturnType<typeof createDocument> {
  const paths: ZodOpenApiPathsObject = {};
  const errors: Record<string, ErrorResponse> = {};
  for (const route of routes) {
    const path = apiPrefix + route.path;
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route, errors) };
  }
  const document = createDocument({
    openapi: '3.1.0',
    info: {
      title: 'Muster',
      version,
      description: 'The management API of a Muster orchestrator.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags: [...new Set(routes.map((route) => route.tag))].map((name) => {
      const description = tagDescriptions[name];
      return { name, ...(description === undefined ? {} : { description }) };
    }),
    paths,
    components: {
      // Adds ChainedAuditEvent, which appears in streams and exports but is not referenced by any response schema.
      schemas: { Problem: problemSchema, ChainedAuditEvent: chainedEventSchema },
      responses: errors,
      securitySchemes: {
        session: { type: 'http', scheme: 'bearer', description: 'The token of `POST /api/v1/auth/verify`.' },
      },
    },
  });
  giveParametersExamples(document);
  return document;
}

const archiveSchema = { type: 'string', format: 'binary' } as const;

/** @param errors collects the error responses that operations share, by code */
function operationOf(route: Route, errors: Record<string, ErrorResponse>): ZodOpenApiOperationObject {
  const responses: ZodOpenApiOperationObject['responses'] = {};
  const defaultStatus = Math.min(...Object.keys(route.answers).map(Number));
  for (const [key, schema] of Object.entries(route.answers)) {
    const status = Number(key);
    const example = status === defaultStatus ? route.example.answer : undefined;
    const content = mediaOf(route, status).map((media) => [
      media,
      { schema, ...(example === undefined ? {} : { example }) },
    ]);
    responses[key as '200'] = {
      description: meanings[status] ?? 'OK',
      ...(answerHeaders[status] ? { headers: answerHeaders[status] } : {}),
      ...(route.paged && status === defaultStatus ? { headers: linkHeader } : {}),
      ...(schema ? { content: Object.fromEntries(content) } : {}),
    };
  }
  for (const [status, codes] of byStatus(errorsOf(route))) {
    const name = codes.join('.');
    errors[name] ??= errorResponse(status, codes);
    responses[String(status) as '400'] = { $ref: `#/components/responses/${name}` };
  }
  return {
    operationId: route.id,
    tags: [route.tag],
    summary: route.summary,
    description: [route.description, route.access === 'admin' ? 'Requires the admin role.' : undefined]
      .filter((text) => text !== undefined)
      .join(' '),
    security: route.access === 'anyone' ? [] : [{ session: [] }],
    requestParams: {
      ...(route.params ? { path: route.params } : {}),
      ...(route.query ? { query: route.query } : {}),
      ...(route.respondAsync ? { header: preferHeader } : route.headers ? { header: route.headers } : {}),
    },
    ...(route.body
      ? {
          requestBody: {
            required: route.bodyOptional !== true,
            content: {
              'application/json': { schema: route.body, example: route.example.body },
              ...(route.archive === true ? { 'application/gzip': { schema: archiveSchema } } : {}),
            },
          },
        }
      : {}),
    responses,
  };
}

function byStatus(codes: readonly ErrorCode[]): [number, ErrorCode[]][] {
  const groups = new Map<number, ErrorCode[]>();
  for (const code of codes) {
    const { status } = errorKinds[code];
    groups.set(status, [...(groups.get(status) ?? []), code]);
  }
  return [...groups]
    .map(([status, group]): [number, ErrorCode[]] => [status, group.sort()])
    .sort(([one], [other]) => one - other);
}

type ErrorResponse = ReturnType<typeof errorResponse>;

function errorResponse(status: number, codes: ErrorCode[]) {
  const first = codes[0]!;
  const headers = errorHeaders[status];
  return {
    description: codes.map((code) => `\`${code}\`: ${errorKinds[code].title}.`).join(' '),
    ...(headers ? { headers } : {}),
    content: {
      'application/problem+json': {
        schema: {
          allOf: [
            { $ref: '#/components/schemas/Problem' },
            { type: 'object' as const, properties: { status: { const: status }, code: { enum: codes } } },
          ],
        },
        example: {
          type: `urn:muster:error:${first}`,
          title: errorKinds[first].title,
          status,
          detail: errorKinds[first].remedy,
          instance: '5f0c1a2b3c4d-1',
          code: first,
        },
      },
    },
  };
}

/** Sets the example of each path and query parameter to that of its route, because zod-openapi does not support it. */
function giveParametersExamples(document: ReturnType<typeof createDocument>): void {
  for (const route of routes) {
    const operation = document.paths?.[apiPrefix + route.path]?.[route.method.toLowerCase() as 'get'];
    for (const parameter of (operation?.parameters ?? []) as Parameter[]) {
      const example = { path: route.example.params, query: route.example.query }[parameter.in]?.[parameter.name];
      if (example !== undefined) parameter.example = typedExample(example, parameter.schema?.type);
    }
  }
}

/** Converts an example from URL text to its described type. */
const typedExample = (example: string, type: unknown): unknown =>
  type === 'integer' || type === 'number' ? Number(example) : type === 'boolean' ? example === 'true' : example;

// When run as a program, prints the document. The first argument is the product version.
if (import.meta.main) process.stdout.write(JSON.stringify(printOpenApi(process.argv[2] ?? '0.0.0')));
