import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseModule, resolveDesiredSet } from '@muster/protocol/module';
import { describe, expect, test } from 'vitest';
import { root } from '../suite/cli.ts';
import { recipePage } from './recipe-pages.ts';

const folder = join(root, 'docs/recipes');
const recipes = readdirSync(folder).filter((name) => name.endsWith('.yml'));

describe('recipes', () => {
  test('finds ten recipes', () => {
    expect(recipes).toHaveLength(10);
    const index = readFileSync(join(folder, 'index.md'), 'utf8');
    for (const file of recipes) expect(index).toContain(`](${file.replace('.yml', '.md')})`);
  });

  test.each(recipes)(
    'resolves %s with defaults for each supported machine, and finds a description of each parameter',
    (file) => {
      const parsed = parseModule(readFileSync(join(folder, file), 'utf8'));
      if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
      const { module } = parsed;
      expect(parsed.warnings).toEqual([]);
      expect(module.name).toBe(file.replace('.yml', ''));
      for (const [name, { description }] of Object.entries(module.parameters))
        expect(description, name).toMatch(/^\S.*[^.]$/);
      for (const clause of module.supports) {
        const required = Object.entries(clause).map(([key, { in: values = [] }]) => [key, values[0]]);
        const attributes = {
          version: '12',
          arch: 'x86_64',
          cpus: '2',
          hostname: 'web-1',
          ...Object.fromEntries(required),
        };
        const agent = { name: 'web-1', node_id: 'a'.repeat(32), attributes, tags: {} };
        const resolution = resolveDesiredSet({ modules: [module], agent });
        expect(resolution, JSON.stringify(clause)).toMatchObject({ ok: true });
      }
    },
  );
});

describe('the page of a recipe', () => {
  const frame = 'by hand\n<!-- from a.yml, by node tools/checks/docs.ts --write -->\nold\n<!-- until here -->\nafter\n';
  const source = [
    'name: a',
    'supports: [{ platform: linux }]',
    'parameters:',
    '  ports: { type: list, default: [80, "a|b"], description: "these, or `a|b`" }',
    '  rules: { type: list, default: [{ a: 1 }] }',
    '  host: { type: string }',
    '  text: { type: string, default: "" }',
    '',
  ].join('\n');

  test('writes the parameters and the module into the page and keeps the handwritten text', () => {
    const page = recipePage(frame, 'a.yml', source);
    expect(page).toMatch(/^by hand\n/);
    expect(page).toMatch(/<!-- until here -->\nafter\n$/);
    expect(page).not.toContain('old');
    expect(page).toContain('| `ports` | list | `[80, "a\\|b"]` | these, or `a\\|b` |');
    expect(page).toContain('| `rules` | list | see the module |  |');
    expect(page).toContain('| `host` | string | none; required |  |');
    expect(page).toContain('| `text` | string | empty |  |');
    expect(page).toContain(`\`\`\`yaml\n${source.trimEnd()}\n\`\`\``);
    expect(recipePage(page, 'a.yml', source)).toBe(page);
    expect(recipePage(frame, 'a.yml', 'name: a\nsupports: [{ platform: linux }]\n')).toContain(
      'The module has no parameters.',
    );
  });

  test('refuses a page without the markers, and an invalid module', () => {
    expect(() => recipePage('no frame', 'a.yml', source)).toThrow('the page of a.yml lacks the line <!-- from a.yml');
    expect(() => recipePage(frame, 'a.yml', 'name: [')).toThrow('a.yml: ');
  });
});
