import { errorKinds } from '@muster/protocol';
import { apiPrefix, errorsOf, type Route, routes } from '@muster/protocol/http';
import { Validator } from '@seriousme/openapi-schema-validator';
import { beforeAll, describe, expect, test } from 'vitest';
import { testApp } from '../../../test/app-fixture.ts';

interface Described {
  operationId: string;
  security: unknown[];
  parameters?: { in: string; name: string; required?: boolean; example?: unknown; schema: object }[];
  requestBody?: { required?: boolean; content: Record<string, { example: unknown }> };
  responses: Record<string, Answered | { $ref: string }>;
}
interface Answered {
  headers?: object;
  content?: Record<string, { example?: unknown; schema: never }>;
}
let document: {
  openapi: string;
  paths: Record<string, Record<string, Described>>;
  components: { schemas: object; responses: Record<string, Answered> };
};

beforeAll(async () => {
  document = (await testApp().inject({ url: '/openapi.json' })).json();
});
const answered = (response: Answered | { $ref: string } | undefined): Answered =>
  response && '$ref' in response
    ? (document.components.responses[response.$ref.replace('#/components/responses/', '')] as Answered)
    : (response ?? {});
const described = (route: Route) => document.paths[apiPrefix + route.path]?.[route.method.toLowerCase()] as Described;

describe('the OpenAPI document', () => {
  test('writes a valid OpenAPI 3.1 document', async () => {
    expect(document.openapi).toMatch(/^3\.1\./);
    expect(await new Validator().validate(structuredClone(document))).toMatchObject({ valid: true });
  });

  test('documents exactly the routes in the route table', () => {
    const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));
    expect(operations.map(({ operationId }) => operationId).sort()).toEqual(routes.map(({ id }) => id).sort());
    for (const path of Object.keys(document.paths)) expect(path).toMatch(/^\/api\/v1\//);
  });

  test('defines the schemas that the descriptions mention', () => {
    const named = JSON.stringify(document).matchAll(/`((?:[A-Z][a-z]+){2,})`/g);
    const names = [...new Set([...named].map(([, name]) => name))];
    expect(names).toContain('ChainedAuditEvent');
    expect(Object.keys(document.components.schemas)).toEqual(expect.arrayContaining(names));
  });

  test.each(routes)('describes access, all errors, and an example for $id', (route) => {
    const operation = described(route);
    expect(operation.security).toEqual(route.access === 'anyone' ? [] : [{ session: [] }]);
    const codes = Object.entries(operation.responses).flatMap(([status, response]) => {
      const problem = answered(response).content?.['application/problem+json'] as
        | { schema: { allOf: [unknown, { properties: { code: { enum: string[] } } }] } }
        | undefined;
      const listed = problem?.schema.allOf[1].properties.code.enum ?? [];
      for (const code of listed) expect(errorKinds[code as 'internal'].status).toBe(Number(status));
      return listed;
    });
    expect(codes.sort()).toEqual([...errorsOf(route)].sort());
    expect(answered(operation.responses['429']).headers).toHaveProperty('Retry-After');
    if (route.access !== 'anyone')
      expect(answered(operation.responses['401']).headers).toHaveProperty('WWW-Authenticate');
    if (route.answers[202]) expect(answered(operation.responses['202']).headers).toHaveProperty('Location');
    const prefer = operation.parameters?.some((parameter) => parameter.in === 'header' && parameter.name === 'prefer');
    expect(prefer ?? false).toBe(route.respondAsync === true);

    const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const inPath = operation.parameters?.filter((parameter) => parameter.in === 'path') ?? [];
    expect(inPath.map(({ name }) => name).sort()).toEqual([...names].sort());
    for (const parameter of inPath) expect(parameter).toMatchObject({ required: true, example: expect.any(String) });
    if (route.body) {
      expect(operation.requestBody?.required ?? false).toBe(route.bodyOptional !== true);
      expect(operation.requestBody?.content['application/json']?.example).toEqual(route.example.body);
    }
  });

  test.each(routes)('gives an example for $id that matches its schemas', (route) => {
    const defaultStatus = Math.min(...Object.keys(route.answers).map(Number));
    const schema = route.answers[defaultStatus];
    if (schema) {
      expect(route.example.answer).toBeDefined();
      // Serializes and parses the example, because responses are sent as JSON.
      schema.parse(JSON.parse(JSON.stringify(route.example.answer)));
    } else expect(route.example.answer).toBeUndefined();
    if (route.body) expect(route.example.body).toBeDefined();
    route.body?.parse(route.example.body);
    route.query?.parse(route.example.query ?? {});
    route.params?.parse(route.example.params);
    expect(route.params === undefined).toBe(!route.path.includes('{'));
  });

  test('documents query parameter limits', () => {
    const limit = document.paths['/api/v1/audit']?.get?.parameters?.find(({ name }) => name === 'limit');
    expect(limit?.schema).toMatchObject({ type: 'integer', minimum: 0, maximum: 500, default: 50 });
  });
});
