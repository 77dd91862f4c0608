import fc from 'fast-check';
import { expect, test } from 'vitest';
import { composeFileFault, composeReferences, readsEnvironmentFiles } from './compose-file.ts';

test.each([
  'services: { web: { image: nginx } }',
  '# a comment\nname: shop\nversion: "3.8"\nservices:\n  web:\n    image: "nginx:${TAG:-1}"\nvolumes: { data: {} }\nx-any: 1\n',
  'x-common: &common { image: nginx }\nservices:\n  web: *common\n  api:\n    <<: *common\n    ports: ["80:80"]\n',
  'services:\n  base: { image: nginx }\n  web: { extends: { service: base } }\n',
  'x-a: &a { image: nginx }\nx-b: &b { ports: [] }\nservices: { web: { <<: [*b, *a] }, api: { <<: *b, image: nginx } }',
  'x-a: &a { image: nginx }\nx-b: &b { <<: *a }\nservices: { web: { <<: *b } }',
])('accepts a Compose file: %j', (text) => {
  expect(composeFileFault(text)).toBeUndefined();
});

test.each([
  ['', 'must have `services`'],
  ['# only a comment\n\n', 'must have `services`'],
  ['services:\n  web: [', 'not YAML'],
  ['services:\n\tweb: {}', 'tabs for indentation'],
  ['- services', 'a mapping with `services`'],
  ['just text', 'a mapping with `services`'],
  ['version: "3"', 'must have `services`, a mapping'],
  ['services: {}', 'must have `services`, a mapping'],
  ['services: [web]', 'must have `services`, a mapping'],
  ['web: { image: nginx }', 'must not have the key "web"'],
  ['include: [other.yaml]\nservices: { a: { image: b } }', '`include` is not supported'],
  ['services: { web: nginx }', 'must declare the service web as a mapping'],
  ['services: { web: }', 'must declare the service web as a mapping'],
  ['services: { "a b": { image: nginx } }', 'must have services with names'],
  ['services: { web: { ports: [] } }', 'must name the `image` of the service web'],
  ['services: { web: { image: } }', 'must name the `image` of the service web'],
  ['services: { web: { image: 1 } }', 'must name the `image` of the service web'],
  ['services: { web: { image: a, build: . } }', 'must not build the service web'],
  ['x-a: &a { build: . }\nservices: { web: { <<: *a, image: a } }', 'must not build the service web'],
  [
    'x-a: &a { build: . }\nx-b: &b { <<: *a }\nservices: { web: { <<: [*b], image: a } }',
    'must not build the service web',
  ],
  ['x-k: &k build\nservices: { web: { *k : ., image: a } }', 'must not build the service web'],
  ['x-a: &a { file: b }\nservices: { web: { extends: { <<: *a, service: c } } }', 'must not extend the service web'],
  ['x-a: &a { extends: { file: b } }\nservices: { web: { <<: *a, image: a } }', 'must not extend the service web'],
  ['x-a: &a { ports: [] }\nservices: { web: { <<: *a } }', 'must name the `image` of the service web'],
  ['services: { web: &a { <<: *a } }', 'must name the `image` of the service web'],
  ['services: { web: { image: a } }\nservices: { web: { build: . } }', 'must not have `services` twice'],
  ['services: { web: { build: } }', 'must not build the service web'],
  ['services: { db: { image: a, provider: { type: aws } } }', 'must not leave the service db to a `provider`'],
  ['x-a: &a { provider: { type: aws } }\nservices: { db: { <<: *a, image: a } }', 'to a `provider`'],
  ['x-b: &b { build: . }\nservices: { web: *b }', 'must not build the service web'],
  ['services: { web: { extends: { file: a.yaml, service: b } } }', 'must not extend the service web'],
  ['services:\n  web: { image: a }\n  web: { image: b }\n', 'must not declare the service web twice'],
  ['services: *missing', 'must have `services`'],
  [
    'services: { web: { image: a, env_file: "${A}.env" } }',
    'must name the files of `env_file` and `label_file` without',
  ],
  ['x-a: &a { label_file: [~/a] }\nservices: { web: { <<: *a, image: a } }', 'without variables and "~": "~/a"'],
  ['a: 1\n---\nb: 2\n', 'more than one document'],
  [`services: { web: { image: a } }\n# ${'x'.repeat(300_000)}`, 'must be at most 256 KiB long'],
  [`services: ${'['.repeat(5000)}`, 'nested deeper than'],
])('refuses text that is not a Compose file: %j', (text, fault) => {
  expect(composeFileFault(text)).toContain(fault);
});

test('does not expand aliases', () => {
  const levels = Array.from({ length: 30 }, (_, i) => `x-${i}: &a${i} [${`*a${i - 1}, `.repeat(i === 0 ? 0 : 9)}1]`);
  const text = `${levels.join('\n')}\nservices: { web: { image: a, x: *a29 } }\n`;
  expect(composeFileFault(text)).toBeUndefined();
});

test('reads many services that merge many mappings without repeating work', () => {
  const bases = Array.from({ length: 1500 }, (_, i) => `x-${i}: &b${i} { ports: [] }`);
  const all = `x-all: &all { <<: [${bases.map((_, i) => `*b${i}`).join(',')}], image: a }`;
  const services = Array.from({ length: 1500 }, (_, i) => `  s${i}: { <<: *all }`);
  const text = [...bases, all, 'services:', ...services, '  web: { image: a, build: . }', ''].join('\n');
  expect(composeFileFault(text)).toContain('must not build the service web');
});

test.each([
  ['services: { web: { image: a, env_file: a.env } }', true],
  ['services: { web: { image: a, "env\\u005ffile": a.env } }', true],
  ['x-k: &k env_file\nservices: { web: { image: a, *k : a.env } }', true],
  ['services: [', true],
  ['services: { web: { image: a, environment: { A: b } } }', false],
])('reports whether a Compose file names files with variables: %j', (text, expected) => {
  expect(readsEnvironmentFiles(text)).toBe(expected);
});

test.each([
  ['services: { web: { image: a, env_file: a.env } }', ['a.env'], []],
  ['services: { web: { image: a, env_file: [a.env, { path: b.env, required: false }] } }', ['a.env', 'b.env'], []],
  [
    'x-e: &e [a.env]\nservices: { web: { image: a, env_file: *e, label_file: b }, api: { image: a, env_file: *e } }',
    ['a.env', 'b'],
    [],
  ],
  [
    'x-a: &a { env_file: a.env }\nservices: { web: { <<: *a, image: "a:${TAG}" }, api: { image: $A } }',
    ['a.env'],
    ['`image` of the service web', '`image` of the service api'],
  ],
  [
    'x-a: &a { name: "${A}" }\nservices: { web: { image: a } }\nnetworks: { front: *a, back: { name: b } }\nvolumes: { data: { <<: *a }, rest: }',
    [],
    ['`name` of the network front', '`name` of the volume data'],
  ],
  ['services: { web: { image: a, env_file: { path: a.env } } }', ['a.env'], []],
  ['services: { web: { image: a, container_name: "w-$A" } }', [], ['`container_name` of the service web']],
  ['services: [', [], []],
  ['- a', [], []],
])('returns what a Compose file refers to: %j', (text, files, withVariables) => {
  expect(composeReferences(text)).toEqual({ files, withVariables });
});

test('returns a fault or nothing, for any text', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      for (const source of [text, `services: ${text}`, `services:\n  web: ${text}`])
        expect(['string', 'undefined']).toContain(typeof composeFileFault(source));
    }),
  );
});
