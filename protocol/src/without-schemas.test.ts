import { expect, test } from 'vitest';
import { z } from 'zod';
import { route } from './http/definition/route.ts';
import { withoutSchemas } from './without-schemas.ts';

const listThings = route({
  id: 'listThings',
  method: 'GET',
  path: '/things',
  tag: 'Things',
  summary: 'List the things',
  access: 'operator',
  query: z.strictObject({ limit: z.string() }),
  answers: { 200: z.array(z.string()), 204: null },
  media: { 200: 'text/plain' },
  paged: true,
  errors: [],
  example: {},
});

test('keeps plain values, and routes without their schemas', () => {
  const source = withoutSchemas(
    {
      listThings,
      names: ['a', 'b'],
      limits: { most: 3 },
      thing: z.string(),
      isThing: () => true,
      routes: [listThings],
    },
    {},
  );
  expect(source.split('\n')).toEqual([
    'export const listThings = /* @__PURE__ */ Object.freeze({"id":"listThings","method":"GET","path":"/things","access":"operator","answers":{"200":true,"204":false},"media":{"200":"text/plain"},"paged":true});',
    'export const names = /* @__PURE__ */ Object.freeze(["a","b"]);',
    'export const limits = /* @__PURE__ */ Object.freeze({"most":3});',
  ]);
});

test('exports a module without schemas unchanged, and exports its values only once', () => {
  const whole = { isThing: () => true, most: 3 };
  expect(withoutSchemas({ ...whole, least: 1 }, { '/src/things.ts': whole })).toBe(
    'export * from "/src/things.ts";\nexport const least = /* @__PURE__ */ Object.freeze(1);',
  );
});
